"""Follow the log of a live store: each poll returns the new records.

A record is shown once it is complete and valid. A place that is not valid is read again at the next poll. If it stays
bad for `PATIENCE` polls and a valid record follows, it is shown as bad and skipped. A log that was cut below what was
shown (by a crash and a recovery), and files that retention removed before they were read, are findings.

No file stays open between polls, and nothing is locked or written.
"""

from __future__ import annotations

import os
from pathlib import Path

from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.lookup import RecordReader
from tornpage.properties.decode.opening import open_view
from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.seek import items_from
from tornpage.properties.decode.store import RECORD_BYTES_MAX, LocatedItem, LogFile, StoreView, look
from tornpage.properties.decode.walk import Unreadable, Zeros, decode_at, walk_source
from tornpage.properties.inspect.log import shown_row
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.queues import queue_tails
from tornpage.properties.inspect.rows import Row

__all__ = ["PATIENCE", "LogFollower"]

PATIENCE = 25
_PIECE_BYTES = 256 * 1024
_ROWS_MAX = 1000
"""Rows of one poll; the next poll continues after them."""


class LogFollower:
    """Returns the rows of a growing log.

    It begins at `query.offset`, or at the end of the log. Raises InspectError.
    """

    def __init__(self, path: str | os.PathLike[str], query: Query) -> None:
        self._query = query
        self._view = open_view(path, file_bytes=query.file_bytes)
        self._last: tuple[int, bytes] | None = None
        self._bad_polls = 0
        self.position = query.offset if query.offset is not None else _end_of(self._view)
        self.records = 0
        self.findings: list[Finding] = []

    @property
    def store_dir(self) -> Path:
        """The store directory."""
        return self._view.store_dir

    def poll(self) -> list[Row]:
        """Return the rows since the last poll, `_ROWS_MAX` at most."""
        self._look_again()
        rows: list[Row] = []
        while len(rows) < _ROWS_MAX and (file := self._file()) is not None:
            before = self.position
            try:
                with FileSource(file.path, size_bytes_max=self._file_bytes, piece_bytes=_PIECE_BYTES) as source:
                    self._read(file, source, rows)
            except OSError:
                break  # removed or not readable for the moment; the next poll tries again
            if self.position < file.base_offset + self._file_bytes or self.position == before:
                break
        return rows

    @property
    def _file_bytes(self) -> int:
        return self._view.file_bytes

    def _read(self, file: LogFile, source: FileSource, rows: list[Row]) -> None:
        """Read on in one file, up to its end mark or to what is not written yet."""
        while len(rows) < _ROWS_MAX and self.position - file.base_offset < source.end:
            position = self.position - file.base_offset
            item = decode_at(source, position, file.base_offset, self._file_bytes, RECORD_BYTES_MAX)
            if isinstance(item, Bad):
                self._stopped(file, source, item, rows)
                return
            self._bad_polls = 0
            if isinstance(item, Blank):
                self._show(file, item, rows)
                self.position = file.base_offset + self._file_bytes
                return
            self.records += 1
            self._show(file, item, rows)
            self._last = (item.offset, item.raw[:48])
            self.position = item.end_offset

    def _stopped(self, file: LogFile, source: FileSource, bad: Bad, rows: list[Row]) -> None:
        """Handle a place without a valid record: the log was cut, or continues after it."""
        if self._was_cut():
            return
        if self.position == (self._query.offset or 0) and self._last is None and self._inside(file, source):
            return
        self._bad_polls += 1
        if self._bad_polls < PATIENCE:
            return
        self._bad_polls = 0
        items = walk_source(
            source,
            base_offset=file.base_offset,
            file_bytes=self._file_bytes,
            position=self.position - file.base_offset,
            record_bytes_max=RECORD_BYTES_MAX,
        )
        skipped = [item for item, _ in zip(items, range(2), strict=False) if isinstance(item, Unreadable | Zeros)]
        end = skipped[0].offset + skipped[0].size_bytes if skipped else self.position
        goes_on = end < file.base_offset + source.end or self._has_later_records(file)
        if not skipped or not goes_on:
            return
        message = f"no valid record: {bad.reason} ({bad.field}), but valid records follow"
        remedy = "look at it with `inspect` and `audit` once the store is closed"
        self.findings.append(Finding("CL_BAD_RECORD", "note", file.label, bad.offset, message, remedy))
        self._show(file, bad, rows)
        self.position = end

    def _inside(self, file: LogFile, source: FileSource) -> bool:
        """Move to the begin of the item at the requested offset.

        Returns whether that is another place.
        """
        first = next(
            items_from(source, self.position - file.base_offset, file.base_offset, self._file_bytes, RECORD_BYTES_MAX),
            None,
        )
        if not isinstance(first, Record | Blank) or first.offset == self.position:
            return False
        self.position = first.offset
        return True

    def _was_cut(self) -> bool:
        """Return whether the record shown last is gone; if so, continue at the end of the log."""
        if self._last is None:
            return False
        offset, start = self._last
        with RecordReader(self._view) as reader:
            if reader.raw(offset, len(start)) == start:
                return False
        self.position = min(self.position, _end_of(self._view))
        self._last = None
        message = f"the record at {offset} was shown and is gone: the log was cut and continues at {self.position}"
        self.findings.append(Finding("LOOK_LOG_CUT", "note", "commitlog", offset, message, "none needed"))
        return True

    def _look_again(self) -> None:
        """List the directory again; skip files that are removed."""
        try:
            seen = look(self.store_dir, file_bytes=self._query.file_bytes or self._view.file_bytes or None)
        except OSError:
            return
        self._view = seen
        if seen.files and self.position < seen.files[0].base_offset:
            first = seen.files[0]
            message = f"the log begins at {first.base_offset} now, the offsets from {self.position} on were not read"
            self.findings.append(Finding("CL_FILE_GONE", "note", first.label, self.position, message, "none needed"))
            self.position = first.base_offset

    def _file(self) -> LogFile | None:
        for file in self._view.files:
            if file.base_offset <= self.position < file.base_offset + self._file_bytes:
                return file
        return None

    def _has_later_records(self, file: LogFile) -> bool:
        with RecordReader(self._view) as reader:
            return any(
                isinstance(reader.at(each.base_offset), Record)
                for each in self._view.files
                if each.base_offset > file.base_offset
            )

    def _show(self, file: LogFile, item: Record | Blank | Bad, rows: list[Row]) -> None:
        if self._query.has_filter and not (isinstance(item, Record) and self._query.accepts(item)):
            return
        with RecordReader(self._view) as reader:
            row = shown_row(
                LocatedItem(file.label, item),
                reader if self._query.hex else None,
                drops_joined=self._query.drops_joined,
            )
        rows += [] if row is None else [row]


def _end_of(view: StoreView) -> int:
    """Return the end of the log, reading from the last record that the queues name."""
    used = [file for file in view.files if file.size_bytes]
    if not used:
        return view.files[0].base_offset if view.files else 0
    with RecordReader(view) as reader:
        while len(used) > 1 and not isinstance(reader.at(used[-1].base_offset), Record | Blank):
            used.pop()
        file = used[-1]
        position = 0
        for tail in sorted(queue_tails(view.store_dir), reverse=True):
            if reader.file_of(tail) == file and isinstance(reader.at(tail), Record):
                position = tail - file.base_offset
                break
    try:
        with FileSource(file.path, size_bytes_max=view.file_bytes) as source:
            while position < source.end:
                item = decode_at(source, position, file.base_offset, view.file_bytes, RECORD_BYTES_MAX)
                if isinstance(item, Blank):
                    return file.base_offset + view.file_bytes
                if isinstance(item, Bad):
                    break
                position += item.size_bytes
    except OSError:
        return file.base_offset
    return file.base_offset + position
