"""Bugs in how a batch becomes records (RMQ-B19 to B21)."""

import struct
from dataclasses import replace

from impl import batch as plain
from impl.batch import BatchFrame, EncodedBatch
from impl.batch_encoder import BatchEncoder
from impl.codec import TRAILER_BYTES
from impl.message import MessageBatch, PutStatus
from impl.parts import Parts
from impl.properties_text import text_of

__all__ = ["BUGS"]

_HEAD = struct.Struct(">iiiii")
_WRAPS_AT = 1 << 16


def _members(body: bytes) -> list[tuple[int, bytes, bytes]]:
    """Return flag, body and properties of each message of a body that parses."""
    members, at = [], 0
    while at < len(body):
        total, _, _, flag, body_bytes = _HEAD.unpack_from(body, at)
        members.append((flag, body[at + 20 : at + 20 + body_bytes], body[at + 22 + body_bytes : at + total]))
        at += total
    return members


def _client_body(members: list[tuple[int, bytes, bytes]]) -> bytes:
    return b"".join(
        _HEAD.pack(22 + len(body) + len(properties), 0, 0, flag, len(body))
        + body
        + len(properties).to_bytes(2, "big")
        + properties
        for flag, body, properties in members
    )


def _wrapping(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    """Each part of the properties is checked, their sum is not: its length is stored modulo 65,536."""
    encoded = plain.encode_batch(body, frame)
    if encoded is not PutStatus.PROPERTIES_SIZE_EXCEEDED:
        return encoded
    data, ends = bytearray(), []
    for flag, content, properties in _members(body):
        merged = properties + (b"\x02" if properties and frame.properties else b"") + frame.properties
        small = plain.encode_batch(_client_body([(flag, content, b"")]), replace(frame, properties=b""))
        if not isinstance(small, EncodedBatch):
            return encoded
        trailer = bytes(TRAILER_BYTES) if frame.trailer else b""
        head = small.data[: len(small.data) - len(trailer) - 2]
        length = (len(merged) + len(trailer)) % _WRAPS_AT
        record = bytearray(head + length.to_bytes(2, "big") + merged + trailer)
        record[:4] = len(record).to_bytes(4, "big")
        data += record
        ends.append(len(data))
    if len(data) > min(frame.record_bytes_max, frame.room_bytes_max):
        return PutStatus.MESSAGE_ILLEGAL
    return EncodedBatch(data, ends, store_timestamp_at=48 + len(frame.born_host), trailer=frame.trailer)


def _glued(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    """The properties of message and batch stand side by side without a separator."""
    encoded = plain.encode_batch(body, frame)
    if not isinstance(encoded, EncodedBatch):
        return encoded
    glued = [(flag, content, properties + frame.properties) for flag, content, properties in _members(body)]
    again = plain.encode_batch(_client_body(glued), replace(frame, properties=b""))
    return again if isinstance(again, EncodedBatch) else encoded


class _PropertyLengthWraps(BatchEncoder):
    """The length of merged properties wraps in its 16 bits (RMQ-B19)."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings, encode_batch=_wrapping)  # type: ignore[arg-type]


class _SeparatorLost(BatchEncoder):
    """No separator between the properties of a message and those of its batch (RMQ-B20)."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings, encode_batch=_glued)  # type: ignore[arg-type]


class _KeyOfTheBatch(BatchEncoder):
    """Every message gets the unique key of the batch on top of its own (RMQ-B21)."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings, encode_batch=self._with_its_key)  # type: ignore[arg-type]
        self._batch_text = ""

    def encode(self, batch: MessageBatch, *, now_ms: int) -> EncodedBatch | PutStatus:
        self._batch_text = text_of(batch.properties) or ""
        return super().encode(batch, now_ms=now_ms)

    def _with_its_key(self, body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
        return plain.encode_batch(body, replace(frame, properties=self._batch_text.encode()))


BUGS = (
    ("RMQ-B19", "the length of a message's and its batch's properties wraps in 16 bits", 8,
     Parts({BatchEncoder: _PropertyLengthWraps})),
    ("RMQ-B20", "the separator between a message's and its batch's properties is lost", 1,
     Parts({BatchEncoder: _SeparatorLost})),
    ("RMQ-B21", "the unique key of a batch overwrites that of each of its messages", 1,
     Parts({BatchEncoder: _KeyOfTheBatch})),
)  # fmt: skip
