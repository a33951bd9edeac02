"""The results of dispatch as values: queue units, extension units and index entries.

A dispatcher reads a range of one log file and returns what belongs in the consume queues and the index. It writes
nothing, so the live service, the reconciliation at open and the compiled twin share it.
Source: `CommitLog.checkMessageAndReturnSize`, `DispatchRequest`, docs/format.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey
from tornpage.impl.message.properties_text import PropertiesParser, parse_pairs

__all__ = [
    "BATCH_BYTES_MAX",
    "BLANK",
    "NO_INDEX_PUTS",
    "UNIT_BYTES",
    "DispatchRules",
    "Dispatched",
    "Dispatcher",
    "ExtDraft",
    "FilterBitMap",
    "IndexPuts",
    "QueueRun",
    "joined",
]

UNIT_BYTES = 20
"""One unit of a consume queue: physical offset (8), size (4), tags code or extension address (8), big-endian."""

BATCH_BYTES_MAX = 1 << 20
"""Bytes of records dispatched at a time, or one longer record. Bounds the memory of a batch."""

BLANK = "blank"
"""The reason of a dispatcher that reached the blank at the end of a file."""

FilterBitMap = Callable[[bytes, Mapping[str, str]], bytes]
"""Returns the bit map of the filters that a record passes, b"" for none. Arguments are topic and properties."""


class ExtDraft(NamedTuple):
    """The content of one extension unit; `bit_map` may be empty.

    `store_timestamp` is in milliseconds.
    """

    tags_code: int
    store_timestamp: int
    bit_map: bytes


class QueueRun(NamedTuple):
    """Units of consecutive numbers of one queue, in log order.

    `queue_offset` is the number of the first unit, `end_offset` the physical offset after the last record. `named` says
    that the records name this queue (multi-dispatch), whether or not it is their own. If the extension is enabled,
    `ext` has one draft for each unit in the records' own queue.
    """

    key: QueueKey
    queue_offset: int
    units: bytes
    end_offset: int
    ext: Sequence[ExtDraft] = ()
    named: bool = False


def joined(runs: Iterable[QueueRun]) -> list[QueueRun]:
    """Return the same units in as few runs as possible, those of each queue in their order."""
    found: list[list[QueueRun]] = []
    last: dict[QueueKey, tuple[list[QueueRun], int]] = {}
    for run in runs:
        row, following = last.get(run.key, ([], 0))
        if not row or run.queue_offset != following or _kind(run) != _kind(row[0]):
            row = []
            found.append(row)
        row.append(run)
        last[run.key] = row, run.queue_offset + len(run.units) // UNIT_BYTES
    return [row[0] if len(row) == 1 else _one(row) for row in found]


def _kind(run: QueueRun) -> tuple[bool, bool]:
    """Return the properties that all units of one run share."""
    return run.named, bool(run.ext)


def _one(row: Sequence[QueueRun]) -> QueueRun:
    """Merge consecutive runs into one."""
    units = b"".join([run.units for run in row])
    ext = [draft for run in row for draft in run.ext]
    first = row[0]
    return QueueRun(first.key, first.queue_offset, units, row[-1].end_offset, ext, first.named)


class IndexPuts(NamedTuple):
    """Index entries in put order, as parallel sequences (lists, or arrays of 64-bit integers)."""

    hashes: Sequence[int]
    offsets: Sequence[int]
    store_timestamps: Sequence[int]


NO_INDEX_PUTS = IndexPuts((), (), ())


class Dispatched(NamedTuple):
    """The result of dispatching a range of a log file.

    `end_position` is the position after the last record taken. `runs` are in the order of their first records.
    `store_timestamp` is the greatest of the records in milliseconds, 0 without any. `reason` says why dispatch stopped
    before the requested end: None at that end or at the size of a batch, "blank" at a blank, else the defect.
    """

    end_position: int
    records: int
    runs: Sequence[QueueRun]
    index: IndexPuts  # type: ignore[assignment]  # hides the unused method of tuples
    store_timestamp: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class DispatchRules:
    """The settings on which dispatch depends.

    `index` says whether there are index entries, `ext` whether units have drafts for the extension. `multi_dispatch` is
    None if named queues get no units. `parse` is the rule for properties. A batch ends with the record that
    reaches `batch_bytes_max`.
    """

    index: bool
    delay_levels: DelayLevels
    multi_dispatch: MultiDispatch | None
    ext: bool
    bit_map_of: FilterBitMap | None
    parse: PropertiesParser = parse_pairs
    batch_bytes_max: int = BATCH_BYTES_MAX


Dispatcher = Callable[..., Dispatched]
"""Called as `dispatch(view, position, end, rules)`; `[position, end)` is the readable range of one log file."""
