"""Walk over valid records, compiled; the walk stops at anything else.

A record that it takes has passed every check of `properties.decode.record`. A record that it does not take may still be
valid: it may end past the available bytes, or have properties that only the plain decoder reads.
"""

import numpy as np
from numba import types
from numpy.typing import NDArray

from tornpage.properties.decode.arrays.compiling import (
    INT,
    READ,
    Bytes,
    Table,
    crc32,
    find_byte,
    i32_at,
    i64_at,
    kernel,
    u8_at,
)
from tornpage.properties.decode.arrays.compiling import kernel_part as part
from tornpage.properties.decode.arrays.hashing import hash_text, index_hash, wrapped

__all__ = [
    "DROPS_JOINED",
    "FULL",
    "STOPPED",
    "WITH_KEYS",
    "WITH_PROPERTIES",
    "copy_stretches",
    "walk_records",
]

FULL, STOPPED = 0, 1
"""Why the walk ended: a table is full, or the next bytes are not a record that it takes."""

WITH_PROPERTIES, WITH_KEYS, DROPS_JOINED = 1, 2, 4

_MAGIC = 0xDAA320A7 - (1 << 32)
_RECORD_BYTES_MIN = 92
_TRAILER_BYTES = 20
_BORN_V6, _STORE_V6 = 0x10, 0x20
_MARK = int.from_bytes(b"__CRC32#", "big")
_TAGS = int.from_bytes(b"TAGS", "big")
_KEYS = int.from_bytes(b"KEYS", "big")
_DELA = int.from_bytes(b"DELA", "big")
_UNIQ_KEY = int.from_bytes(b"UNIQ_KEY", "big")
_INNER_MU = int.from_bytes(b"INNER_MU", "big")
_ROLLED_BACK = 0x0C
_DELAY_DIGITS_MAX = 9

_TABLE = types.Array(types.int64, 2, "C")
_VALUES = types.Array(types.int64, 1, "C")
_SLOTS = types.Array(types.int32, 1, "C")
_POOL = types.Array(types.uint8, 1, "C")


@part
def _take_properties(
    data: Bytes, at: int, end: int, topic_at: int, topic_end: int, wants: int, keys: Table, key_count: int
) -> tuple[int, int, int, int]:
    """Return tags code, delay level, number of keys, and trouble.

    Trouble is 0 for none, 1 for a record that the kernel does not take, and 2 for a full table. With DROPS_JOINED the
    kernel takes no record with a pair of two separators.
    """
    with_keys = wants & WITH_KEYS != 0
    tags_at = tags_end = keys_at = keys_end = unique_at = unique_end = delay_at = delay_end = 0
    while at < end:
        stop = find_byte(data, at, end, 2)
        size = stop - at
        if wants & DROPS_JOINED and find_byte(data, find_byte(data, at, stop, 1) + 1, stop, 1) < stop:
            return 0, 0, 0, 1
        if size > 5:  # the shortest pair of interest is TAGS=x
            word = i32_at(data, at)
            if word == _TAGS and data[at + 4] == 1:
                tags_at, tags_end = at + 5, stop
            elif word == _KEYS and data[at + 4] == 1:
                keys_at, keys_end = at + 5, stop
            elif word == _DELA and size > 6 and data[at + 4] == 0x59 and data[at + 5] == 1:
                delay_at, delay_end = at + 6, stop
            elif size > 9:
                name = i64_at(data, at)
                if name == _UNIQ_KEY and data[at + 8] == 1:
                    unique_at, unique_end = at + 9, stop
                elif name == _INNER_MU:
                    return 0, 0, 0, 1
        at = stop + 1
    is_text, tags_code = hash_text(data, tags_at, tags_end, 0)
    if not is_text or delay_end - delay_at > _DELAY_DIGITS_MAX:
        return 0, 0, 0, 1
    delay = 0
    for place in range(delay_at, delay_end):
        digit = u8_at(data, place) - 0x30
        if not 0 <= digit <= 9:
            return 0, 0, 0, 1
        delay = delay * 10 + digit
    found = 0
    if with_keys and (unique_at or keys_at):
        is_text, start = hash_text(data, topic_at, topic_end, 0)
        if not is_text:
            return 0, 0, 0, 1
        start = (31 * start + 0x23) & 0xFFFFFFFF
        if unique_at:
            if key_count == len(keys):
                return 0, 0, 0, 2
            is_text, value = hash_text(data, unique_at, unique_end, start)
            if not is_text:
                return 0, 0, 0, 1
            keys[key_count] = index_hash(value)
            found = 1
        while keys_at < keys_end:
            stop = find_byte(data, keys_at, keys_end, 0x20)
            if stop > keys_at:
                if key_count + found == len(keys):
                    return 0, 0, 0, 2
                is_text, value = hash_text(data, keys_at, stop, start)
                if not is_text:
                    return 0, 0, 0, 1
                keys[key_count + found] = index_hash(value)
                found += 1
            keys_at = stop + 1
    return wrapped(tags_code), delay, found, 0


