"""Decode consume queue files into columns, by NumPy without a kernel.

Rows are the units that `properties.decode.consumequeue.walk_units` yields, pre-fill units included. Its runs of empty
units are returned separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tornpage.properties.decode.consumequeue import PREFILL_BYTES, UNIT_BYTES, EmptyUnits
from tornpage.properties.decode.files import FileSource

__all__ = ["BATCH_UNITS", "QueueBatch", "UnitColumn", "unit_arrays"]

BATCH_UNITS = 65_536
_UNIT = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
assert _UNIT.itemsize == UNIT_BYTES


class UnitColumn(IntEnum):
    """The columns. CODE is the tags code, the due time or the extension address, as stored."""

    QUEUE_OFFSET = 0
    OFFSET = 1
    SIZE = 2
    CODE = 3


@dataclass(frozen=True, slots=True)
class QueueBatch:
    """Units of one file in order, and the empty runs before, between and after them.

    `table` has the shape (columns, units). A run that continues in the next batch counts as two runs.
    """

    table: NDArray[np.int64]
    empty: tuple[EmptyUnits, ...]

    def __len__(self) -> int:
        """Return the number of units."""
        return int(self.table.shape[1])

    def __getitem__(self, column: UnitColumn) -> NDArray[np.int64]:
        """Return one column."""
        values: NDArray[np.int64] = self.table[column]
        return values

    @property
    def is_prefill(self) -> NDArray[np.bool_]:
        """Which units fill the place of queue offsets that were never written."""
        filled: NDArray[np.bool_] = (self.table[UnitColumn.OFFSET] == 0) & (self.table[UnitColumn.CODE] == 0)
        filled &= self.table[UnitColumn.SIZE] == PREFILL_BYTES
        return filled


def unit_arrays(
    source: FileSource, *, base: int, position: int = 0, stop: int | None = None, batch_units: int = BATCH_UNITS
) -> Iterator[QueueBatch]:
    """Yield the units of a file between two positions, multiples of 20.

    The first byte of the file is at `base` in its queue. A truncated last unit is left out; holes are skipped.
    """
    while True:
        end = source.end if stop is None else min(source.end, stop)
        piece = source.read(position, min(batch_units * UNIT_BYTES, end - end % UNIT_BYTES - position))
        count = len(piece) // UNIT_BYTES
        if position >= end or not count:
            return
        number = (base + position) // UNIT_BYTES
        units = np.frombuffer(piece, _UNIT, count)
        table = np.empty((len(UnitColumn), count), np.int64)
        table[UnitColumn.QUEUE_OFFSET] = np.arange(number, number + count)
        table[UnitColumn.OFFSET] = units["offset"]
        table[UnitColumn.SIZE] = units["size"]
        table[UnitColumn.CODE] = units["code"]
        is_used = (table[1:] != 0).any(axis=0)
        if is_used.all():
            yield QueueBatch(table, ())
        elif is_used.any():
            yield QueueBatch(table[:, is_used], _runs(~is_used, number))
        else:
            next_used = min(source.next_nonzero(position), end)
            count = max(count, (next_used - position) // UNIT_BYTES)
            yield QueueBatch(table[:, :0], (EmptyUnits(number, count),))
        position += count * UNIT_BYTES


def _runs(is_empty: NDArray[np.bool_], number: int) -> tuple[EmptyUnits, ...]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_empty, [False])))).tolist()
    return tuple(EmptyUnits(number + first, last - first) for first, last in zip(edges[::2], edges[1::2], strict=True))
