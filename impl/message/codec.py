"""Encoding and decoding of log records, without I/O.

docs/format.md, "Commit log record", draws a record field by field. All integers are big-endian.

    0 total  4 magic  8 bodyCRC  12 queueId  16 flag  20 queueOffset  28 physicalOffset  36 sysFlag  40 bornTimestamp
    48 bornHost (8 or 20)  storeTimestamp (8)  storeHost (8 or 20)  reconsumeTimes (4)  preparedOffset (8)
    bodyLength (4)  body  topicLength (1)  topic  propertiesLength (2)  properties [ends with the checksum trailer]
"""

import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from isal.isal_zlib import crc32

from tornpage.impl.message.hosts import host_text, message_id
from tornpage.impl.message.message import StoredMessage, message_of_record
from tornpage.impl.message.properties_text import CHECKSUM_NAME, PropertiesParser, parse_pairs

__all__ = [
    "BLANK_BYTES",
    "BLANK_MAGIC",
    "BORN_HOST_V6",
    "MESSAGE_MAGIC",
    "PROPERTIES_BYTES_MAX",
    "SMALLEST_RECORD_BYTES",
    "STORE_HOST_V6",
    "TOPIC_BYTES_MAX",
    "TRAILER_BYTES",
    "TRANSACTION_MASK",
    "FieldDecoder",
    "RecordCheck",
    "check_record",
    "copied_record",
    "decode_record",
    "decoder_of",
    "encode_blank",
    "ends_like_trailer",
    "framed_record",
    "has_consume_queue",
    "place_record",
    "properties_of_record",
    "queue_of_record",
    "size_of_record",
    "store_timestamp_of_record",
    "topic_in_record",
]

MESSAGE_MAGIC = 0xDAA320A7 - (1 << 32)
BLANK_MAGIC = 0xCBD43194 - (1 << 32)
BLANK_BYTES = 8
SMALLEST_RECORD_BYTES = 92
TRAILER_BYTES = 20
TOPIC_BYTES_MAX = 127
PROPERTIES_BYTES_MAX = 32_767
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
TRANSACTION_MASK = 0x0C

_TRAILER_START = b"__CRC32#\x01"
_REVERSED_TRAILER = b"\x02%010d" + _TRAILER_START[::-1]
"""Reversed, since the ten digits are stored with the least significant first (docs/format.md, "Trailer")."""
_NO_QUEUE = 0x04
"""Set in the transaction types prepared (0x04) and rollback (0x0C), clear in none (0x00) and commit (0x08)."""

_HEAD = struct.Struct(">iiiiiqqiq")
_PLACE = struct.Struct(">qi")
_QUEUE = struct.Struct(">iiqqi")
_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")
_AFTER_STORE_HOST = struct.Struct(">iqi")
_BLANK = struct.Struct(">ii")
assert _HEAD.size == 48
assert _AFTER_STORE_HOST.size == 16

_place_offsets = struct.Struct(">qq").pack_into
_place_time = _I64.pack_into
_unpack_i32 = _I32.unpack_from
_message_of = message_of_record
_BODY_AT = {0: 88, BORN_HOST_V6: 100, STORE_HOST_V6: 100, BORN_HOST_V6 | STORE_HOST_V6: 112}
"""Where the body of a record begins, by the host bits of sysFlag."""

FieldDecoder = Callable[[bytes, bytes], dict[str, Any]]
"""Returns the fields of a record but its body by name, from the bytes before and after the body."""


def has_consume_queue(sys_flag: int) -> bool:
    """Return whether a record has a unit in its queue.

    Prepared and rolled-back transactions have none.
    """
    return not sys_flag & _NO_QUEUE


def place_record(
    record: bytearray, queue_offset: int, physical_offset: int, store_timestamp: int, trailer: bool
) -> None:
    """Fill in the fields known under the put lock, then append the checksum trailer."""
    _place_offsets(record, 20, queue_offset, physical_offset)
    _place_time(record, 68 if record[39] & BORN_HOST_V6 else 56, store_timestamp)
    if trailer:
        record += (_REVERSED_TRAILER % (crc32(record) & 0x7FFFFFFF))[::-1]


