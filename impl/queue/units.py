"""A unit: the 20 bytes that a consume queue holds for each message.

    0 physical offset (i64)   8 size (i32)   12 tags code, or address in the extension (i64)

Numbers without a message hold pre-fill: offset 0 and the greatest size. Source: `ConsumeQueue`.
"""

import itertools
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tornpage.impl.message.dispatching import UNIT_BYTES

__all__ = ["PREFILL", "UNIT", "Unit", "count_possible", "units_in"]

UNIT = struct.Struct(">qiq")
assert UNIT.size == UNIT_BYTES

_PREFILL_BYTES = 0x7FFFFFFF
PREFILL = UNIT.pack(0, _PREFILL_BYTES, 0)
"""A unit for a number that has no message."""


class Unit(NamedTuple):
    """The entry of a queue for one message.

    `offset` is the physical offset of the record, `size` its length in bytes. `tags_code` is a tags code or an address
    in the extension.
    """

    offset: int
    size: int
    tags_code: int

    @property
    def end_offset(self) -> int:
        """Physical offset after the record."""
        return self.offset + self.size

    @property
    def is_prefill(self) -> bool:
        """Whether the number has no message."""
        return self == (0, _PREFILL_BYTES, 0)

    @property
    def is_possible(self) -> bool:
        """Whether the unit may point to a record."""
        return self.offset >= 0 and self.size > 0


def units_in(data: bytes) -> Iterator[Unit]:
    """Yield the units in some bytes, whose length must be a multiple of 20."""
    return itertools.starmap(Unit, UNIT.iter_unpack(data))


def count_possible(view: memoryview) -> int:
    """Return how many leading units of a file may point to a record.

    A binary search finds it, as if there were no holes.
    """
    low, high = 0, len(view) // UNIT_BYTES
    while low < high:
        middle = (low + high) // 2
        offset, size, _ = UNIT.unpack_from(view, middle * UNIT_BYTES)
        low, high = (middle + 1, high) if offset >= 0 and size > 0 else (low, middle)
    return low
