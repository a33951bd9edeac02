"""Return rows of the log in order, with the verdict of everything that was read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from tornpage.properties.decode.fields import record_fields
from tornpage.properties.decode.findings import verdict_of
from tornpage.properties.decode.judge import LogJudge
from tornpage.properties.decode.lookup import RecordReader
from tornpage.properties.decode.opening import InspectError, open_view
from tornpage.properties.decode.record import RECORD_BYTES_MIN, Bad, Blank, Record
from tornpage.properties.decode.store import LocatedItem, StoreView, iter_items
from tornpage.properties.decode.walk import Unreadable, Zeros
from tornpage.properties.inspect.place import Document, Progress, log_range, reading, without_progress
from tornpage.properties.inspect.rows import Row, hex_of, row_of

__all__ = ["inspect_store", "log_document", "more_or_none", "shown_row"]


def inspect_store(
    path: str | os.PathLike[str],
    *,
    limit: int | None = 100,
    from_offset: int = 0,
    whole: bool = True,
    file_bytes: int | None = None,
) -> Document:
    """Return verdict, figures, rows and findings of the store directory `path`.

    Rows begin with the item that covers the physical offset `from_offset`; at most `limit` are returned (None: all).
    The whole log is read for verdict and figures. With `whole=False` reading begins at `from_offset` and ends with the
    last row, and the verdict is None unless that part is damaged. `file_bytes` is the configured size of a log file,
    for a store that does not show it.

    Raises InspectError. Cost: one pass over the log, some 10 microseconds a record.
    """
    if limit is not None and limit < 0:
        raise InspectError(f"limit {limit} is negative; give 0 or more")
    if from_offset < 0:
        raise InspectError(f"offset {from_offset} is negative; give a physical offset, 0 or more")
    if file_bytes is not None and file_bytes <= 0:
        raise InspectError(f"file size {file_bytes} is not positive; give the configured bytes of a log file")
    view = open_view(path, file_bytes=file_bytes)
    return log_document(view, limit=limit, from_offset=from_offset, whole=whole)


def log_document(
    view: StoreView,
    *,
    limit: int | None,
    from_offset: int = 0,
    whole: bool = True,
    accepts: Callable[[Record], bool] | None = None,
    with_hex: bool = False,
    drops_joined: bool = False,
    progress: Progress = without_progress,
) -> Document:
    """Do the work of `inspect_store` for a view; with `accepts`, rows are those records only.

    `drops_joined` is as in `parse_properties`.
    """
    judge = LogJudge(view)
    shown = partial(shown_row, drops_joined=drops_joined)
    rows, left_out, is_complete = _collect(view, judge, limit, from_offset, whole, accepts, with_hex, shown, progress)
    findings = judge.finish(is_complete=is_complete)
    verdict = verdict_of(findings)
    return {
        "verdict": verdict if is_complete or verdict == "broken" else None,
        "figures": _figures(view, judge, [finding.severity for finding in findings], is_complete=is_complete),
        "rows": rows,
        "rowsLeftOut": left_out if whole else more_or_none(rows, limit),
        "findings": [asdict(finding) for finding in findings],
    }


def shown_row(located: LocatedItem, reader: RecordReader | None, *, drops_joined: bool = False) -> Row | None:
    """Return the row of an item.

    With a reader the row has the bytes too, also those in place of a record. `drops_joined` is as in
    `parse_properties`.
    """
    row = row_of(located, with_hex=reader is not None, drops_joined=drops_joined)
    if row is not None and reader is not None and isinstance(located.item, Bad | Blank):
        raw = reader.raw(located.item.offset, 8 if isinstance(located.item, Blank) else RECORD_BYTES_MIN)
        row |= hex_of(record_fields(raw), located.item.offset)
    return row


def _collect(
    view: StoreView,
    judge: LogJudge,
    limit: int | None,
    from_offset: int,
    whole: bool,
    accepts: Callable[[Record], bool] | None,
    with_hex: bool,
    shown: Callable[[LocatedItem, RecordReader | None], Row | None],
    progress: Progress,
) -> tuple[list[Row], int, bool]:
    """Feed the judge; return the rows, and how many more there are.

    The third value tells whether the whole log was read.
    """
    rows: list[Row] = []
    left_out = 0
    start = 0 if whole else from_offset
    begin, end = log_range(view)
    reached = reading(max(start, begin), end, progress)
    with RecordReader(view) as bytes_reader:
        reader = bytes_reader if with_hex else None
        for located in iter_items(view, from_offset=start, on_file=judge.see_file_end, reached=reached):
            judge.see(located)
            if isinstance(located.item, Zeros) or not _matches(located, from_offset, accepts):
                pass
            elif limit is not None and len(rows) >= limit:
                left_out += 1
            elif (row := shown(located, reader)) is not None:
                rows.append(row)
            if not whole and limit is not None and len(rows) >= limit and not isinstance(located.item, Bad):
                return rows, left_out, False  # without reading the next item, which may be a file of zeros
    return rows, left_out, start <= (view.files[0].base_offset if view.files else 0)


def _matches(located: LocatedItem, from_offset: int, accepts: Callable[[Record], bool] | None) -> bool:
    item = located.item
    if accepts is not None and not (isinstance(item, Record) and accepts(item)):
        return False
    if item.offset >= from_offset:
        return True
    return isinstance(item, Record | Unreadable) and item.offset + item.size_bytes > from_offset


def more_or_none(rows: list[Row], limit: int | None) -> int | None:
    """Return 0 if all rows are shown, None if reading ended with the last allowed row."""
    return None if limit is not None and 0 < limit <= len(rows) else 0


def _figures(view: StoreView, judge: LogJudge, severities: list[str], *, is_complete: bool) -> dict[str, int]:
    min_offset = view.files[0].base_offset if view.files else 0
    max_offset = min_offset if judge.end_offset is None else judge.end_offset
    ends = {
        "max_offset": max_offset,
        "prefix_end_offset": max_offset if judge.prefix_end_offset is None else judge.prefix_end_offset,
    }
    is_seen = is_complete or judge.end_offset is not None
    return {
        "files": len(view.files),
        "file_bytes": view.file_bytes,
        "bytes": sum(file.size_bytes for file in view.files),
        "records": judge.record_count,
        "record_bytes": judge.record_bytes,
        "blanks": judge.blank_count,
        "unreadable_bytes": judge.unreadable_bytes,
        "min_offset": min_offset,
        **(ends if is_seen else {}),
        "live": int(view.live),
        "unclean": int(view.is_unclean),
        "findings": len(severities),
        "damages": severities.count("damage"),
        "tears": severities.count("tear"),
        "notes": severities.count("note"),
    }
