"""Specify batches: several messages for one queue in one body, stored all or none.

1. The body is a sequence of messages without gaps. Each has total length, magic and checksum (not checked), flag,
   length and bytes of the body, length and bytes of the properties.
2. Each message is stored with its own flag, body and properties. The properties of the batch, without UNIQ_KEY, follow
   its own. Everything else comes from the batch, and the prepared offset is 0.
3. A batch is no transaction, is not delayed, and names no further queues. The property DELAY of a single message is
   ignored.
4. A row of docs/statuses.md refuses the whole batch if one of its messages fits the row.

Source: docs/statuses.md, "put of a batch" (`MessageDecoder.encodeMessages`, `MessageExtEncoder`).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.model.admission import ends_like_trailer, fields_fit, is_topic, properties_fit, records_fit
from tornpage.model.delay import level_of
from tornpage.model.dispatch import names_in
from tornpage.model.message import SCHEDULE_TOPIC, TRANSACTION_BITS, Batch, Message, PutStatus, record_bytes
from tornpage.model.properties import joined, separators_inside, stored_bytes, text_of, without
from tornpage.model.state import Layout

__all__ = ["Inner", "messages_of", "parsed"]

HEADER = struct.Struct(">iiiii")
"""Total length, magic, checksum, flag, length of the body."""

LENGTH = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class Inner:
    """One message of a client body.

    Property bytes that are not UTF-8 appear as lone surrogates.
    """

    flag: int
    body: bytes
    properties: str


def parsed(body: bytes) -> tuple[Inner, ...] | None:
    """Return the messages of a client body in order, or None if it does not parse."""
    inners = []
    while body:
        if len(body) < HEADER.size:
            return None
        total_bytes, _, _, flag, body_bytes = HEADER.unpack_from(body)
        lengths_at = HEADER.size + body_bytes
        if body_bytes < 0 or len(body) < lengths_at + LENGTH.size:
            return None
        (properties_bytes,) = LENGTH.unpack_from(body, lengths_at)
        properties_at = lengths_at + LENGTH.size
        if properties_bytes < 0 or total_bytes != properties_at + properties_bytes or total_bytes > len(body):
            return None
        properties = body[properties_at:total_bytes].decode("utf-8", "surrogateescape")
        inners.append(Inner(flag, body[HEADER.size : lengths_at], properties))
        body = body[total_bytes:]
    return tuple(inners)


def messages_of(batch: Batch, *, layout: Layout) -> tuple[Message, ...] | PutStatus:
    """Return what is stored of a batch, in order, or why it is refused whatever the log holds."""
    if not is_topic(batch.topic) or batch.topic == SCHEDULE_TOPIC:
        return PutStatus.MESSAGE_ILLEGAL
    if not batch.body or len(batch.body) > layout.record_bytes_max:
        return PutStatus.MESSAGE_ILLEGAL
    inners = parsed(batch.body)
    if inners is None or _is_no_plain_batch(batch, inners, layout) or not _is_text(batch):
        return PutStatus.MESSAGE_ILLEGAL
    messages = tuple(_stored(batch, inner) for inner in inners)
    return _refusal_as_stored(messages, layout=layout) or messages


def _is_no_plain_batch(batch: Batch, inners: Sequence[Inner], layout: Layout) -> bool:
    """Return whether a batch is a transaction, is delayed, or names further queues."""
    level = level_of(batch.properties)
    if batch.sys_flag & TRANSACTION_BITS or level is None or level > 0:
        return True
    return layout.multi_dispatch and any(map(names_in, (batch.properties, *(inner.properties for inner in inners))))


def _is_text(batch: Batch) -> bool:
    if separators_inside(batch.properties):
        return False
    try:
        _properties_for_all(batch).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _properties_for_all(batch: Batch) -> str:
    return without(text_of(batch.properties), "UNIQ_KEY")


def _stored(batch: Batch, inner: Inner) -> Message:
    return Message(
        topic=batch.topic,
        body=inner.body,
        queue_id=batch.queue_id,
        properties=joined(text_of(inner.properties), _properties_for_all(batch)),
        flag=inner.flag,
        sys_flag=batch.sys_flag,
        born_timestamp=batch.born_timestamp,
        born_host=batch.born_host,
        store_host=batch.store_host,
        reconsume_times=batch.reconsume_times,
    )


def _refusal_as_stored(messages: Sequence[Message], *, layout: Layout) -> PutStatus | None:
    properties = [stored_bytes(m.properties, trailer=layout.trailer, errors="surrogateescape") for m in messages]
    if not all(properties_fit(stored, trailer=layout.trailer) for stored in properties):
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    if any(b"\0" in stored or not _is_utf8(stored) for stored in properties):
        return PutStatus.MESSAGE_ILLEGAL
    if not layout.trailer and any(map(ends_like_trailer, properties)):
        return PutStatus.MESSAGE_ILLEGAL
    if not all(fields_fit(message) for message in messages):
        return PutStatus.MESSAGE_ILLEGAL
    sizes_bytes = [record_bytes(message, trailer=layout.trailer) for message in messages]
    return None if records_fit(sizes_bytes, layout=layout) else PutStatus.MESSAGE_ILLEGAL


def _is_utf8(stored: bytes) -> bool:
    try:
        stored.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
