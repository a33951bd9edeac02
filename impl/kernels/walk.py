"""Compiled twin of `impl.log.scan.walk_log`, at the speed of the checksum.

The kernel only confirms valid records. At the first other record the plain check decides, so reasons, blanks and
records that the kernel refuses needlessly are handled in one place.
"""

import numpy as np

from tornpage.impl.kernels.compiling import INT, READ, Bytes, kernel, kernel_part
from tornpage.impl.kernels.primitives import checksum, find_byte, get16, get32, get64
from tornpage.impl.log.scan import RecordChecker
from tornpage.impl.message import codec
from tornpage.impl.message.codec import (
    BLANK_BYTES,
    BORN_HOST_V6,
    MESSAGE_MAGIC,
    SMALLEST_RECORD_BYTES,
    STORE_HOST_V6,
    TRAILER_BYTES,
)
from tornpage.impl.message.codec import PROPERTIES_BYTES_MAX as _PROPERTIES_BYTES_MAX
from tornpage.impl.message.codec import TOPIC_BYTES_MAX as _TOPIC_BYTES_MAX

__all__ = ["valid_record", "walk_log"]

_TRAILER_START = np.frombuffer(b"__CRC32#\x01", np.uint8)


def walk_log(
    view: memoryview, position: int, *, file_bytes: int, base_offset: int, check: RecordChecker
) -> tuple[int, str | None]:
    """Walk the valid records from `position` on.

    Return their end and the reason, None for a blank.
    """
    while True:
        if check is codec.check_record and 0 <= position <= len(view):
            position = _walk(np.frombuffer(view, np.uint8), position, file_bytes, base_offset)
        size, reason = check(view, position, limit=file_bytes, offset=base_offset + position)
        if not size:
            return position, reason
        position += size


@kernel_part
def valid_record(data: Bytes, position: int, limit: int, offset: int) -> int:
    """Return the size of the valid record at `position`, 0 if there is none.

    The rules are those of `codec.check_record`. `limit` is the size of a whole file in bytes, `offset` the physical
    offset of `position`.
    """
    available = len(data)
    if position + SMALLEST_RECORD_BYTES > available or get32(data, position + 4) != MESSAGE_MAGIC:
        return 0
    total = get32(data, position)
    end = position + total
    if total < SMALLEST_RECORD_BYTES or end + BLANK_BYTES > limit or end > available:
        return 0
    if get64(data, position + 28) != offset:
        return 0
    sys_flag = data[position + 39]  # the host bits are in the lowest byte
    start = position + 88 + (12 if sys_flag & BORN_HOST_V6 else 0) + (12 if sys_flag & STORE_HOST_V6 else 0)
    if start + 3 > end:
        return 0
    topic_at = start + get32(data, start - 4)
    if not start <= topic_at <= end - 3:
        return 0
    topic_bytes = int(data[topic_at])
    properties_at = topic_at + 3 + topic_bytes
    properties_bytes = end - properties_at
    if not 1 <= topic_bytes <= _TOPIC_BYTES_MAX or not 0 <= properties_bytes <= _PROPERTIES_BYTES_MAX:
        return 0
    if get16(data, properties_at - 2) != properties_bytes:
        return 0
    topic_end = properties_at - 2
    if find_byte(data, topic_at + 1, topic_end, 0) < topic_end or find_byte(data, properties_at, end, 0) < end:
        return 0
    if checksum(data, start, topic_at) != get32(data, position + 8):
        return 0
    trailer_at = end - TRAILER_BYTES
    if properties_bytes < TRAILER_BYTES or not _is_trailer(data, trailer_at):
        return total
    return total if data[end - 1] == 2 and _stated(data, trailer_at) == checksum(data, position, trailer_at) else 0


@kernel_part
def _is_trailer(data: Bytes, at: int) -> bool:
    same = 0
    for index in range(len(_TRAILER_START)):
        same += data[at + index] == _TRAILER_START[index]
    return same == len(_TRAILER_START)


@kernel_part
def _stated(data: Bytes, at: int) -> int:
    """Return the checksum in a trailer, -1 if there is none.

    The least significant digit comes first.
    """
    value = 0
    for index in range(at + 18, at + 8, -1):
        digit = int(data[index]) - 0x30
        if not 0 <= digit <= 9:
            return -1
        value = value * 10 + digit
    return value


@kernel(READ, INT, INT, INT)
def _walk(data: Bytes, position: int, limit: int, base_offset: int) -> int:
    """Return the position after the last valid record."""
    while True:
        size = valid_record(data, position, limit, base_offset + position)
        if size == 0:
            return position
        position += size