def _states(trailer: bytes, checksum: int) -> bool:
    """Return whether a trailer has this checksum.

    Equivalent to comparing it with `_trailer`, in a third of the time.
    """
    digits = trailer[18:8:-1]
    return trailer[19] == 2 and digits.isdigit() and int(digits) == checksum


def ends_like_trailer(properties: bytes) -> bool:
    """Return whether a reader would take the end of these properties for a checksum trailer."""
    return properties[-TRAILER_BYTES : -TRAILER_BYTES + len(_TRAILER_START)] == _TRAILER_START


def encode_blank(remaining_bytes: int) -> bytes:
    """Return the 8 bytes that declare the rest of a file empty."""
    return _BLANK.pack(remaining_bytes, BLANK_MAGIC)


RecordCheck = tuple[int, str | None]
"""Size in bytes and None for a record, 0 and None for a blank, or 0 and the defect."""


def framed_record(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Check the frame of a record: magic number, position and lengths, but no checksum.

    Arguments and results are those of `check_record`. A record with this frame can be decoded.
    """
    size, _, _, defect = _frame(view, position, limit, offset)
    return size, defect


def _frame(view: memoryview, position: int, limit: int, offset: int) -> tuple[int, int, int, str | None]:
    """Return size, positions of body and topic, and None; or zeros and the defect."""
    available = len(view)
    if position + BLANK_BYTES > available:
        return 0, 0, 0, "past_end"
    total, magic = _BLANK.unpack_from(view, position)
    if magic != MESSAGE_MAGIC:
        return 0, 0, 0, None if magic == BLANK_MAGIC and total == limit - position else "bad_magic"
    if total < SMALLEST_RECORD_BYTES or position + total + BLANK_BYTES > limit or position + total > available:
        return 0, 0, 0, "bad_length"
    physical_offset, sys_flag = _PLACE.unpack_from(view, position + 28)
    if physical_offset != offset:
        return 0, 0, 0, "bad_position"
    start = position + 88 + (12 if sys_flag & BORN_HOST_V6 else 0) + (12 if sys_flag & STORE_HOST_V6 else 0)
    end = position + total
    if start + 3 > end:
        return 0, 0, 0, "bad_length"
    topic_at = start + _I32.unpack_from(view, start - 4)[0]
    if not start <= topic_at <= end - 3:
        return 0, 0, 0, "bad_length"
    properties_at = topic_at + 3 + view[topic_at]
    if properties_at > end or end - properties_at > PROPERTIES_BYTES_MAX:
        return 0, 0, 0, "bad_length"
    if (view[properties_at - 2] << 8) + view[properties_at - 1] != end - properties_at:
        return 0, 0, 0, "bad_length"
    return total, start, topic_at, None


def check_record(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Check the bytes at `position` of a file: a valid record, a blank, or neither.

    A record is valid if position, lengths and body CRC are right, topic and properties have no NUL, and a trailer, if
    present, matches. `limit` is the size in bytes of a whole file, of which a damaged one may hold less. `offset` is
    the physical offset of `position`. Source: `CommitLog.checkMessageAndReturnSize`, made complete (docs/format.md,
    "Valid record").
    """
    total, start, topic_at, defect = _frame(view, position, limit, offset)
    if not total:
        return 0, defect
    end = position + total
    if crc32(view[start:topic_at]) & 0x7FFFFFFF != _I32.unpack_from(view, position + 8)[0]:
        return 0, "bad_body_crc"
    text = bytes(view[topic_at + 1 : end])
    topic_bytes = view[topic_at]
    if not 1 <= topic_bytes <= TOPIC_BYTES_MAX:
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


def topic_in_record(view: memoryview, position: int) -> tuple[int, int, int]:
    """Return begin and end of the topic of the valid record at `position`, and sysFlag."""
    sys_flag = _unpack_i32(view, position + 36)[0]
    body_at = position + _BODY_AT[sys_flag & (BORN_HOST_V6 | STORE_HOST_V6)]
    topic_at = body_at + _unpack_i32(view, body_at - 4)[0] + 1
    return topic_at, topic_at + view[topic_at - 1], sys_flag


def queue_of_record(view: memoryview, position: int) -> tuple[bytes, int, int, int]:
    """Return topic, queue id, queue offset and sysFlag of the valid record at `position`.

    The topic is in bytes.
    """
    queue_id, _, queue_offset, _, sys_flag = _QUEUE.unpack_from(view, position + 12)
    start = position + 88 + (12 if sys_flag & BORN_HOST_V6 else 0) + (12 if sys_flag & STORE_HOST_V6 else 0)
    topic_at = start + _I32.unpack_from(view, start - 4)[0]
    return bytes(view[topic_at + 1 : topic_at + 1 + view[topic_at]]), queue_id, queue_offset, sys_flag


def size_of_record(view: memoryview, position: int) -> int:
    """Return the size of the valid record at `position`, in bytes."""
    size: int = _I32.unpack_from(view, position)[0]
    return size


def store_timestamp_of_record(view: memoryview, position: int) -> int:
    """Return the store time of the valid record at `position`, in milliseconds."""
    timestamp: int = _I64.unpack_from(view, position + (68 if view[position + 39] & BORN_HOST_V6 else 56))[0]
    return timestamp


def properties_of_record(view: memoryview, position: int) -> str:
    """Return the properties string of the valid record at `position`, trailer included."""
    total, _, _, _, _, _, _, sys_flag, _ = _HEAD.unpack_from(view, position)
    start = position + 88 + (12 if sys_flag & BORN_HOST_V6 else 0) + (12 if sys_flag & STORE_HOST_V6 else 0)
    topic_at = start + _I32.unpack_from(view, start - 4)[0]
    return bytes(view[topic_at + 3 + view[topic_at] : position + total]).decode(errors="replace")


def decode_record(view: memoryview, position: int, parse: PropertiesParser = parse_pairs) -> StoredMessage:
    """Copy the record at `position`, which `check_record` has found valid.

    Its fields but the body are decoded when one of them is looked at.
    """
    return copied_record(view, position, _unpack_i32(view, position)[0], decoder_of(parse))


def copied_record(view: memoryview, position: int, size_bytes: int, decode: FieldDecoder) -> StoredMessage:
    """Copy the valid record of `size_bytes` bytes; `decode` is from `decoder_of`."""
    record = bytes(view[position : position + size_bytes])
    body_at = _BODY_AT[record[39] & (BORN_HOST_V6 | STORE_HOST_V6)]
    topic_at = body_at + _unpack_i32(record, body_at - 4)[0]
    return _message_of(record[:body_at], record[body_at:topic_at], record[topic_at:], decode)


@cache
def decoder_of(parse: PropertiesParser) -> FieldDecoder:
    """Return the function that decodes the bytes before and after a body."""
    return partial(_decoded, parse)


def _decoded(parse: PropertiesParser, head: bytes, tail: bytes) -> dict[str, Any]:
    """Return the fields in the bytes before and after the body, by their names."""
    store_host_at = 76 if head[39] & BORN_HOST_V6 else 64
    total, _, body_crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born = _HEAD.unpack_from(head)
    reconsume_times, prepared_transaction_offset, _ = _AFTER_STORE_HOST.unpack_from(head, len(head) - 16)
    store_host = host_text(head[store_host_at:-16])
    topic_end = 1 + tail[0]
    properties = parse(tail[topic_end + 2 :].decode(errors="replace"))
    properties.pop(CHECKSUM_NAME, None)
    return {
        "offset": physical_offset, "size_bytes": total, "topic": tail[1:topic_end].decode(errors="replace"),
        "queue_id": queue_id, "queue_offset": queue_offset, "properties": properties, "flag": flag,
        "sys_flag": sys_flag, "born_timestamp": born, "born_host": host_text(head[48 : store_host_at - 8]),
        "store_timestamp": _I64.unpack_from(head, store_host_at - 8)[0], "store_host": store_host,
        "reconsume_times": reconsume_times, "prepared_transaction_offset": prepared_transaction_offset,
        "body_crc": body_crc, "message_id": message_id(store_host, physical_offset),
    }  # fmt: skip
