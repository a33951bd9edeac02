"""A batch of messages as bytes: the client batch body and the records in the log.

Client batch body, one message after the other, all integers big-endian:

    0 total  4 magic (ignored)  8 bodyCRC (ignored)  12 flag  16 bodyLength (4)  20 body
    propertiesLength (2)  properties

The store writes one whole record per message (drawn in `impl.message.codec`), all or none. This module does no I/O.
Source: docs/format.md, "Batch body"; `MessageDecoder.encodeMessages`, `CommitLog.MessageExtEncoder`.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isal.isal_zlib import crc32

from tornpage.impl.message.codec import MESSAGE_MAGIC, PROPERTIES_BYTES_MAX, TRAILER_BYTES, ends_like_trailer
from tornpage.impl.message.message import BatchMember, PutStatus
from tornpage.impl.message.multi_dispatch import asks_for_dispatch
from tornpage.impl.message.properties_text import CHECKSUM_NAME, format_pairs

__all__ = ["BatchFrame", "EncodedBatch", "encode_batch", "encode_batch_body", "place_batch", "record_template"]

_MEMBER_HEAD = struct.Struct(">iiiii")
_MEMBER_BYTES = 22
"""Bytes of a message in a client batch body without its body and properties."""

_FIRST = struct.Struct(">iiiii")
_SHARED = struct.Struct(">qqiq")
_AFTER_STORE_HOST = struct.Struct(">iq")
_OFFSETS = struct.Struct(">qq")
_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")
_I16 = struct.Struct(">h")
assert _MEMBER_HEAD.size + _I16.size == _MEMBER_BYTES
assert _FIRST.size + _SHARED.size == 48
assert _AFTER_STORE_HOST.size + _I32.size == 16

_I32_MIN, _I32_MAX = -(1 << 31), (1 << 31) - 1
_HOST_BYTES = (8, 20)
_CHECKSUM_NAME = CHECKSUM_NAME.encode()

_Member = tuple[int, bytes, bytes]
"""Flag, body and properties of one message."""


@dataclass(frozen=True, slots=True)
class BatchFrame:
    """The fields shared by all records of a batch, and their bounds.

    `topic` is valid. The host bits of `sys_flag` match the hosts: 8 bytes for IPv4, 20 for IPv6, none for an invalid
    address, which `encode_batch` refuses. `properties` are those of the batch, without UNIQ_KEY and checksum.
    `record_bytes_max` limits the body and the sum of the records and is below 2 GiB. `room_bytes_max` is the largest
    sum that fits an empty file: file size - 8.
    """

    topic: bytes
    queue_id: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    reconsume_times: int
    properties: bytes
    trailer: bool
    record_bytes_max: int
    room_bytes_max: int
    multi_dispatch: bool


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Consecutive records without a place.

    Queue offsets, physical offsets, store timestamps and trailers are still zero. `ends` are the positions in `data`
    where the records end. `store_timestamp_at` is the position of the store timestamp in each record.
    """

    data: bytearray
    ends: Sequence[int]
    store_timestamp_at: int
    trailer: bool


def encode_batch_body(members: Iterable[BatchMember]) -> bytes:
    """Return the client batch body of the messages, in their order.

    Raises ValueError if there is no message or one has no encoding. Source: `MessageDecoder.encodeMessages`.
    """
    parts: list[bytes] = []
    for index, member in enumerate(members):
        properties = _client_properties(index, member)
        total = _MEMBER_BYTES + len(member.body) + len(properties)
        if not _I32_MIN <= member.flag <= _I32_MAX:
            raise ValueError(f"message {index}: flag {member.flag} has more than 32 bits; use a smaller one")
        if total > _I32_MAX:
            raise ValueError(f"message {index}: body of {len(member.body)} bytes; keep it below 2 GiB")
        parts += (
            _MEMBER_HEAD.pack(total, 0, 0, member.flag, len(member.body)),
            member.body,
            _I16.pack(len(properties)),
            properties,
        )
    if not parts:
        raise ValueError("a batch without a message; give at least one")
    return b"".join(parts)


def _client_properties(index: int, member: BatchMember) -> bytes:
    text = member.properties
    if not isinstance(text, str):
        for name, value in text.items():
            if "\x01" in name or "\x02" in name or "\x02" in value:
                raise ValueError(f"message {index}: property {name!r} holds a separator, byte 01 or 02; leave it out")
        text = format_pairs(text)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"message {index}: properties hold a lone surrogate; leave it out") from None
    if len(data) > PROPERTIES_BYTES_MAX:
        raise ValueError(
            f"message {index}: properties of {len(data)} bytes; keep them at {PROPERTIES_BYTES_MAX} or less"
        )
    return data


