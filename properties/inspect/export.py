"""Yield the messages of a store or of quarantined bytes, with body and properties.

Each valid record is a row, whatever lies before it. Records that a mended copy has in place of lost ones are left out.
A compressed body is unpacked; one that cannot be unpacked stays as it is stored.
"""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.opening import InspectError, open_view, shown
from tornpage.properties.decode.record import END_RESERVE_BYTES, Record, parse_properties
from tornpage.properties.decode.store import RECORD_BYTES_MAX, LocatedItem, LogFile, StoreView, iter_items
from tornpage.properties.decode.walk import walk_source
from tornpage.properties.inspect.place import Progress, log_range, reading, without_progress
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.rows import Row, row_of

__all__ = ["COLUMNS", "Export", "Exported", "body_columns"]

COLUMNS = (
    "topic", "queueId", "queueOffset", "phy", "msgId", "storeTimestamp", "bornTimestamp", "storeHost", "bornHost",
    "sysFlag", "flag", "reconsumeTimes", "preparedTransactionOffset", "tags", "keys", "uniqKey", "properties",
    "bodyEncoding", "body", "bodyLength", "file",
)  # fmt: skip
"""Columns of a row, in their order."""

_LOST = "TORNPAGE_LOST"
_COMPRESSED = 0x01
_ASIDE = re.compile(r"([0-9]{20})(?:\.[0-9]{1,6})?")


@dataclass(slots=True)
class Exported:
    """What an export has read so far: counts, and the topics of all records."""

    read: int = 0
    rows: int = 0
    unreadable_bytes: int = 0
    fillers: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


class Export:
    """The records of a store directory, of a directory `quarantine`, or of one file.

    `until` is the physical offset at which it ends. `with_quarantine` adds what a store set aside, `with_fillers` the
    records that stand for lost ones, `is_raw` leaves compressed bodies as they are. Raises InspectError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        query: Query,
        *,
        until: int | None = None,
        with_quarantine: bool = False,
        with_fillers: bool = False,
        is_raw: bool = False,
    ) -> None:
        self._query = query
        self._until = until
        self._with_fillers = with_fillers
        self._is_raw = is_raw
        self.told = Exported()
        self._view: StoreView | None = None
        self._aside: list[tuple[Path, int]] = []
        place = Path(path)
        if place.is_file():
            self._aside = [_aside(place)]
        elif place.is_dir() and (files := _all_aside(place)):
            self._aside = files
        else:
            self._view = open_view(place, file_bytes=query.file_bytes)
            if with_quarantine and (place / "quarantine").is_dir():
                self._aside = _all_aside(place / "quarantine")

    def rows(self, progress: Progress = without_progress) -> Iterator[Row]:
        """Yield one row per message, in the order of the log; quarantined ones come last."""
        for located in self._items(progress):
            item = located.item
            if not isinstance(item, Record):
                self.told.unreadable_bytes += (
                    getattr(item, "size_bytes", 0) if type(item).__name__ == "Unreadable" else 0
                )
                continue
            self.told.read += 1
            self.told.topics[item.topic_text] = self.told.topics.get(item.topic_text, 0) + 1
            if not self._query.accepts(item) or item.offset < (self._query.offset or 0):
                continue
            if self._query.properties_of(item).get(_LOST) == "true" and not self._with_fillers:
                self.told.fillers += 1
                continue
            if not self._query.has_room(self.told.rows):
                return
            self.told.rows += 1
            yield message_row(located, is_raw=self._is_raw, drops_joined=self._query.drops_joined)

    def _items(self, progress: Progress) -> Iterator[LocatedItem]:
        if self._view is not None:
            reached: Callable[[int], None] = reading(*log_range(self._view), progress)
            start = self._query.offset or 0
            for located in iter_items(self._view, from_offset=start, on_file=self._see_end, reached=reached):
                if self._until is not None and located.item.offset >= self._until:
                    break
                yield located
        for path, offset in self._aside:
            try:
                size = path.stat().st_size
                with FileSource(path, size_bytes_max=size) as source:
                    for item in walk_source(
                        source,
                        base_offset=offset,
                        file_bytes=size + END_RESERVE_BYTES,
                        record_bytes_max=RECORD_BYTES_MAX,
                    ):
                        if self._until is None or item.offset < self._until:
                            yield LocatedItem(f"{path.parent.name}/{path.name}", item)
            except OSError as error:
                self.told.errors.append(f"{path.name}: {error.strerror}")

    def _see_end(self, file: LogFile, _: bool, error: OSError | None) -> None:
        if error is not None:
            self.told.errors.append(f"{file.label}: {error.strerror}")


def message_row(located: LocatedItem, *, is_raw: bool = False, drops_joined: bool = False) -> Row:
    """Return the row of a record; `drops_joined` is as in `parse_properties`."""
    record, columns = located.item, row_of(located, drops_joined=drops_joined)
    assert isinstance(record, Record)
    assert columns is not None
    columns |= {
        "flag": record.flag,
        "reconsumeTimes": record.reconsume_times,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "properties": parse_properties(record.properties, drops_joined=drops_joined),
        **body_columns(_body(record, is_raw=is_raw)),
    }
    return {name: columns[name] for name in COLUMNS}


def body_columns(body: bytes) -> Row:
    """Return the body as text where it is UTF-8, else in base 64."""
    try:
        return {"bodyEncoding": "utf-8", "body": body.decode(), "bodyLength": len(body)}
    except UnicodeDecodeError:
        return {"bodyEncoding": "base64", "body": base64.b64encode(body).decode(), "bodyLength": len(body)}


def _body(record: Record, *, is_raw: bool) -> bytes:
    if is_raw or not record.sys_flag & _COMPRESSED:
        return record.body
    unpacking = zlib.decompressobj()
    try:
        body = unpacking.decompress(record.body, RECORD_BYTES_MAX)
    except zlib.error:
        return record.body
    return body if unpacking.eof else record.body


def _aside(path: Path) -> tuple[Path, int]:
    """Return a file with the physical offset of its first byte. Raises InspectError."""
    match = _ASIDE.fullmatch(path.name)
    if match is None:
        raise InspectError(
            f"{shown(path)} is no file of a log: its name is not the offset of its first byte; give a store directory, "
            "its quarantine directory, or one file of either"
        )
    return path, int(match[1])


def _all_aside(directory: Path) -> list[tuple[Path, int]]:
    """Return the files of a directory that are named by an offset, in order."""
    try:
        paths = sorted(path for path in directory.iterdir() if path.is_file())
    except OSError:
        return []
    return [(path, int(match[1])) for path in paths if (match := _ASIDE.fullmatch(path.name))]
