"""Build records that stand for lost ones, and change fields of kept records.

A filler has topic, queue and queue offset of the lost record where they are known, the store time of the record before
it, the property TORNPAGE_LOST=true where there is room, and a body of spaces. It has no tags and no keys. A filler
for a record of which nothing is known is a rolled back transaction: no queue has a unit for it.

Source: docs/format.md, sections 3 to 5.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from tornpage.properties.decode.record import RECORD_BYTES_MIN, RECORD_MAGIC, TRAILER_BYTES, trailer_of

__all__ = [
    "FILLER_BYTES_MAX",
    "LOST_PROPERTY",
    "LOST_TOPIC",
    "NO_UNIT_TOPICS",
    "ROLLED_BACK",
    "Filler",
    "Neighbour",
    "blank",
    "changed",
    "filler_bytes",
    "filler_bytes_min",
]

FILLER_BYTES_MAX = 4 << 20
"""No filler is larger than RocketMQ's default limit of a message."""

LOST_TOPIC = "TORNPAGE_LOST"
LOST_PROPERTY = b"TORNPAGE_LOST\x01true\x02"
ROLLED_BACK = 0x0C
NO_UNIT_TOPICS = ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC")
"""Topics whose messages a broker itself takes apart; a filler in their queues would stop its services."""

_BLANK_MAGIC = 0xCBD43194
_CRC_MASK = 0x7FFFFFFF
_HEAD = struct.Struct(">iIIiiqqiq")
_FIXED_BYTES = RECORD_BYTES_MIN - 1
"""Bytes of a record but topic, body and properties, with two IPv4 hosts."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What a filler takes over from a kept record near it.

    The store time is in ms, the host is IPv4 with its port.
    """

    timestamp: int = 0
    host: bytes = bytes(8)
    has_trailer: bool = False


@dataclass(frozen=True, slots=True)
class Filler:
    """A place in the log, and the lost record whose number it takes.

    `topic` is None if nothing is known of that record.
    """

    offset: int
    size_bytes: int
    topic: str | None = None
    queue_id: int = 0
    queue_offset: int = 0


def filler_bytes_min(topic: str | None) -> int:
    """Return the least size of a filler."""
    return _FIXED_BYTES + (1 if topic is None else len(topic.encode()))


def filler_bytes(filler: Filler, near: Neighbour) -> bytes:
    """Return the record."""
    has_unit = filler.topic is not None
    name = filler.topic if filler.topic is not None else LOST_TOPIC
    topic = name.encode()
    if filler.topic is None and filler.size_bytes < _FIXED_BYTES + len(topic):
        topic = topic[:1]
    room = filler.size_bytes - _FIXED_BYTES - len(topic)
    if room < 0:
        raise ValueError(f"no record of {filler.size_bytes} bytes has a topic of {len(topic)} bytes")
    properties = LOST_PROPERTY if room > len(LOST_PROPERTY) else b""
    trailer_bytes = TRAILER_BYTES if near.has_trailer and room > len(properties) + TRAILER_BYTES else 0
    body = b" " * (room - len(properties) - trailer_bytes)
    head = _HEAD.pack(
        filler.size_bytes,
        RECORD_MAGIC,
        zlib.crc32(body) & _CRC_MASK if body else 0,
        filler.queue_id,
        0,
        filler.queue_offset if has_unit else 0,
        filler.offset,
        0 if has_unit else ROLLED_BACK,
        near.timestamp,
    )
    tail = struct.pack(">q", near.timestamp) + near.host + struct.pack(">iqi", 0, 0, len(body)) + body
    stored = head + near.host + tail + bytes((len(topic),)) + topic
    stored += struct.pack(">h", len(properties) + trailer_bytes) + properties
    return stored + _trailer(stored) if trailer_bytes else stored


def blank(size_bytes: int) -> bytes:
    """Return the end mark of a file that has `size_bytes` left."""
    return struct.pack(">iI", size_bytes, _BLANK_MAGIC)


def changed(
    raw: bytes,
    *,
    topic: str | None = None,
    queue_id: int | None = None,
    queue_offset: int | None = None,
    rolled_back: bool = False,
    no_transaction: bool = False,
) -> bytes:
    """Return a record with other header fields and a trailer that fits.

    Raises ValueError if the topic has another length in bytes.
    """
    stored = bytearray(raw)
    if queue_id is not None:
        struct.pack_into(">i", stored, 12, queue_id)
    if queue_offset is not None:
        struct.pack_into(">q", stored, 20, queue_offset)
    (flags,) = struct.unpack_from(">i", stored, 36)
    if rolled_back:
        struct.pack_into(">i", stored, 36, flags | ROLLED_BACK)
    if no_transaction:
        struct.pack_into(">i", stored, 36, flags & ~ROLLED_BACK)
    body_at = 88 + (12 if flags & 0x10 else 0) + (12 if flags & 0x20 else 0)
    topic_at = body_at + struct.unpack_from(">i", stored, body_at - 4)[0]
    if topic is not None:
        name = topic.encode()
        if len(name) != stored[topic_at]:
            raise ValueError(f"the record has a topic of {stored[topic_at]} bytes, {topic!r} has {len(name)}")
        stored[topic_at + 1 : topic_at + 1 + len(name)] = name
    properties = bytes(stored[topic_at + 3 + stored[topic_at] :])
    if trailer_of(properties) is not None:
        stored[-TRAILER_BYTES:] = _trailer(bytes(stored[:-TRAILER_BYTES]))
    return bytes(stored)


def _trailer(covered: bytes) -> bytes:
    return b"__CRC32#\x01" + (b"%010d" % (zlib.crc32(covered) & _CRC_MASK))[::-1] + b"\x02"
