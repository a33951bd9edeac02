"""What index files look like: their names, their sizes, their header, and what an entry's time says.

    0 header (40)   40 slots (4 each)   then entries (20 each), numbers 1 .. entries_max - 1, entry 0 stays zero

    header:  0 beginTimestamp (i64)   8 endTimestamp (i64)   16 beginPhyOffset (i64)   24 endPhyOffset (i64)
             32 hashSlotCount (i32)   36 indexCount (i32): number of the next entry, 0 while there is none

A file is named by the moment it was made, `yyyyMMddHHmmssSSS` in UTC, and greater than every name there was: two files
of one millisecond would be one file in RocketMQ, and a clock that went back would mix their order up.
Source: `IndexHeader`, `IndexFile`, `IndexService.getAndCreateLastIndexFile`.
"""

import datetime
import itertools
import re
import struct
from dataclasses import dataclass
from typing import NamedTuple, Self

from tornpage.impl.index.index_entries import ENTRY_BYTES, SLOT_BYTES, TIME_DIFFERENCE_MAX

__all__ = ["HEADER_BYTES", "IndexFileProof", "IndexHeader", "IndexLayout", "is_index_name", "may_lie", "name_after"]

_HEADER = struct.Struct(">qqqqii")
HEADER_BYTES = 40
assert _HEADER.size == HEADER_BYTES

_NAME = re.compile(r"[0-9]{17}", re.ASCII)
_FIELDS = 0, 4, 6, 8, 10, 12, 14, 17
"""Where year, month, day, hour, minute, second and millisecond begin, and the end."""
_EPOCH = datetime.datetime(1970, 1, 1)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_LAST_NAME = "99990000000000000"
"""Names from here on have no successor; nobody's clock made them."""


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """Where things lie in a file with so many slots and entries, entry 0 counted."""

    slots: int
    entries_max: int

    @property
    def entries_position(self) -> int:
        """Where entry 0 would lie."""
        return HEADER_BYTES + SLOT_BYTES * self.slots

    @property
    def file_bytes(self) -> int:
        """The size of every file."""
        return self.position_of(self.entries_max)

    def position_of(self, number: int) -> int:
        """Return where an entry lies."""
        return self.entries_position + ENTRY_BYTES * number


class IndexHeader(NamedTuple):
    """What the header says. Before the first entry, times and offsets are the end of the file before, or 0."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_offset: int = 0
    end_offset: int = 0
    slots_used: int = 0
    next_number: int = 1

    def inherited(self) -> "IndexHeader":
        """Return the header that the next file begins with. Source: the constructor of `IndexFile`."""
        timestamp, offset = max(0, self.end_timestamp), max(0, self.end_offset)
        return IndexHeader(timestamp, timestamp, offset, offset)

    def encode(self) -> bytes:
        """Return its bytes; without an entry it counts 0 and not 1, as in a file that was never put to."""
        return _HEADER.pack(*self[:5], self.next_number if self.next_number > 1 else 0)

    @classmethod
    def decode(cls, data: bytes, *, entries_max: int) -> Self:
        """Return what a file says; the number of its entries is one that a file can have."""
        header = cls(*_HEADER.unpack(data))
        return header._replace(next_number=min(max(1, header.next_number), entries_max))


class IndexFileProof(NamedTuple):
    """The entries that `header` counts, the least and the greatest store time among them.

    Of the last file the header may have moved on since.
    """

    path: str
    header: IndexHeader
    times: tuple[int, int]
    crc: int


def may_lie(header: IndexHeader, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
    """Return whether the record of an entry may have been stored in [begin_ms, end_ms].

    Entry 1 has the time of the file's begin; its difference is relative to an older one. A difference is cut to whole
    seconds; 0 is also noted for any time before the begin, the greatest one for any time behind it.
    """
    begin = header.begin_timestamp
    if number == 1:
        return begin_ms <= begin <= end_ms
    least = begin + 1000 * difference
    if begin <= 0:
        return True
    if difference == 0:
        return begin_ms <= begin + 999
    if difference == TIME_DIFFERENCE_MAX:
        return least <= end_ms
    return begin_ms <= least + 999 and least <= end_ms


def is_index_name(name: str) -> bool:
    """Return whether a name is a moment that has a next one."""
    if not _NAME.fullmatch(name) or name >= _LAST_NAME:
        return False
    try:
        _moment(name)
    except ValueError:
        return False
    return True


def name_after(last_name: str, now_ms: int) -> str:
    """Return the name of a file made now, greater than the last one, which may be empty."""
    now = _EPOCH + now_ms * _MILLISECOND
    if last_name:
        now = max(now, _moment(last_name) + _MILLISECOND)
    return f"{now.year:04d}{now:%m%d%H%M%S}{now.microsecond // 1000:03d}"


def _moment(name: str) -> datetime.datetime:
    """Return the moment of a name of 17 digits. Raises ValueError when there is none."""
    pairs = itertools.pairwise(_FIELDS)
    year, month, day, hour, minute, second, millisecond = (int(name[start:end]) for start, end in pairs)
    return datetime.datetime(year, month, day, hour, minute, second) + millisecond * _MILLISECOND
