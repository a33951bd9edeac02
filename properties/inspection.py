"""Look into a store directory and return what is there as one document, free of presentation.

Guarantees of `properties.decode.store` hold: nothing is written, locked or recovered, and a live store is left alone.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from properties.decode.findings import verdict_of
from properties.decode.judge import LogJudge
from properties.decode.record import Bad, Blank, Record, message_id, parse_properties
from properties.decode.store import LocatedItem, StoreView, iter_items, look
from properties.decode.walk import Unreadable, Zeros

__all__ = ["InspectError", "inspect_store", "row_of"]

_STORE_SIGNS = ("commitlog", "checkpoint", "abort", "lock", "consumequeue")


class InspectError(ValueError):
    """The directory cannot be looked into at all; the message is one line: what, where, and what to do."""


def inspect_store(
    path: str | os.PathLike[str],
    *,
    limit: int | None = 100,
    from_offset: int = 0,
    whole: bool = True,
    file_bytes: int | None = None,
) -> dict[str, Any]:
    """Return verdict, figures, rows and findings of the store directory `path`.

    Rows begin with the item that holds the physical offset `from_offset`; at most `limit` are returned (None: all).
    The whole log is read for verdict and figures; with `whole=False` reading begins at `from_offset`, ends with the
    last row, and the verdict is None unless the part that was read is damaged already. `file_bytes` is the configured
    size of a log file, for a store in which it cannot be seen.

    Raises InspectError. Cost: one pass over the log, some 10 microseconds a record.
    """
    directory = _store_directory(path)
    if limit is not None and limit < 0:
        raise InspectError(f"limit {limit} is negative; give 0 or more")
    if from_offset < 0:
        raise InspectError(f"offset {from_offset} is negative; give a physical offset, 0 or more")
    if file_bytes is not None and file_bytes <= 0:
        raise InspectError(f"file size {file_bytes} is not positive; give the configured bytes of a log file")
    try:
        view = look(directory, file_bytes=file_bytes)
    except PermissionError as error:
        raise _no_permission(Path(error.filename or directory)) from error
    except OSError as error:
        raise InspectError(
            f"cannot list {_shown(directory)}: {error.strerror}; check the device and the path"
        ) from error
    judge = LogJudge(view)
    rows, is_complete = _collect(view, judge, limit, from_offset, whole)
    findings = judge.finish(is_complete=is_complete)
    verdict = verdict_of(findings)
    return {
        "verdict": verdict if is_complete or verdict == "broken" else None,
        "figures": _figures(view, judge, [finding.severity for finding in findings]),
        "rows": rows,
        "findings": [asdict(finding) for finding in findings],
    }


def row_of(located: LocatedItem) -> dict[str, Any] | None:
    """Return the row that shows one item; None for zeros, which are not shown.

    Columns of every row: kind (record, blank, bad, unreadable), phy, phyText (the same as text, for readers that hold
    numbers as doubles), file. Times are milliseconds; hosts are [address, port]; recordSha256 is of the whole record.
    """
    item = located.item
    if isinstance(item, Zeros):
        return None
    row: dict[str, Any] = {"phy": item.offset, "phyText": str(item.offset), "file": located.file}
    if isinstance(item, Record):
        return row | _record_columns(item)
    if isinstance(item, Bad):
        return row | {"kind": "bad", "reason": item.reason, "field": item.field}
    if isinstance(item, Blank):
        return row | {"kind": "blank", "size": item.size_bytes}
    return row | {"kind": "unreadable", "size": item.size_bytes, "reason": item.reason}


def _record_columns(record: Record) -> dict[str, Any]:
    properties = parse_properties(record.properties)
    return {
        "kind": "record",
        "size": record.size_bytes,
        "topic": record.topic_text,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "queueOffsetText": str(record.queue_offset),
        "storedPhy": record.physical_offset,
        "storedPhyText": str(record.physical_offset),
        "sysFlag": record.sys_flag,
        "storeTimestamp": record.store_timestamp,
        "recordSha256": sha256(record.raw).hexdigest(),
        "keys": properties.get("KEYS"),
        "tags": properties.get("TAGS"),
        "uniqKey": properties.get("UNIQ_KEY"),
        "msgId": message_id(record),
        "bodyLength": len(record.body),
        "bornTimestamp": record.born_timestamp,
        "bornHost": list(record.born_host),
        "storeHost": list(record.store_host),
        "hasChecksum": record.checksum is not None,
    }


def _collect(
    view: StoreView, judge: LogJudge, limit: int | None, from_offset: int, whole: bool
) -> tuple[list[dict[str, Any]], bool]:
    """Feed the judge; return the rows and whether the whole log was seen."""
    rows: list[dict[str, Any]] = []
    start = 0 if whole else from_offset
    for located in iter_items(view, from_offset=start, on_file=judge.see_file_end):
        is_full = limit is not None and len(rows) >= limit
        if is_full and not whole:
            return rows, False
        judge.see(located)
        if not is_full and _reaches(located, from_offset) and (row := row_of(located)) is not None:
            rows.append(row)
    return rows, start <= (view.files[0].base_offset if view.files else 0)


def _reaches(located: LocatedItem, from_offset: int) -> bool:
    item = located.item
    if item.offset >= from_offset:
        return True
    return isinstance(item, Record | Unreadable) and item.offset + item.size_bytes > from_offset


def _figures(view: StoreView, judge: LogJudge, severities: list[str]) -> dict[str, int]:
    min_offset = view.files[0].base_offset if view.files else 0
    max_offset = min_offset if judge.end_offset is None else judge.end_offset
    return {
        "files": len(view.files),
        "file_bytes": view.file_bytes,
        "bytes": sum(file.size_bytes for file in view.files),
        "records": judge.record_count,
        "record_bytes": judge.record_bytes,
        "blanks": judge.blank_count,
        "unreadable_bytes": judge.unreadable_bytes,
        "min_offset": min_offset,
        "max_offset": max_offset,
        "prefix_end_offset": max_offset if judge.prefix_end_offset is None else judge.prefix_end_offset,
        "live": int(view.live),
        "unclean": int(view.is_unclean),
        "findings": len(severities),
        "damages": severities.count("damage"),
        "tears": severities.count("tear"),
        "notes": severities.count("note"),
    }


def _store_directory(path: str | os.PathLike[str]) -> Path:
    """Return `path` if a store can be looked for in it."""
    directory = Path(path)
    try:
        status_is_directory = directory.is_dir()
        exists = status_is_directory or os.path.lexists(directory)
    except (OSError, ValueError) as error:
        raise InspectError(f"cannot look at {_shown(directory)}: {error}; check the path") from error
    if not exists:
        raise InspectError(f"no such directory: {_shown(directory)}; give the store directory (storePathRootDir)")
    if not status_is_directory:
        raise InspectError(f"not a directory: {_shown(directory)}; give the directory that holds commitlog/")
    try:
        names = {entry.name for entry in directory.iterdir()}
    except OSError as error:
        raise _no_permission(directory) from error
    if not names:
        raise InspectError(f"empty directory: {_shown(directory)}; give a store directory, one that holds commitlog/")
    if not names.intersection(_STORE_SIGNS):
        hint = (
            f"; give its parent, {_shown(directory.absolute().parent)}"
            if directory.absolute().name == "commitlog"
            else ""
        )
        advice = hint or "; give the directory that holds commitlog/"
        raise InspectError(f"not a store directory: {_shown(directory)} has no commitlog, checkpoint or lock{advice}")
    return directory


def _no_permission(path: Path) -> InspectError:
    return InspectError(f"no permission to list {_shown(path)}; run as its owner, or grant read and search permission")


def _shown(path: Path) -> str:
    """Return a path as text of one line."""
    return str(path) if str(path).isprintable() else repr(str(path))
