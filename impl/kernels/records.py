"""The parts of a record that dispatch reads, for the kernels.

The remark about Numba's cache in `impl.kernels.primitives` applies here too.
"""

import numpy as np
from numpy.typing import NDArray

from tornpage.impl.kernels.compiling import Bytes, kernel_part
from tornpage.impl.kernels.primitives import find_byte, get16, get32, get64
from tornpage.impl.kernels.text import java_hash
from tornpage.impl.message.codec import BORN_HOST_V6, MESSAGE_MAGIC, SMALLEST_RECORD_BYTES, STORE_HOST_V6
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC

__all__ = ["HASH", "is_schedule_topic", "read_properties", "read_record"]

HASH = 0
"""The row of the hashes in the table of index entries."""

_KEYS, _TAGS = 0x4B455953, 0x54414753
_UNIQ_KEY = 0x554E49515F4B4559
_INNER_MU, _LTI_DISP, _ATCH = 0x494E4E45525F4D55, 0x4C54495F44495350, 0x41544348
"""Names as numbers, which are compared faster than bytes."""
assert tuple(int.from_bytes(name) for name in (b"KEYS", b"TAGS")) == (_KEYS, _TAGS)
assert int.from_bytes(b"UNIQ_KEY") == _UNIQ_KEY
assert int.from_bytes(b"INNER_MULTI_DISPATCH") == (_INNER_MU << 96) + (_LTI_DISP << 32) + _ATCH
_SCHEDULE = np.frombuffer(SCHEDULE_TOPIC.encode(), np.uint8)
_SPACE = 0x20


@kernel_part
def is_schedule_topic(data: Bytes, topic_at: int, topic_bytes: int) -> bool:
    """Return whether a topic is the schedule topic."""
    if topic_bytes != len(_SCHEDULE):
        return False
    same = 0
    for index in range(len(_SCHEDULE)):
        same += data[topic_at + index] == _SCHEDULE[index]
    return same == len(_SCHEDULE)


@kernel_part
def read_record(data: Bytes, position: int, end: int, base_offset: int) -> tuple[int, int, int]:
    """Return size of the record at `position`, position and length of its topic.

    Returns zeros if the plain twin must decide. The rules are those of `plain.read_record`; `end` must not lie past the
    data. `base_offset` is a possible base offset of the file, most likely the one of this record, which saves a
    division.
    """
    if position + SMALLEST_RECORD_BYTES > end or get32(data, position + 4) != MESSAGE_MAGIC:
        return 0, 0, 0
    size, offset = get32(data, position), get64(data, position + 28)
    if size < SMALLEST_RECORD_BYTES or position + size > end:
        return 0, 0, 0
    if offset - position != base_offset and (offset < position or (offset - position) % len(data)):
        return 0, 0, 0
    sys_flag = data[position + 39]
    body_at = position + 88 + (12 if sys_flag & BORN_HOST_V6 else 0) + (12 if sys_flag & STORE_HOST_V6 else 0)
    if body_at + 3 > position + size:
        return 0, 0, 0
    topic_at = body_at + get32(data, body_at - 4)
    if not body_at <= topic_at <= position + size - 3:
        return 0, 0, 0
    topic_bytes = int(data[topic_at])
    properties_bytes = position + size - (topic_at + 3 + topic_bytes)
    if properties_bytes < 0 or get16(data, topic_at + 1 + topic_bytes) != properties_bytes:
        return 0, 0, 0
    return size, topic_at + 1, topic_bytes


@kernel_part
def read_properties(
    data: Bytes,
    topic_at: int,
    topic_bytes: int,
    at: int,
    end: int,
    multi: bool,
    index: bool,
    entries: NDArray[np.int64],
    entry_count: int,
) -> tuple[int, int, bool]:
    """Return tags code, count of added entries, and whether the kernel can handle the record."""
    tags_at, tags_end, unique_at, unique_end, keys_at, keys_end = 0, 0, 0, 0, 0, 0
    while at < end:
        start, at = at, find_byte(data, at, end, 2)
        size = at - start  # a pair counts when its value is not empty
        if size > 5 and data[start + 4] == 1:
            name = get32(data, start)
            if name == _TAGS:
                tags_at, tags_end = start + 5, at
            elif name == _KEYS:
                keys_at, keys_end = start + 5, at
        elif size > 9 and data[start + 8] == 1 and get64(data, start) == _UNIQ_KEY:
            unique_at, unique_end = start + 9, at
        elif (
            multi
            and size > 21
            and data[start + 20] == 1
            and get64(data, start) == _INNER_MU
            and get64(data, start + 8) == _LTI_DISP
            and get32(data, start + 16) == _ATCH
        ):
            return 0, 0, False
        at += 1
    tags_code, is_utf8 = java_hash(data, tags_at, tags_end, 0)
    if not is_utf8:
        return 0, 0, False
    if not index or (unique_at == unique_end and keys_at == keys_end):
        return tags_code, 0, True
    topic_hash, is_utf8 = java_hash(data, topic_at, topic_at + topic_bytes, 0)
    if not is_utf8:
        return 0, 0, False
    seed, added = 31 * topic_hash + 0x23, 0  # the topic and "#"
    while unique_at < unique_end or keys_at < keys_end:
        if unique_at < unique_end:
            key_at, key_end = unique_at, unique_end
            unique_at = unique_end
        else:
            key_at, key_end = keys_at, find_byte(data, keys_at, keys_end, _SPACE)
            keys_at = key_end + 1
            if key_at == key_end:
                continue
        code, is_utf8 = java_hash(data, key_at, key_end, seed)
        if not is_utf8 or entry_count + added >= entries.shape[1]:
            return 0, 0, False
        entries[HASH, entry_count + added] = 0 if code == -0x80000000 else abs(code)
        added += 1
    return tags_code, added, True
