"""Bytes of the commit log and messages, both ways, without any I/O.

A record is drawn field by field in docs/format.md, "Commit log record". All integers are big-endian.

    0 total  4 magic  8 bodyCRC  12 queueId  16 flag  20 queueOffset  28 physicalOffset  36 sysFlag  40 bornTimestamp
    48 bornHost (8 or 20)  storeTimestamp (8)  storeHost (8 or 20)  reconsumeTimes (4)  preparedOffset (8)
    bodyLength (4)  body  topicLength (1)  topic  propertiesLength (2)  properties [ends with the checksum trailer]
"""

import socket
import struct
from collections.abc import Mapping
from functools import lru_cache

from isal.isal_zlib import crc32

from impl.message import Host, Message, PutStatus, StoredMessage

__all__ = [
    "BLANK_BYTES",
    "BLANK_MAGIC",
    "MESSAGE_MAGIC",
    "SMALLEST_RECORD_BYTES",
    "TRAILER_BYTES",
    "RecordCheck",
    "check_record",
    "decode_record",
    "encode_blank",
    "encode_record",
    "has_consume_queue",
    "message_id",
    "place_record",
    "queue_of_record",
    "wait_store_msg_ok",
]

MESSAGE_MAGIC = 0xDAA320A7 - (1 << 32)
BLANK_MAGIC = 0xCBD43194 - (1 << 32)
BLANK_BYTES = 8
SMALLEST_RECORD_BYTES = 92
TRAILER_BYTES = 20

_TRAILER_NAME = "__CRC32#"
_TRAILER_START = b"__CRC32#\x01"
_TOPIC_BYTES_MAX = 127
_PROPERTIES_BYTES_MAX = 32_767
_BORN_HOST_V6 = 0x10
_STORE_HOST_V6 = 0x20
_TRANSACTION_MASK = 0x0C
_TRANSACTION_NOT = 0x00
_TRANSACTION_COMMIT = 0x08

_HEAD = struct.Struct(">iiiiiqqiq")
_CHECKED = struct.Struct(">iiiqqi")
_QUEUE = struct.Struct(">iiqqi")
_OFFSETS = struct.Struct(">qq")
_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")
_AFTER_STORE_HOST = struct.Struct(">iqi")
_BLANK = struct.Struct(">ii")
assert _HEAD.size == 48
assert _AFTER_STORE_HOST.size == 16


@lru_cache(maxsize=1024)
def _host_bytes(host: Host) -> bytes:
    """Return 4 or 16 address bytes and the port as i32. Raises ValueError for what is no address."""
    address, port = host
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.inet_pton(family, address) + _I32.pack(port)
    except (OSError, struct.error, UnicodeError) as error:
        raise ValueError(f"no host: {host!r}") from error


@lru_cache(maxsize=1024)
def _host_text(packed: bytes) -> Host:
    family = socket.AF_INET if len(packed) == 8 else socket.AF_INET6
    return socket.inet_ntop(family, packed[:-4]), _I32.unpack(packed[-4:])[0]


def has_consume_queue(sys_flag: int) -> bool:
    """Return whether the record counts in its queue: not for prepared and rolled-back transactions."""
    return sys_flag & _TRANSACTION_MASK in (_TRANSACTION_NOT, _TRANSACTION_COMMIT)


def wait_store_msg_ok(properties: Mapping[str, str] | str) -> bool:
    """Return the property WAIT: absent or empty means true, anything but "true" in any case is false."""
    if isinstance(properties, str):
        if "WAIT\x01" not in properties:
            return True
        properties = _parse_properties(properties)
    return (properties.get("WAIT") or "true").lower() == "true"


def _parse_properties(text: str) -> dict[str, str]:
    """Return the map as RocketMQ reads it: short pairs, empty names and empty values vanish, the last name wins."""
    pairs = (segment.partition("\x01") for segment in text.split("\x02") if len(segment) >= 3)
    return {name: value for name, separator, value in pairs if name and separator and value}


def _properties_bytes(properties: Mapping[str, str] | str, *, trailer: bool) -> bytes | PutStatus:
    """Return the stored string without the trailer, but with the separator the trailer needs before it."""
    if isinstance(properties, str):
        text = properties
        if _TRAILER_NAME in text:
            text = "\x02".join(s for s in text.split("\x02") if s.partition("\x01")[0] != _TRAILER_NAME)
    else:
        pairs = [(name, value) for name, value in properties.items() if name != _TRAILER_NAME]
        if any("\x01" in name or "\x02" in name or "\x02" in value for name, value in pairs):
            return PutStatus.MESSAGE_ILLEGAL
        text = "\x02".join(f"{name}\x01{value}" for name, value in pairs)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return PutStatus.MESSAGE_ILLEGAL
    if trailer and data and data[-1] != 2:
        data += b"\x02"
    if len(data) + (TRAILER_BYTES if trailer else 0) > _PROPERTIES_BYTES_MAX:
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    return PutStatus.MESSAGE_ILLEGAL if 0 in data else data


