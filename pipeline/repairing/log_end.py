"""Find where the log of a store stops being valid records without a gap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tornpage.pipeline.audit.store_rows import StoreRows
from tornpage.pipeline.repairing.queues import has_place
from tornpage.pipeline.rows.outline import LogRow
from tornpage.properties.decode.store import LogFile, StoreView

__all__ = ["LogEnd", "find_log_end"]


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of the prefix of valid records.

    `offset` is after its last record. `reason` says what follows, empty if the log ends there. `lost_records` and
    `lost_bytes` count the valid records after it.
    """

    offset: int
    reason: str
    lost_records: int
    lost_bytes: int


def find_log_end(view: StoreView, rows: StoreRows, file_units: int) -> LogEnd:
    """Return the end of the prefix; `file_units` is the number of units of a queue file.

    A record with a queue offset that its queue cannot have there ends the prefix too: no checksum covers that field.
    """
    offset, reason = _walk(view, rows.log_outline)
    misplaced = _first_misplaced(rows, offset, file_units)
    if misplaced is not None:
        offset, reason = misplaced
    lost = rows.records[rows.records["offset"] >= offset]
    is_cut = len(lost) or _has_bytes(rows.log_outline, offset)
    return LogEnd(offset, reason if is_cut else "", len(lost), int(lost["size"].sum()))


def _first_misplaced(rows: StoreRows, end: int, file_units: int) -> tuple[int, str] | None:
    """Return the first record before `end` without a place in its queue.

    Light queues may begin again at 0.
    """
    wanted = rows.wanted[(rows.wanted["offset"] < end) & ~rows.wanted["is_light"]]
    wanted = wanted[np.argsort(wanted["queue"], kind="stable")]
    starts = np.flatnonzero(np.diff(wanted["queue"], prepend=-1))
    lost = [
        queue[~has_place(queue["queue_offset"], file_units)]
        for start, stop in pairwise([*starts, len(wanted)])
        for queue in [wanted[start:stop]]
    ]
    first = min((each[0] for each in lost if len(each)), key=lambda row: int(row["offset"]), default=None)
    if first is None:
        return None
    topic, queue_id = rows.numbers.keys[first["queue"]]
    number = f"{first['queue_offset']} of {topic}/{queue_id}"
    return int(
        first["offset"]
    ), f"the record at {first['offset']} states queue offset {number}, which is not the next one"


def _walk(view: StoreView, outline: Iterable[LogRow]) -> tuple[int, str]:
    by_file: dict[str, list[LogRow]] = {}
    for row in outline:
        by_file.setdefault(row.file, []).append(row)
    offset = view.files[0].base_offset if view.files else 0
    for file in view.files:
        if file.base_offset != offset:
            return offset, f"{file.label} begins at {file.base_offset}, the file before ends at {offset}"
        offset, reason = _walk_file(file, by_file.get(file.label, []))
        if reason:
            return offset, reason
        offset = file.base_offset + view.file_bytes
    return offset, "the log ends"


def _walk_file(file: LogFile, rows: Iterable[LogRow]) -> tuple[int, str]:
    """Return the place after a file's last record, and why the next file does not continue."""
    offset = file.base_offset
    for row in rows:
        if row.kind == "run":
            offset = row.offset + row.size
        elif row.kind == "blank":
            return offset, ""
        elif row.kind == "bad":
            return offset, f"no valid record in {file.label} at {offset}: {row.reason}"
        elif row.kind == "zeros":
            return offset, f"{file.label} is empty from {offset} on"
        elif row.error is not None:
            return offset, f"{file.label} cannot be read from {offset} on: {row.error}"
    return offset, f"{file.label} ends at {offset} without an end mark"


def _has_bytes(outline: Iterable[LogRow], offset: int) -> bool:
    """Return whether bytes other than zeros follow the prefix, or cannot be read."""
    return any(
        (row.kind in ("bad", "unreadable", "blank") and row.offset >= offset) or row.error is not None
        for row in outline
    )
