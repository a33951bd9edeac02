"""A unit: the 20 bytes that a consume queue has for each message.

    0 physical offset (i64)   8 size (i32)   12 tags code, or address in the extension (i64)

For numbers that no message has there is pre-fill: offset 0, the greatest size. Source: `ConsumeQueue`.
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
    """What a queue says of one message: where its record lies, how long it is, and its tags code or an address."""

    offset: int
    size: int
    tags_code: int

    @property
    def end_offset(self) -> int:
        """Physical offset behind the record."""
        return self.offset + self.size

    @property
    def is_prefill(self) -> bool:
        """Whether there is no message of this number."""
        return self == (0, _PREFILL_BYTES, 0)

    @property
    def is_possible(self) -> bool:
        """Whether it may point to a record."""
        return self.offset >= 0 and self.size > 0


def units_in(data: bytes) -> Iterator[Unit]:
    """Yield the units that some bytes are."""
    return itertools.starmap(Unit, UNIT.iter_unpack(data))


def count_possible(view: memoryview) -> int:
    """Return how many units of a file may point to a record, looked for as if there were no holes."""
    low, high = 0, len(view) // UNIT_BYTES
    while low < high:
        middle = (low + high) // 2
        offset, size, _ = UNIT.unpack_from(view, middle * UNIT_BYTES)
        low, high = (middle + 1, high) if offset >= 0 and size > 0 else (low, middle)
    return low