@part
def _topic_number(data: Bytes, at: int, end: int, pool: Bytes, ends: Table, slots: NDArray[np.int32]) -> int:
    """Return the number of a topic, which may be new; -1 if there is no room for it.

    `ends[n]` is the end of topic n in the pool, and `ends[-1]` the number of topics. `slots` is an open-addressing hash
    table of topic numbers plus one, 0 for a free slot. Its size is a power of two, and at least half of it is free.
    """
    value = end - at
    for place in range(at, end):
        value = (value * 31 + u8_at(data, place)) & 0xFFFFFFFF
    slot = (value ^ (value >> 15)) & (len(slots) - 1)
    count = ends[len(ends) - 1]
    while slots[slot] > 0:
        number = int(slots[slot]) - 1
        start = ends[number - 1] if number > 0 else 0
        size = ends[number] - start
        same = size == end - at
        for index in range(size if same else 0):
            same = same and pool[start + index] == data[at + index]
        if same:
            return number
        slot = (slot + 1) & (len(slots) - 1)
    start = ends[count - 1] if count > 0 else 0
    if count + 1 == len(ends) or 2 * count >= len(slots) or start + end - at > len(pool):
        return -1
    for index in range(end - at):
        pool[start + index] = data[at + index]
    ends[count] = start + end - at
    ends[len(ends) - 1] = count + 1
    slots[slot] = count + 1
    return int(count)


@part
def _has_wrong_trailer(data: Bytes, start: int, end: int) -> tuple[bool, int]:
    """Return whether a trailer is wrong, and its checksum (-1 without a trailer)."""
    at = end - _TRAILER_BYTES
    if i64_at(data, at) != _MARK or data[at + 8] != 1:
        return False, -1
    if data[end - 1] != 2:
        return True, -1
    value = 0
    for index in range(10):  # least significant digit first
        digit = u8_at(data, end - 2 - index) - 0x30
        if not 0 <= digit <= 9:
            return True, -1
        value = value * 10 + digit
    return value != crc32(data, start, at), value


@part
def _places_in(data: Bytes, at: int, offset: int, room_end: int, size_max: int) -> tuple[int, int, int, int]:
    """Return size, end of born host, end of store host and begin of properties of a record.

    The size is 0 if there is no record with the physical offset `offset`. All parts lie within the size, and the size
    within the available bytes.
    """
    if at + _RECORD_BYTES_MIN > len(data):
        return 0, 0, 0, 0
    size = i32_at(data, at)
    end = at + size
    if i32_at(data, at + 4) != _MAGIC or i64_at(data, at + 28) != offset:
        return 0, 0, 0, 0
    if size < _RECORD_BYTES_MIN or size > size_max or end > room_end or end > len(data):
        return 0, 0, 0, 0
    flags = i32_at(data, at + 36)
    born_end = at + (68 if flags & _BORN_V6 else 56)
    store_end = born_end + (28 if flags & _STORE_V6 else 16)
    body_at = store_end + 16
    if body_at + 4 > end:
        return 0, 0, 0, 0
    body_bytes = i32_at(data, store_end + 12)
    if body_bytes < 0 or body_at + body_bytes + 4 > end:
        return 0, 0, 0, 0
    topic_bytes = u8_at(data, body_at + body_bytes)
    properties_at = body_at + body_bytes + 1 + topic_bytes + 2
    if not 1 <= topic_bytes <= 127 or properties_at > end:
        return 0, 0, 0, 0
    properties_bytes = u8_at(data, properties_at - 2) << 8 | u8_at(data, properties_at - 1)
    if properties_bytes > 32767 or properties_at + properties_bytes != end:
        return 0, 0, 0, 0
    return size, born_end, store_end, properties_at


