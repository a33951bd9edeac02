"""The inner loops of the index: put entries, compare them with the log, trace them.

    entry i at 20 * i:   0 keyHash (i32)   4 phyOffset (i64)   12 timeDiff (i32)   16 prevIndex (i32)
    slot s at 4 * s:     number of the newest entry with keyHash % slots == s (i32), 0 = none

`heads` are the slots of a file (writable), or a table of the same form with the expected slots. `entries` is the rest
of the file after the slots. All numbers are big-endian. Entry numbers begin at 1, and entry 0 stays zero. A chain leads
from its slot along `prevIndex` to smaller numbers and ends at 0.

A time difference is whole seconds from the begin time of the file, 0 to 2**31 - 1, and 0 while the begin time is 0 or
less. The begin time is the time of entry 1. The difference of entry 1 itself is relative to the begin time inherited
from the previous file. Source: `IndexFile.putKey`.

These are plain functions of plain arguments, so compiled twins can replace them: `IndexEntries` names the set.
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
    """Return the time difference of an entry in seconds, from times in milliseconds."""
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

    Returns the number of slots that were empty, and the least and greatest store time in milliseconds. `mark` is called
    after each write, for the crash lab; a compiled twin need not call it.
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
    """Compare puts with the entries from `number` on, up to the first difference.

    The puts are those in [start, end). `heads` is a table that every matching entry updates. Returns the index of the
    first put that does not match, and for those before it what `put_entries` returns.
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
    """Trace the entries [number, end_number) without their records, while consistent.

    Offsets ascend from at least `least_offset` and stay below `end_offset`. Hash and time difference are not negative,
    and each entry links to the previous one in its slot. `heads` is a table that every consistent entry updates.
    Returns the number of the first inconsistent entry, and the number of slots that were empty before.
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
    """The loops that an index uses.

    They are called with the positional arguments of the plain functions above.
    """

    put_entries: Callable[..., tuple[int, int, int]]
    match_entries: Callable[..., tuple[int, int, int, int]]
    trace_entries: Callable[..., tuple[int, int]]


PLAIN_ENTRIES = IndexEntries(put_entries, match_entries, trace_entries)