def encode_batch(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    """Return the records of a client batch body, or the status that refuses the batch.

    `place_batch` completes them. The rows of docs/statuses.md, "put of a batch", about body, messages, hosts and
    numbers apply in their order: an earlier row wins even if a later message causes it. Source:
    `CommitLog.MessageExtEncoder.encode` for `MessageExtBatch`.
    """
    members = _members(body) if len(body) <= frame.record_bytes_max else None
    if not members:
        return PutStatus.MESSAGE_ILLEGAL
    if frame.multi_dispatch and any(asks_for_dispatch(own.decode(errors="replace")) for _, _, own in members):
        return PutStatus.MESSAGE_ILLEGAL
    stored = [_stored_properties(own, frame) for _, _, own in members]
    reserved_bytes = TRAILER_BYTES if frame.trailer else 0
    if any(len(properties) + reserved_bytes > PROPERTIES_BYTES_MAX for properties in stored):
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    template = record_template(frame)
    if template is None or not all(map(_is_text, stored)):
        return PutStatus.MESSAGE_ILLEGAL
    if not frame.trailer and any(map(ends_like_trailer, stored)):
        return PutStatus.MESSAGE_ILLEGAL
    fixed_bytes = len(template) + 1 + len(frame.topic) + _I16.size + reserved_bytes
    size_bytes = sum(fixed_bytes + len(member[1]) + len(text) for member, text in zip(members, stored, strict=True))
    if size_bytes > min(frame.record_bytes_max, frame.room_bytes_max):
        return PutStatus.MESSAGE_ILLEGAL
    return _written(members, stored, template, frame)


def place_batch(encoded: EncodedBatch, *, queue_offset: int, physical_offset: int, store_timestamp: int) -> None:
    """Fill in the fields known under the put lock; the offsets are those of the first record.

    Each record gets its checksum trailer last, over all preceding bytes. May be called again with other offsets.
    """
    data = memoryview(encoded.data)
    start = 0
    for index, end in enumerate(encoded.ends):
        _OFFSETS.pack_into(data, start + 20, queue_offset + index, physical_offset + start)
        _I64.pack_into(data, start + encoded.store_timestamp_at, store_timestamp)
        if encoded.trailer:
            # ten digits, least significant first (docs/format.md, "Trailer")
            digits = (b"%010d" % (crc32(data[start : end - TRAILER_BYTES]) & 0x7FFFFFFF))[::-1]
            data[end - TRAILER_BYTES : end] = b"%b\x01%b\x02" % (_CHECKSUM_NAME, digits)
        start = end


def record_template(frame: BatchFrame) -> bytes | None:
    """Return the first 88 to 112 bytes of each record, up to its body.

    Fields that differ per record are zero. Returns None if the batch is illegal: properties that are not UTF-8, an
    invalid address, or a number out of range.
    """
    hosts = (frame.born_host, frame.store_host)
    if frame.queue_id < 0 or not _is_text(frame.properties) or any(len(host) not in _HOST_BYTES for host in hosts):
        return None
    try:
        return b"".join(
            (
                _FIRST.pack(0, MESSAGE_MAGIC, 0, frame.queue_id, 0),
                _SHARED.pack(0, 0, frame.sys_flag, frame.born_timestamp),
                frame.born_host,
                bytes(_I64.size),
                frame.store_host,
                _AFTER_STORE_HOST.pack(frame.reconsume_times, 0),
                bytes(_I32.size),
            )
        )
    except struct.error:
        return None


def _members(body: bytes) -> list[_Member] | None:
    """Return the messages of a client batch body; None if it does not parse."""
    members: list[_Member] = []
    at = 0
    while at < len(body):
        if len(body) - at < _MEMBER_BYTES:
            return None
        total, _, _, flag, content_bytes = _MEMBER_HEAD.unpack_from(body, at)
        if not 0 <= content_bytes <= len(body) - at - _MEMBER_BYTES:
            return None
        properties_at = at + _MEMBER_BYTES + content_bytes
        properties_bytes = _I16.unpack_from(body, properties_at - _I16.size)[0]
        end = properties_at + properties_bytes
        if properties_bytes < 0 or end > len(body) or total != end - at:
            return None
        members.append((flag, body[at + 20 : properties_at - _I16.size], body[properties_at:end]))
        at = end
    return members


def _stored_properties(properties: bytes, frame: BatchFrame) -> bytes:
    """Return a message's properties and those of the batch.

    They end with the separator that a trailer needs before it.
    """
    if _CHECKSUM_NAME in properties:
        segments = properties.split(b"\x02")
        properties = b"\x02".join(s for s in segments if s.partition(b"\x01")[0] != _CHECKSUM_NAME)
    if properties and frame.properties and properties[-1] != 2:
        properties += b"\x02"
    properties += frame.properties
    return properties + b"\x02" if frame.trailer and properties and properties[-1] != 2 else properties


def _written(members: Sequence[_Member], stored: Sequence[bytes], template: bytes, frame: BatchFrame) -> EncodedBatch:
    shared = template[_FIRST.size : -_I32.size]
    topic = bytes((len(frame.topic),)) + frame.topic
    reserved = bytes(TRAILER_BYTES if frame.trailer else 0)
    fixed_bytes = len(template) + len(topic) + _I16.size + len(reserved)
    data, ends = bytearray(), []
    for (flag, content, _), properties in zip(members, stored, strict=True):
        total = fixed_bytes + len(content) + len(properties)
        data += b"".join(
            (
                _FIRST.pack(total, MESSAGE_MAGIC, crc32(content) & 0x7FFFFFFF, frame.queue_id, flag),
                shared,
                _I32.pack(len(content)),
                content,
                topic,
                _I16.pack(len(properties) + len(reserved)),
                properties,
                reserved,
            )
        )
        ends.append(len(data))
    return EncodedBatch(data, ends, store_timestamp_at=48 + len(frame.born_host), trailer=frame.trailer)


def _is_text(properties: bytes) -> bool:
    """Return whether some bytes are UTF-8 without NUL."""
    try:
        properties.decode()
    except UnicodeDecodeError:
        return False
    return 0 not in properties