@part
def _is_sound(data: Bytes, body_at: int, body_end: int, body_crc: int, properties_at: int, end: int) -> bool:
    """Whether a body has its checksum, and neither topic nor properties have a zero byte."""
    if crc32(data, body_at, body_end) != body_crc:
        return False
    if find_byte(data, body_end + 1, properties_at - 2, 0) < properties_at - 2:
        return False
    return bool(find_byte(data, properties_at, end, 0) >= end)


@kernel(READ, INT, INT, INT, INT, INT, INT, _TABLE, INT, _VALUES, INT, _POOL, _VALUES, _SLOTS)
def walk_records(
    data: Bytes,
    at: int,
    limit: int,
    base: int,
    room_end: int,
    size_max: int,
    wants: int,
    table: Table,
    row: int,
    keys: Table,
    key_count: int,
    pool: Bytes,
    ends: Table,
    slots: NDArray[np.int32],
) -> tuple[int, int, int, int]:
    """Take records from `at` on that begin below `limit`.

    Returns (rows, keys, place, FULL or STOPPED).

    `base` is the physical offset of `data[0]`; at `room_end` the bytes that are kept free at the end of the file begin.
    """
    rows = table.shape[1]
    while at < limit:
        if row == rows:
            return row, key_count, at, FULL
        size, born_end, store_end, properties_at = _places_in(data, at, base + at, room_end, size_max)
        if not size:
            return row, key_count, at, STOPPED
        end = at + size
        flags, body_crc, body_bytes = i32_at(data, at + 36), i32_at(data, at + 8), i32_at(data, store_end + 12)
        body_end = store_end + 16 + body_bytes
        topic_at, topic_end = body_end + 1, properties_at - 2
        if not _is_sound(data, body_end - body_bytes, body_end, body_crc, properties_at, end):
            return row, key_count, at, STOPPED
        checksum = -1
        if end - properties_at >= _TRAILER_BYTES:
            is_wrong, checksum = _has_wrong_trailer(data, at, end)
            if is_wrong:
                return row, key_count, at, STOPPED
        tags_code = delay = found = 0
        if wants & WITH_PROPERTIES:
            asked = wants & ~WITH_KEYS if flags & _ROLLED_BACK == _ROLLED_BACK else wants
            tags_code, delay, found, trouble = _take_properties(
                data, properties_at, end, topic_at, topic_end, asked, keys, key_count
            )
            if trouble:
                return row, key_count, at, STOPPED if trouble == 1 else FULL
        topic = _topic_number(data, topic_at, topic_end, pool, ends, slots)
        if topic < 0:
            return row, key_count, at, STOPPED
        table[0, row] = base + at
        table[1, row] = size
        table[2, row] = body_crc
        table[3, row] = i32_at(data, at + 12)
        table[4, row] = i32_at(data, at + 16)
        table[5, row] = i64_at(data, at + 20)
        table[6, row] = flags
        table[7, row] = i64_at(data, at + 40)
        table[8, row] = i64_at(data, born_end)
        table[9, row] = i32_at(data, store_end)
        table[10, row] = i64_at(data, store_end + 4)
        table[11, row] = body_bytes
        table[12, row] = topic
        table[13, row] = end - properties_at
        table[14, row] = checksum
        table[15, row] = tags_code
        table[16, row] = delay
        table[17, row] = found
        key_count += found
        row += 1
        at = end
    return row, key_count, at, STOPPED


_ANY_VALUES = types.Array(types.int64, 1, "A")


@kernel(READ, _ANY_VALUES, _ANY_VALUES, _POOL)
def copy_stretches(data: Bytes, starts: Table, sizes: Table, target: Bytes) -> None:
    """Copy stretches of the bytes to the target, one after the other."""
    to = 0
    for row in range(len(starts)):
        at = starts[row]
        for index in range(sizes[row]):
            target[to + index] = data[at + index]
        to += sizes[row]
