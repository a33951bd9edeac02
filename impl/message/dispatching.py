"""What dispatch makes of the log: queue units, extension units and index entries, as values between the parts.

A dispatcher reads one stretch of one log file and says what belongs into the consume queues and into the index. It
writes nothing, so it serves the live service, the reconciliation at open, and the compiled twin alike.
Source: `CommitLog.checkMessageAndReturnSize`, `DispatchRequest`, docs/format.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey

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
"""So many bytes of records are dispatched at a time, or one record if it is longer: bounds what a batch may hold."""

BLANK = "blank"
"""The reason of a dispatcher that met the blank at the end of a file."""

FilterBitMap = Callable[[bytes, Mapping[str, str]], bytes]
"""Called with a record's topic and properties; returns the bit map of the filters it passes, b"" for none."""


class ExtDraft(NamedTuple):
    """What the extension of a queue is to hold about one unit; `bit_map` may be empty."""

    tags_code: int
    store_timestamp: int
    bit_map: bytes


class QueueRun(NamedTuple):
    """Units of consecutive numbers of one queue, in log order.

    `queue_offset` is the number of the first one, `end_offset` the physical offset behind the last record. `named` says
    that the records name this queue (multi-dispatch), be it their own or not. When the extension is enabled, `ext` has
    one draft for each unit of a queue that is their own.
    """

    key: QueueKey
    queue_offset: int
    units: bytes
    end_offset: int
    ext: Sequence[ExtDraft] = ()
    named: bool = False


def joined(runs: Iterable[QueueRun]) -> list[QueueRun]:
    """Return the same units in as few runs as may be, those of each queue in their order."""
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
    """Return what units of one run have in common."""
    return run.named, bool(run.ext)


def _one(row: Sequence[QueueRun]) -> QueueRun:
    """Return one run of several that follow each other."""
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
    """What a stretch of a log file gives.

    `end_position` is where in the file it ends, behind the last record taken. `runs` are in the order of their first
    records. `store_timestamp` is the greatest of the records, 0 without any. `reason` says why it stopped before the
    end asked for: None at that end or at the size of a batch, "blank" at a blank, else what is wrong.
    """

    end_position: int
    records: int
    runs: Sequence[QueueRun]
    index: IndexPuts  # type: ignore[assignment]  # hides a method of tuples that nobody calls
    store_timestamp: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class DispatchRules:
    """What a configuration makes of the records.

    `index` says whether there are index entries, `ext` whether units have drafts for the extension; `multi_dispatch`
    is None when named queues get no units. A batch ends with the record that reaches `batch_bytes_max`.
    """

    index: bool
    delay_levels: DelayLevels
    multi_dispatch: MultiDispatch | None
    ext: bool
    bit_map_of: FilterBitMap | None
    batch_bytes_max: int = BATCH_BYTES_MAX


Dispatcher = Callable[..., Dispatched]
"""Called as `dispatch(view, position, end, rules)`: `view` is one log file, `[position, end)` of it readable."""
