"""The layout of index files: names, sizes, header, and the time of an entry.

    0 header (40)   40 slots (4 each)   then entries (20 each), numbers 1 .. entries_max - 1, entry 0 stays zero

    header:  0 beginTimestamp (i64)   8 endTimestamp (i64)   16 beginPhyOffset (i64)   24 endPhyOffset (i64)
             32 hashSlotCount (i32)   36 indexCount (i32): number of the next entry, 0 while there is none

A file is named by the time of its creation, `yyyyMMddHHmmssSSS` in UTC, and its name is greater than all earlier ones.
In RocketMQ two files of one millisecond would be the same file, and a clock that went back would change their order.
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
"""The positions of year, month, day, hour, minute, second and millisecond, and the end."""
_EPOCH = datetime.datetime(1970, 1, 1)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_LAST_NAME = "99990000000000000"
"""Names from here on have no successor; no clock made them."""


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The positions in a file with a number of slots and of entries, entry 0 counted."""

    slots: int
    entries_max: int

    @property
    def entries_position(self) -> int:
        """The position of entry 0."""
        return HEADER_BYTES + SLOT_BYTES * self.slots

    @property
    def file_bytes(self) -> int:
        """The size of every file in bytes."""
        return self.position_of(self.entries_max)

    def position_of(self, number: int) -> int:
        """Return the position of an entry."""
        return self.entries_position + ENTRY_BYTES * number


class IndexHeader(NamedTuple):
    """The header.

    Before the first entry, times (ms) and offsets are those of the previous file's end, or 0.
    """

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_offset: int = 0
    end_offset: int = 0
    slots_used: int = 0
    next_number: int = 1

    def inherited(self) -> "IndexHeader":
        """Return the first header of the next file. Source: the constructor of `IndexFile`."""
        timestamp, offset = max(0, self.end_timestamp), max(0, self.end_offset)
        return IndexHeader(timestamp, timestamp, offset, offset)

    def agrees_with(self, right: "IndexHeader") -> bool:
        """Return whether this header is right for its entries.

        Up to 4.6.1 RocketMQ increases `hashSlotCount` with each entry, not with each used slot. If it continues a file
        of another writer, the count lies between. No reader uses that count. Source: `IndexFile.putKey` of 4.6.1 and
        4.7.1.
        """
        if right.slots_used <= self.slots_used < self.next_number:
            return self._replace(slots_used=right.slots_used) == right
        return self == right

    def encode(self) -> bytes:
        """Return the bytes of the header.

        Without an entry the stored count is 0, as in a file never written to.
        """
        return _HEADER.pack(*self[:5], self.next_number if self.next_number > 1 else 0)

    @classmethod
    def decode(cls, data: bytes, *, entries_max: int) -> Self:
        """Return the header in some bytes, with the count limited to a possible one."""
        header = cls(*_HEADER.unpack(data))
        return header._replace(next_number=min(max(1, header.next_number), entries_max))


class IndexFileProof(NamedTuple):
    """The checksum of the entries that `header` counts.

    `times` are their least and greatest store time in milliseconds. The header of the last file may have advanced
    since.
    """

    path: str
    header: IndexHeader
    times: tuple[int, int]
    crc: int


def may_lie(header: IndexHeader, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
    """Return whether the record of an entry may have been stored in [begin_ms, end_ms].

    Entry 1 has the begin time of the file; its difference is relative to an older time. A difference is truncated to
    whole seconds. It is 0 also for any time before the begin, and the greatest value also for any later time.
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
    """Return whether a name is a valid time with a successor."""
    if not _NAME.fullmatch(name) or name >= _LAST_NAME:
        return False
    try:
        _moment(name)
    except ValueError:
        return False
    return True


def name_after(last_name: str, now_ms: int) -> str:
    """Return the name of a file created now, greater than the last name, which may be empty."""
    now = _EPOCH + now_ms * _MILLISECOND
    if last_name:
        now = max(now, _moment(last_name) + _MILLISECOND)
    return f"{now.year:04d}{now:%m%d%H%M%S}{now.microsecond // 1000:03d}"


def _moment(name: str) -> datetime.datetime:
    """Return the time in a name of 17 digits. Raises ValueError if it is none."""
    pairs = itertools.pairwise(_FIELDS)
    year, month, day, hour, minute, second, millisecond = (int(name[start:end]) for start, end in pairs)
    return datetime.datetime(year, month, day, hour, minute, second) + millisecond * _MILLISECOND