def _topic_bytes(topic: str) -> bytes | PutStatus:
    try:
        data = topic.encode()
    except UnicodeEncodeError:
        return PutStatus.MESSAGE_ILLEGAL
    if not 1 <= len(data) <= _TOPIC_BYTES_MAX or 0 in data or b"/" in data or topic in (".", ".."):
        return PutStatus.MESSAGE_ILLEGAL
    return data


def encode_record(message: Message, *, now_ms: int, store_host: Host, trailer: bool) -> bytearray | PutStatus:
    """Return the record with queue offset, physical offset and store timestamp still 0, or why it is refused.

    `place_record` fills those in under the put lock. The host bits of sysFlag follow the addresses.
    Source: `CommitLog.MessageExtEncoder.encode`.
    """
    topic = _topic_bytes(message.topic)
    properties = _properties_bytes(message.properties, trailer=trailer)
    if isinstance(topic, PutStatus) or isinstance(properties, PutStatus):
        return topic if isinstance(topic, PutStatus) else PutStatus(properties)
    try:
        born_host = _host_bytes(message.born_host)
        stored_at = _host_bytes(message.store_host or store_host)
    except ValueError:
        return PutStatus.MESSAGE_ILLEGAL
    sys_flag = message.sys_flag & ~(_BORN_HOST_V6 | _STORE_HOST_V6)
    sys_flag |= (_BORN_HOST_V6 if len(born_host) == 20 else 0) | (_STORE_HOST_V6 if len(stored_at) == 20 else 0)
    body = message.body or b""
    properties_bytes = len(properties) + (TRAILER_BYTES if trailer else 0)
    total = 75 + len(born_host) + len(stored_at) + len(body) + len(topic) + properties_bytes
    born_timestamp = now_ms if message.born_timestamp is None else message.born_timestamp
    try:
        head = _HEAD.pack(
            total,
            MESSAGE_MAGIC,
            crc32(body) & 0x7FFFFFFF,
            message.queue_id,
            message.flag,
            0,
            0,
            sys_flag,
            born_timestamp,
        )
        after = _AFTER_STORE_HOST.pack(message.reconsume_times, message.prepared_transaction_offset, len(body))
    except struct.error:
        return PutStatus.MESSAGE_ILLEGAL
    if message.queue_id < 0:
        return PutStatus.MESSAGE_ILLEGAL
    lengths = properties_bytes.to_bytes(2, "big")
    tail = bytes(TRAILER_BYTES) if trailer else b""
    return bytearray(
        b"".join(
            (head, born_host, bytes(8), stored_at, after, body, bytes((len(topic),)), topic, lengths, properties, tail)
        )
    )


def place_record(
    record: bytearray, *, queue_offset: int, physical_offset: int, store_timestamp: int, trailer: bool
) -> None:
    """Fill in what is known only under the put lock, then the checksum trailer over all of it."""
    _OFFSETS.pack_into(record, 20, queue_offset, physical_offset)
    _I64.pack_into(record, 68 if record[39] & _BORN_HOST_V6 else 56, store_timestamp)
    if trailer:
        covered = memoryview(record)[:-TRAILER_BYTES]
        record[-TRAILER_BYTES:] = _trailer(crc32(covered) & 0x7FFFFFFF)


def _trailer(checksum: int) -> bytes:
    """Return the 20 bytes of the trailer: ten digits, least significant first. Source: docs/format.md, "Trailer"."""
    return _TRAILER_START + f"{checksum:010d}"[::-1].encode() + b"\x02"


def _states(trailer: bytes, checksum: int) -> bool:
    """Whether a trailer says this checksum; the same as comparing it with `_trailer`, in a third of the time."""
    digits = trailer[18:8:-1]
    return trailer[19] == 2 and digits.isdigit() and int(digits) == checksum


def encode_blank(remaining_bytes: int) -> bytes:
    """Return the 8 bytes that declare the rest of a file empty."""
    return _BLANK.pack(remaining_bytes, BLANK_MAGIC)


def message_id(store_host: Host, physical_offset: int) -> str:
    """Return the offset message id, 32 or 56 upper-case hex digits. Source: `MessageDecoder.createMessageId`."""
    return (_host_bytes(store_host) + _I64.pack(physical_offset)).hex().upper()


RecordCheck = tuple[int, str | None]
"""Size in bytes and None for a record, 0 and None for a blank, or 0 and the reason it is neither."""


