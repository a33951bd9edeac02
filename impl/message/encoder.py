"""Encoding a message to its record, as far as possible without the put lock.

`codec.place_record` fills in queue offset, physical offset, store timestamp and checksum trailer under the put lock.
The rows of docs/statuses.md are checked in their order. Source: `CommitLog.MessageExtEncoder.encode`.
"""

import struct
from collections.abc import Callable

from isal.isal_zlib import crc32

from tornpage.impl.message.codec import (
    BORN_HOST_V6,
    MESSAGE_MAGIC,
    PROPERTIES_BYTES_MAX,
    STORE_HOST_V6,
    TOPIC_BYTES_MAX,
    TRAILER_BYTES,
    ends_like_trailer,
)
from tornpage.impl.message.hosts import Host, host_bytes
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.message.properties_text import text_of

__all__ = ["RecordEncoder", "topic_bytes"]

_HEADS = {(born, store): struct.Struct(f">5i16xiq{born}s8x{store}siqi") for born in (8, 20) for store in (8, 20)}
"""Packs a record up to its body, by the lengths of born and store host; fields of `codec.place_record` are zero."""
assert _HEADS[8, 8].size == 88
assert _HEADS[20, 20].size == 112

_two_bytes = struct.Struct(">H").pack
_NOT_HOST_BITS = ~(BORN_HOST_V6 | STORE_HOST_V6)
_EMPTY = bytearray()
_TOPICS_MAX = 4096
_HOSTS_MAX = 4096

_Hosts = tuple[bytes, bytes, int, int, Callable[..., bytes]]
"""Born and store host as stored, their bits in sysFlag, the bytes of a record without body, topic and properties, and
the function that packs everything up to the body."""


def topic_bytes(topic: str) -> bytes | None:
    """Return a topic as stored, or None for an invalid name."""
    try:
        data = topic.encode()
    except UnicodeEncodeError:
        return None
    if not 1 <= len(data) <= TOPIC_BYTES_MAX or 0 in data or b"/" in data or topic in (".", ".."):
        return None
    return data


class RecordEncoder:
    """Encodes messages of one store.

    `room_bytes_max` is the longest record that fits an empty log file.
    """

    def __init__(self, *, store_host: Host, trailer: bool, record_bytes_max: int, room_bytes_max: int) -> None:
        self._store_host = host_bytes(store_host)
        self._trailer_bytes = TRAILER_BYTES if trailer else 0
        self._record_bytes_max = min(record_bytes_max, room_bytes_max)
        self._hosts: dict[tuple[Host, Host | None], _Hosts] = {}
        self._topics: dict[str, bytes] = {}
        self._no_properties = self._trailer_bytes.to_bytes(2, "big")

    def encode(self, message: Message, *, now_ms: int, text: str | None = None) -> bytearray | PutStatus:
        """Return the unplaced record up to its trailer, or the status that refuses the message.

        The host bits of sysFlag follow the addresses. `text` is what `text_of` returns for the properties, if the
        caller has it.
        """
        topic = self._topics.get(message.topic) or self._learn(message.topic)
        if topic is None:
            return PutStatus.MESSAGE_ILLEGAL
        properties = self._properties(message, text) if message.properties else self._no_properties
        if not isinstance(properties, bytes):
            return properties
        pair = (message.born_host, message.store_host)
        hosts = self._hosts.get(pair) or self._learn_hosts(*pair)
        if hosts is None:
            return PutStatus.MESSAGE_ILLEGAL
        born_host, store_host, host_bits, fixed_bytes, pack = hosts
        body = message.body or b""
        body_bytes = len(body)
        total = fixed_bytes + body_bytes + len(topic) + len(properties)
        if message.queue_id < 0 or total > self._record_bytes_max:
            return PutStatus.MESSAGE_ILLEGAL
        born_timestamp = message.born_timestamp
        try:
            packed = pack(
                total,
                MESSAGE_MAGIC,
                crc32(body) & 0x7FFFFFFF,
                message.queue_id,
                message.flag,
                message.sys_flag & _NOT_HOST_BITS | host_bits,
                now_ms if born_timestamp is None else born_timestamp,
                born_host,
                store_host,
                message.reconsume_times,
                message.prepared_transaction_offset,
                body_bytes,
            )
        except struct.error:
            return PutStatus.MESSAGE_ILLEGAL
        return _EMPTY.join((packed, body, topic, properties))

    def _learn(self, topic: str) -> bytes | None:
        """Return a topic with its length before it, and cache it; None for an invalid name."""
        data = topic_bytes(topic)
        if data is None:
            return None
        if len(self._topics) >= _TOPICS_MAX:
            self._topics.clear()
        self._topics[topic] = stored = bytes((len(data),)) + data
        return stored

    def _learn_hosts(self, born: Host, store: Host | None) -> _Hosts | None:
        """Return the hosts of a message as stored, and cache them; None for an invalid host."""
        try:
            born_host = host_bytes(born)
            store_host = self._store_host if store is None else host_bytes(store)
        except ValueError:
            return None
        host_bits = (BORN_HOST_V6 if len(born_host) == 20 else 0) | (STORE_HOST_V6 if len(store_host) == 20 else 0)
        if len(self._hosts) >= _HOSTS_MAX:
            self._hosts.clear()
        head = _HEADS[len(born_host), len(store_host)]
        hosts = (born_host, store_host, host_bits, head.size + self._trailer_bytes, head.pack)
        self._hosts[born, store] = hosts
        return hosts

    def _properties(self, message: Message, text: str | None) -> bytes | PutStatus:
        """Return the stored properties with their length before them.

        They end with the separator that the trailer needs.
        """
        if text is None:
            text = text_of(message.properties)
        if text is None:
            return PutStatus.MESSAGE_ILLEGAL
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return PutStatus.MESSAGE_ILLEGAL
        if self._trailer_bytes and data and data[-1] != 2:
            data += b"\x02"
        size_bytes = len(data) + self._trailer_bytes
        if size_bytes > PROPERTIES_BYTES_MAX:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        if 0 in data or (not self._trailer_bytes and ends_like_trailer(data)):
            return PutStatus.MESSAGE_ILLEGAL
        return _two_bytes(size_bytes) + data
