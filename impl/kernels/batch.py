"""Compiled twin of `impl.message.batch`: equal results, without the interpreter lock.

It is many times faster. Compiled at import for the processor of the machine, and cached on disk. A batch that is
refused, or that needs more than copying, is left to the plain function, which alone decides the order of refusals.
"""

import numpy as np
from numba import types
from numpy.typing import NDArray

from tornpage.impl.kernels.compiling import INT, READ, WRITE, Bytes, kernel, kernel_part
from tornpage.impl.kernels.primitives import checksum, get32, put32, put64
from tornpage.impl.message import batch as plain
from tornpage.impl.message.batch import BatchFrame, EncodedBatch
from tornpage.impl.message.codec import PROPERTIES_BYTES_MAX, TRAILER_BYTES, ends_like_trailer
from tornpage.impl.message.message import PutStatus
from tornpage.impl.message.properties_text import CHECKSUM_NAME

__all__ = ["encode_batch", "place_batch"]

_DISPATCH_NAME = b"INNER_MULTI_DISPATCH"
_CHECKSUM_NAME = np.frombuffer(CHECKSUM_NAME.encode(), np.uint8)

_ENDS = types.Array(types.int64, 1, "C")


def encode_batch(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    """Return the records of a client batch body, or the status that refuses it."""
    template = plain.record_template(frame)
    bytes_max = min(frame.record_bytes_max, frame.room_bytes_max)
    if template is None or len(body) > frame.record_bytes_max or (frame.multi_dispatch and _DISPATCH_NAME in body):
        return plain.encode_batch(body, frame)
    if not frame.trailer and ends_like_trailer(frame.properties):
        return plain.encode_batch(body, frame)
    head_bytes, fixed_bytes = len(template), len(template) + 1 + len(frame.topic)
    shared = np.frombuffer(b"".join((template, bytes((len(frame.topic),)), frame.topic, frame.properties)), np.uint8)
    members = np.frombuffer(body, np.uint8)
    count, size_bytes = _measure(members, shared, fixed_bytes, frame.trailer)
    if not 0 < size_bytes <= bytes_max:
        return plain.encode_batch(body, frame)
    data, ends = bytearray(size_bytes), np.empty(count, np.int64)
    _write(members, shared, head_bytes, fixed_bytes, frame.trailer, np.frombuffer(data, np.uint8), ends)
    return EncodedBatch(data, ends.tolist(), store_timestamp_at=48 + len(frame.born_host), trailer=frame.trailer)


def place_batch(encoded: EncodedBatch, *, queue_offset: int, physical_offset: int, store_timestamp: int) -> None:
    """Fill in the fields known under the put lock, as `impl.message.batch.place_batch` does."""
    data = np.frombuffer(encoded.data, np.uint8)
    _place(data, encoded.store_timestamp_at, queue_offset, physical_offset, store_timestamp, encoded.trailer)


@kernel_part
def _copy(target: Bytes, source: Bytes) -> None:
    for index in range(len(source)):
        target[index] = source[index]


@kernel_part
def _is_text(data: Bytes) -> bool:
    """Return whether some bytes are UTF-8, by the rules of Python's decoder."""
    at = 0
    while at < len(data):
        first = data[at]
        if first < 0x80:
            more, low, high = 0, 0x80, 0xBF
        elif 0xC2 <= first <= 0xDF:
            more, low, high = 1, 0x80, 0xBF
        elif 0xE0 <= first <= 0xEF:
            more, low, high = 2, 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
        elif 0xF0 <= first <= 0xF4:
            more, low, high = 3, 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
        else:
            return False
        if at + more >= len(data):
            return False
        for index in range(at + 1, at + 1 + more):
            if not low <= data[index] <= high:
                return False
            low, high = 0x80, 0xBF
        at += 1 + more
    return True


@kernel_part
def _is_ordinary(data: Bytes) -> bool:
    """Return whether a message's properties are text without a checksum property.

    The plain function would remove it.
    """
    seen, nuls, hashes = 0, 0, 0
    for byte in data:  # no branches, so that the compiler can vectorise the loop
        seen |= byte
        nuls += byte == 0
        hashes += byte == 0x23
    if nuls or (seen >= 0x80 and not _is_text(data)):
        return False
    for start in range(len(data) - len(_CHECKSUM_NAME) + 1 if hashes else 0):
        same = 0
        for index in range(len(_CHECKSUM_NAME)):
            same += data[start + index] == _CHECKSUM_NAME[index]
        if same == len(_CHECKSUM_NAME):
            return False
    return True


@kernel_part
def _separators(own: Bytes, common: Bytes, trailer: bool) -> tuple[int, int]:
    """Return how many bytes 02 (0 or 1) go between the two parts of the properties and after."""
    between = len(own) > 0 and len(common) > 0 and own[-1] != 2
    last = common[-1] if len(common) > 0 else own[-1] if len(own) > 0 else 2
    return int(between), int(trailer and last != 2)


@kernel(READ, READ, INT, types.boolean)
def _measure(body: Bytes, shared: Bytes, fixed_bytes: int, trailer: bool) -> tuple[int, int]:
    """Return number and size in bytes of the records.

    Returns zeros if the kernel cannot encode the batch. `shared` is the part equal in each record: the template and the
    topic (`fixed_bytes`), and the batch's properties.
    """
    common = shared[fixed_bytes:]
    count, size_bytes, at = 0, 0, 0
    while at < len(body):
        if len(body) - at < 22:
            return 0, 0
        content_bytes = get32(body, at + 16)
        if not 0 <= content_bytes <= len(body) - at - 22:
            return 0, 0
        own_at = at + 22 + content_bytes
        own_bytes = (body[own_at - 2] << 8) | body[own_at - 1]
        end = own_at + own_bytes
        if own_bytes > PROPERTIES_BYTES_MAX or end > len(body) or get32(body, at) != end - at:
            return 0, 0
        own = body[own_at:end]
        between, after = _separators(own, common, trailer)
        properties_bytes = own_bytes + between + len(common) + after + (TRAILER_BYTES if trailer else 0)
        if properties_bytes > PROPERTIES_BYTES_MAX or not _is_ordinary(own):
            return 0, 0
        count += 1
        size_bytes += fixed_bytes + content_bytes + 2 + properties_bytes
        at = end
    return count, size_bytes


@kernel(READ, READ, INT, INT, types.boolean, WRITE, _ENDS)
def _write(
    body: Bytes, shared: Bytes, head_bytes: int, fixed_bytes: int, trailer: bool, data: Bytes, ends: NDArray[np.int64]
) -> None:
    """Write the records that `_measure` has counted, and their ends. `data` must be zero."""
    head, topic, common = shared[:head_bytes], shared[head_bytes:fixed_bytes], shared[fixed_bytes:]
    start, at = 0, 0
    for record in range(len(ends)):
        content = body[at + 20 : at + 20 + get32(body, at + 16)]
        own_at = at + 22 + len(content)
        own = body[own_at : at + get32(body, at)]
        between, after = _separators(own, common, trailer)
        properties_bytes = len(own) + between + len(common) + after + (TRAILER_BYTES if trailer else 0)
        end = start + fixed_bytes + len(content) + 2 + properties_bytes

        _copy(data[start:end], head)
        put32(data, start, end - start)
        put32(data, start + 8, checksum(content, 0, len(content)))
        put32(data, start + 16, get32(body, at + 12))
        put32(data, start + head_bytes - 4, len(content))
        _copy(data[start + head_bytes : end], content)
        to = start + head_bytes + len(content)
        _copy(data[to:end], topic)
        to += len(topic)
        data[to] = properties_bytes >> 8
        data[to + 1] = properties_bytes & 0xFF
        to += 2
        _copy(data[to:end], own)
        to += len(own)
        if between:
            data[to] = 2
        to += between
        _copy(data[to:end], common)
        if after:
            data[to + len(common)] = 2

        ends[record] = start = end
        at = own_at + len(own)


@kernel(WRITE, INT, INT, INT, INT, types.boolean)
def _place(
    data: Bytes, store_timestamp_at: int, queue_offset: int, physical_offset: int, store_timestamp: int, trailer: bool
) -> None:
    """Complete consecutive records in `data`.

    The trailer comes last, over all bytes before it.
    """
    start = 0
    while start < len(data):
        end = start + get32(data, start)
        put64(data, start + 20, queue_offset)
        put64(data, start + 28, physical_offset + start)
        put64(data, start + store_timestamp_at, store_timestamp)
        if trailer:
            at = end - TRAILER_BYTES
            value = checksum(data, start, at)
            _copy(data[at:end], _CHECKSUM_NAME)
            data[at + 8] = 1
            for index in range(at + 9, at + 19):  # ten digits, least significant first
                data[index] = 0x30 + value % 10
                value //= 10
            data[at + 19] = 2
        queue_offset += 1
        start = end