def check_record(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Check what stands at `position` of a file: a valid record, a blank, or neither.

    A record is valid when position, lengths and body CRC hold, topic and properties are free of NUL, and a trailer,
    if there is one, matches. `limit` is the size of a whole file, of which a damaged one may hold less; `offset` is
    the physical offset of `position`.
    Source: `CommitLog.checkMessageAndReturnSize`, made complete (docs/format.md, "Valid record").
    """
    available = len(view)
    if position + BLANK_BYTES > available:
        return 0, "past_end"
    total, magic = _BLANK.unpack_from(view, position)
    if magic != MESSAGE_MAGIC:
        return (0, None) if magic == BLANK_MAGIC and total == limit - position else (0, "bad_magic")
    if total < SMALLEST_RECORD_BYTES or position + total + BLANK_BYTES > limit or position + total > available:
        return 0, "bad_length"
    body_crc, _, _, _, physical_offset, sys_flag = _CHECKED.unpack_from(view, position + 8)
    if physical_offset != offset:
        return 0, "bad_position"
    start = position + 88 + (12 if sys_flag & _BORN_HOST_V6 else 0) + (12 if sys_flag & _STORE_HOST_V6 else 0)
    end = position + total
    if start + 3 > end:
        return 0, "bad_length"
    topic_at = start + _I32.unpack_from(view, start - 4)[0]
    if not start <= topic_at <= end - 3:
        return 0, "bad_length"
    properties_at = topic_at + 3 + view[topic_at]
    if properties_at > end or end - properties_at > _PROPERTIES_BYTES_MAX:
        return 0, "bad_length"
    if (view[properties_at - 2] << 8) + view[properties_at - 1] != end - properties_at:
        return 0, "bad_length"
    if crc32(view[start:topic_at]) & 0x7FFFFFFF != body_crc:
        return 0, "bad_body_crc"
    text = bytes(view[topic_at + 1 : end])
    topic_bytes = view[topic_at]
    if not 1 <= topic_bytes <= _TOPIC_BYTES_MAX:
        return 0, "bad_topic_length"
    if text.find(0, 0, topic_bytes) >= 0:
        return 0, "nul_in_topic"
    if text.find(0, topic_bytes + 2) >= 0:
        return 0, "nul_in_properties"
    trailer = text[-TRAILER_BYTES:]
    if len(text) >= topic_bytes + 2 + TRAILER_BYTES and trailer.startswith(_TRAILER_START):
        checksum = crc32(view[position : end - TRAILER_BYTES]) & 0x7FFFFFFF
        return (total, None) if _states(trailer, checksum) else (0, "bad_checksum")
    return total, None


def queue_of_record(view: memoryview, position: int) -> tuple[bytes, int, int, int]:
    """Return topic bytes, queue id, queue offset and sysFlag of the valid record at `position`."""
    queue_id, _, queue_offset, _, sys_flag = _QUEUE.unpack_from(view, position + 12)
    start = position + 88 + (12 if sys_flag & _BORN_HOST_V6 else 0) + (12 if sys_flag & _STORE_HOST_V6 else 0)
    topic_at = start + _I32.unpack_from(view, start - 4)[0]
    return bytes(view[topic_at + 1 : topic_at + 1 + view[topic_at]]), queue_id, queue_offset, sys_flag


def decode_record(view: memoryview, position: int) -> StoredMessage:
    """Decode the record at `position`, which `check_record` has accepted."""
    total, _, body_crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born = _HEAD.unpack_from(
        view, position
    )
    at = position + 48
    born_host_bytes = 20 if sys_flag & _BORN_HOST_V6 else 8
    born_host = _host_text(bytes(view[at : at + born_host_bytes]))
    at += born_host_bytes
    store_timestamp = _I64.unpack_from(view, at)[0]
    at += 8
    store_host_bytes = 20 if sys_flag & _STORE_HOST_V6 else 8
    store_host = _host_text(bytes(view[at : at + store_host_bytes]))
    at += store_host_bytes
    reconsume_times, prepared_transaction_offset, body_bytes = _AFTER_STORE_HOST.unpack_from(view, at)
    at += 16
    body = bytes(view[at : at + body_bytes])
    at += body_bytes
    topic = bytes(view[at + 1 : at + 1 + view[at]]).decode(errors="replace")
    at += 3 + view[at]
    properties = _parse_properties(bytes(view[at : position + total]).decode(errors="replace"))
    properties.pop(_TRAILER_NAME, None)
    return StoredMessage(
        offset=physical_offset, size_bytes=total, topic=topic, queue_id=queue_id, queue_offset=queue_offset, body=body,
        properties=properties, flag=flag, sys_flag=sys_flag, born_timestamp=born, born_host=born_host,
        store_timestamp=store_timestamp, store_host=store_host, reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared_transaction_offset, body_crc=body_crc,
        message_id=message_id(store_host, physical_offset),
    )  # fmt: skip
