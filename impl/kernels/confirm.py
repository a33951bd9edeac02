"""Compiled twin of `impl.read.confirming.confirm_units`: one pass over units."""

from functools import lru_cache

import numpy as np
from numba import types
from numpy.typing import NDArray

from tornpage.impl.io.read_marks import SLOT_SHIFT
from tornpage.impl.kernels.compiling import INT, READ, WRITE, Bytes, kernel, kernel_part
from tornpage.impl.kernels.primitives import fetch_ahead, get32, get64
from tornpage.impl.kernels.records import read_record
from tornpage.impl.kernels.walk import valid_record
from tornpage.impl.message.codec import BLANK_BYTES
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.queue.units import PREFILL, UNIT
from tornpage.impl.read.confirming import Confirmed, Wanted

__all__ = ["confirm_units"]

_NUMBERS = types.Array(types.int64, 1, "C")
_ALWAYS, _ONCE, _NEVER = 0, 1, 2
_NO_QUEUE = 0x04
_, _PREFILL_BYTES, _ = UNIT.unpack(PREFILL)
_AHEAD = 4
"""Units between the one that is confirmed and the one whose record is fetched."""
_TAIL_BYTES = 96
"""Topic, properties and trailer of a usual record."""
_new_tuple = tuple.__new__
_NO_BITS = np.zeros(1, np.uint8)


@lru_cache(maxsize=4096)
def _bytes_of(topic: bytes) -> Bytes:
    return np.frombuffer(topic, np.uint8)


@lru_cache(maxsize=64)
def _numbers_of(limits: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(limits, np.int64)


def confirm_units(wanted: Wanted) -> Confirmed:
    """Confirm leading units as `impl.read.confirming` says."""
    (units, view, marks, trusts_all, topic, queue_id, number, base_offset, file_bytes, blank_position, readable_end,
     max_msg_nums, limits) = wanted  # fmt: skip
    if trusts_all:
        mode, bits, appended_from = _NEVER, _NO_BITS, 0
    elif marks is None:
        mode, bits, appended_from = _ALWAYS, _NO_BITS, 0
    else:
        mode, bits, appended_from = _ONCE, np.frombuffer(marks.all_bits(), np.uint8), marks.appended_from
    confirmed: Confirmed = _new_tuple(
        Confirmed,
        _confirm(
            np.frombuffer(units, np.uint8), np.frombuffer(view, np.uint8), bits, _bytes_of(topic), _numbers_of(limits),
            mode, appended_from, queue_id, number, base_offset, file_bytes, blank_position, readable_end, max_msg_nums,
        ),
    )  # fmt: skip
    return confirmed


@kernel_part
def _is_marked(bits: Bytes, position: int) -> bool:
    slot = position >> SLOT_SHIFT
    return bool((bits[slot >> 3] >> (slot & 7)) & 1)


@kernel_part
def _mark(bits: Bytes, position: int) -> None:
    slot = position >> SLOT_SHIFT
    bits[slot >> 3] = bits[slot >> 3] | (1 << (slot & 7))


@kernel_part
def _belongs(data: Bytes, position: int, size: int, base_offset: int, topic: Bytes, queue_id: int, number: int) -> bool:
    """Return whether a record has this size and is the message of this number in the queue."""
    found, topic_at, topic_bytes = read_record(data, position, len(data), base_offset)
    if found != size or topic_bytes != len(topic) or data[position + 39] & _NO_QUEUE:
        return False
    if get32(data, position + 12) != queue_id or get64(data, position + 20) != number:
        return False
    same = 0
    for index in range(topic_bytes):
        same += data[topic_at + index] == topic[index]
    return same == topic_bytes


@kernel(READ, READ, WRITE, READ, _NUMBERS, INT, INT, INT, INT, INT, INT, INT, INT, INT)
def _confirm(
    units: Bytes,
    data: Bytes,
    bits: Bytes,
    topic: Bytes,
    limits: NDArray[np.int64],
    mode: int,
    appended_from: int,
    queue_id: int,
    number: int,
    base_offset: int,
    file_bytes: int,
    blank_position: int,
    readable_end: int,
    max_msg_nums: int,
) -> tuple[int, int, int, bool]:
    count, size_bytes, behind_bytes = 0, 0, -1
    unit_count = len(units) // UNIT_BYTES
    while count < unit_count:
        at = count * UNIT_BYTES
        if count + _AHEAD < unit_count:
            next_at = at + _AHEAD * UNIT_BYTES
            next_position = get64(units, next_at) - base_offset
            next_end = next_position + get32(units, next_at + 8)
            fetch_ahead(data, next_position, next_position + 64)
            fetch_ahead(data, next_end - _TAIL_BYTES, next_end)
        offset, size = get64(units, at), get32(units, at + 8)
        position = offset - base_offset
        is_prefill = not offset and size == _PREFILL_BYTES
        if is_prefill or not 0 <= position < file_bytes or offset >= readable_end:
            break
        behind_bytes = readable_end - offset
        is_far = behind_bytes > limits[4]
        if count > 0:
            count_max = limits[3] if is_far else limits[1]
            bytes_max = limits[2] if is_far else limits[0]
            if count >= min(max_msg_nums, count_max) or size_bytes + size > bytes_max:
                return count, size_bytes, behind_bytes, True
        if offset + size > readable_end or position >= blank_position:
            break
        if mode == _NEVER or (mode == _ONCE and (position >= appended_from or _is_marked(bits, position))):
            if position + size + BLANK_BYTES > file_bytes or position + size > len(data):
                break
            if get64(data, position + 28) != offset:
                break
        elif valid_record(data, position, file_bytes, offset) == size:
            if mode == _ONCE:
                _mark(bits, position)
        else:
            break
        if not _belongs(data, position, size, base_offset, topic, queue_id, number + count):
            break
        count += 1
        size_bytes += size
    return count, size_bytes, behind_bytes, False
