"""Find where a consume queue begins and ends, without reading all of it.

The queue ends after the first run of units without a gap, in the last file that has units. It begins at the first unit
of a record that the log still has. Only files at its two ends are read.

Source: RocketMQ's `ConsumeQueue.recover` and `correctMinOffset`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.properties.decode.consumequeue import PREFILL_BYTES, UNIT_BYTES, QueueFile, QueueUnit, walk_units
from tornpage.properties.decode.files import FileSource

__all__ = ["QueueBounds", "empty_runs", "first_unit_from", "queue_bounds"]

_PIECE_BYTES = 1 << 20
_ALIGNED_BYTES = _PIECE_BYTES - _PIECE_BYTES % UNIT_BYTES
_EMPTY = bytes(UNIT_BYTES)
_UNIT = struct.Struct(">qiq")


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Bounds of a queue.

    `min_offset` and `max_offset` are unit numbers, equal in a queue without messages.

    `last_offset` is the begin of the record of the last unit, `max_physic_offset` the end of that record (-1 without
    units). `after_gap` is the number of the first unit after empty ones, None if there is none.
    """

    min_offset: int
    max_offset: int
    max_physic_offset: int
    last_offset: int
    after_gap: int | None


def queue_bounds(files: Sequence[QueueFile], *, log_min: int) -> QueueBounds:
    """Return the bounds of one queue with these files. Raises OSError if one is unreadable."""
    end, last, after_gap = _end_of(files)
    if last is None:
        start = files[0].base // UNIT_BYTES if files else 0
        return QueueBounds(start, start, -1, -1, None)
    first = first_unit_from(files, physical_offset=log_min)
    begin = end if first is None else min(first, end)
    return QueueBounds(begin, end, last[0] + last[1], last[0], after_gap)


def first_unit_from(files: Sequence[QueueFile], *, physical_offset: int) -> int | None:
    """Return the number of the first unit whose record is at or after a physical offset."""
    for file in files:
        with FileSource(file.path, size_bytes_max=file.size_bytes, piece_bytes=_PIECE_BYTES) as source:
            if _last_below(source, physical_offset):
                continue
            for item in walk_units(source, base=file.base):
                if isinstance(item, QueueUnit) and not item.is_prefill and item.physical_offset >= physical_offset:
                    return item.queue_offset
    return None


def empty_runs(files: Sequence[QueueFile]) -> list[tuple[QueueFile, int, int]]:
    """Return the runs of empty units before the last unit of a queue.

    A run is its file, the number of its first unit, and its count.

    Cost: one pass over the files. Raises OSError if one cannot be read.
    """
    found: list[tuple[QueueFile, int, int]] = []
    waiting: list[tuple[QueueFile, int, int]] = []
    for file in files:
        with FileSource(file.path, size_bytes_max=file.size_bytes, piece_bytes=_PIECE_BYTES) as source:
            position, whole = 0, source.end - source.end % UNIT_BYTES
            while position < whole:
                empty = _first_empty(source, position, whole)
                if empty > position:
                    found += waiting
                    waiting = []
                if empty >= whole:
                    break
                position = source.next_nonzero(empty)
                position = whole if position >= whole else position - position % UNIT_BYTES
                waiting.append((file, (file.base + empty) // UNIT_BYTES, (position - empty) // UNIT_BYTES))
    return found


def _last_below(source: FileSource, physical_offset: int) -> bool:
    """Whether the record of the last unit of a full file is below, so the file can be skipped."""
    end = source.end - source.end % UNIT_BYTES
    stored = source.read(end - UNIT_BYTES, UNIT_BYTES) if end else b""
    if len(stored) < UNIT_BYTES or stored == _EMPTY:
        return False
    offset, size, _ = _UNIT.unpack(stored)
    return bool(size != PREFILL_BYTES and 0 <= offset < physical_offset)


def _end_of(files: Sequence[QueueFile]) -> tuple[int, tuple[int, int] | None, int | None]:
    """Return the end of a queue, offset and size of its last record, and a unit after a gap.

    The end is the number after the last unit. The unit after a gap is the first one, or None.
    """
    for file in reversed(files):
        with FileSource(file.path, size_bytes_max=file.size_bytes, piece_bytes=_PIECE_BYTES) as source:
            position = source.next_nonzero(0)
            position -= position % UNIT_BYTES
            whole = source.end - source.end % UNIT_BYTES
            if position >= whole:
                continue
            end = _first_empty(source, position, whole)
            offset, size, _ = _UNIT.unpack(source.read(end - UNIT_BYTES, UNIT_BYTES))
            next_used = source.next_nonzero(end) if end < whole else whole
            gap = (file.base + next_used) // UNIT_BYTES if next_used < whole else None
            return (file.base + end) // UNIT_BYTES, (offset, size), gap
    return 0, None, None


def _first_empty(source: FileSource, position: int, end: int) -> int:
    """Return the position of the first empty unit at or after `position`, or `end`."""
    while position < end:
        piece = source.read(position, min(_ALIGNED_BYTES, end - position))
        piece = piece[: len(piece) - len(piece) % UNIT_BYTES]
        if not piece:
            return position
        at = piece.find(_EMPTY)
        while at >= 0:
            aligned = at + -at % UNIT_BYTES
            if piece[aligned : aligned + UNIT_BYTES] == _EMPTY:
                return position + aligned
            at = piece.find(_EMPTY, at + 1)
        position += len(piece)
    return end
