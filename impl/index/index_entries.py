"""The inner loops of the index: entries put, compared with what the log says, or followed without the log.

    entry i at 20 * i:   0 keyHash (i32)   4 phyOffset (i64)   12 timeDiff (i32)   16 prevIndex (i32)
    slot s at 4 * s:     number of the newest entry with keyHash % slots == s (i32), 0 = none

`heads` are the slots of a file (writable), or a table of the same form that says what they have to hold; `entries` is
the rest of the file behind the slots. All numbers are big-endian. Entry numbers begin at 1, entry 0 stays zero. A chain
leads from its slot along `prevIndex` to smaller numbers and ends at 0.

A time difference is whole seconds from the begin of the file, at least 0, at most 2**31 - 1, and 0 while there is no
begin (0 or less). The begin is the time of entry 1, whose own difference is relative to the begin that the file has
inherited from the one before. Source: `IndexFile.putKey`.

Plain functions of plain arguments, so that compiled twins can stand in for them: `IndexEntries` names the set.
"""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = [
    "ENTRY",
    "ENTRY_BYTES",
    "PLAIN_ENTRIES",
    "SLOT",
    "SLOT_BYTES",
    "TIME_DIFFERENCE_MAX",
    "IndexEntries",
    "match_entries",
    "put_entries",
    "time_difference",
    "trace_entries",
]

ENTRY = struct.Struct(">iqii")
ENTRY_BYTES = 20
SLOT = struct.Struct(">i")
SLOT_BYTES = 4
TIME_DIFFERENCE_MAX = (1 << 31) - 1
_NO_TIMES = (1 << 63) - 1, -(1 << 63)

assert (ENTRY.size, SLOT.size) == (ENTRY_BYTES, SLOT_BYTES)


def time_difference(store_timestamp: int, begin_timestamp: int) -> int:
    """Return the seconds that an entry notes for a store time in milliseconds."""
    if begin_timestamp <= 0:
        return 0
    return min(max(0, store_timestamp - begin_timestamp) // 1000, TIME_DIFFERENCE_MAX)


def put_entries(
    heads: memoryview,
    entries: memoryview,
    number: int,
    begin_timestamp: int,
    hashes: Sequence[int],
    offsets: Sequence[int],
    store_timestamps: Sequence[int],
    start: int,
    end: int,
    mark: Callable[[str], None],
) -> tuple[int, int, int]:
    """Write the puts [start, end) as entries from `number` on, each before its slot.

    Returns how many slots were empty before, and the least and the greatest store time. `mark` is told what was just
    written, for the crash lab; a compiled twin may leave that out.
    """
    slots, used = len(heads) // SLOT_BYTES, 0
    least, greatest = _NO_TIMES
    for index in range(start, end):
        code, store_timestamp = hashes[index], store_timestamps[index]
        slot_position = code % slots * SLOT_BYTES
        (previous,) = SLOT.unpack_from(heads, slot_position)
        difference = time_difference(store_timestamp, begin_timestamp)
        ENTRY.pack_into(entries, number * ENTRY_BYTES, code, offsets[index], difference, previous)
        mark("entry")
        SLOT.pack_into(heads, slot_position, number)
        mark("slot")
        used += not previous
        least, greatest = min(least, store_timestamp), max(greatest, store_timestamp)
        if number == 1:
            begin_timestamp = store_timestamp
        number += 1
    return used, least, greatest


def match_entries(
    heads: memoryview,
    entries: memoryview,
    number: int,
    begin_timestamp: int,
    hashes: Sequence[int],
    offsets: Sequence[int],
    store_timestamps: Sequence[int],
    start: int,
    end: int,
) -> tuple[int, int, int, int]:
    """Compare the puts [start, end) with the entries from `number` on, byte for byte, up to the first difference.

    `heads` is a table that is brought forward by every entry that is as expected. Returns the index of the first put
    that is not there, and of those before it what `put_entries` returns.
    """
    slots, used = len(heads) // SLOT_BYTES, 0
    least, greatest = _NO_TIMES
    for index in range(start, end):
        code, store_timestamp = hashes[index], store_timestamps[index]
        slot_position = code % slots * SLOT_BYTES
        (previous,) = SLOT.unpack_from(heads, slot_position)
        difference = time_difference(store_timestamp, begin_timestamp)
        if ENTRY.unpack_from(entries, number * ENTRY_BYTES) != (code, offsets[index], difference, previous):
            return index, used, least, greatest
        SLOT.pack_into(heads, slot_position, number)
        used += not previous
        least, greatest = min(least, store_timestamp), max(greatest, store_timestamp)
        if number == 1:
            begin_timestamp = store_timestamp
        number += 1
    return end, used, least, greatest


def trace_entries(
    heads: memoryview, entries: memoryview, number: int, end_number: int, least_offset: int, end_offset: int
) -> tuple[int, int]:
    """Follow the entries [number, end_number) of records that are not at hand, as long as they are consistent.

    Each has an offset not below the one before it, the first not below `least_offset`, and all below `end_offset`; its
    hash and time difference are not negative, and it leads to the entry before it in its slot. `heads` is a table that
    is brought forward. Returns the number of the first entry that is not so, and how many slots were empty before.
    """
    slots, used = len(heads) // SLOT_BYTES, 0
    for found in range(number, end_number):
        code, offset, difference, previous = ENTRY.unpack_from(entries, found * ENTRY_BYTES)
        if code < 0 or difference < 0 or not least_offset <= offset < end_offset:
            return found, used
        slot_position = code % slots * SLOT_BYTES
        if SLOT.unpack_from(heads, slot_position) != (previous,):
            return found, used
        SLOT.pack_into(heads, slot_position, found)
        used += not previous
        least_offset = offset
    return end_number, used


class IndexEntries(NamedTuple):
    """The loops that an index uses; each is called as its plain function above, with positional arguments."""

    put_entries: Callable[..., tuple[int, int, int]]
    match_entries: Callable[..., tuple[int, int, int, int]]
    trace_entries: Callable[..., tuple[int, int]]


PLAIN_ENTRIES = IndexEntries(put_entries, match_entries, trace_entries)
