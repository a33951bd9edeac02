"""Messages by key, by id and by offset (contract 5).

Answers are complete up to the limit and have no foreign messages. The index only proposes offsets. Topic, key and store
time are compared with the record, so neither equal hashes nor stale entries return foreign messages, and the limit
counts messages that match. Source: `DefaultMessageStore.queryMessage`, `lookMessageByOffset`,
`MessageDecoder.decodeMessageId`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from tornpage.impl.message.codec import TRANSACTION_MASK, topic_in_record
from tornpage.impl.message.hosts import Host, host_text
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.read.confirming import ConfirmKey, confirm_key
from tornpage.impl.read.log_reader import LogReader, LogSession
from tornpage.impl.read.read_buffer import ReadBuffer, RecordBuffer, RecordBuffers

__all__ = ["KeyIndex", "MessageQuery", "QueryMessageResult", "parse_message_id"]

_ROLLBACK = 0x0C
_UNIQUE = b"UNIQ_KEY\x01"
_ID_CHARACTERS = (32, 56)


class KeyIndex(Protocol):
    """The part of the index that a query uses.

    `impl.index.index_service.IndexService` implements it.
    """

    @property
    def last_update(self) -> tuple[int | None, int | None]: ...
    def candidates(self, code: int, begin_ms: int, end_ms: int, /) -> Iterator[int]: ...


@dataclass(frozen=True, slots=True)
class QueryMessageResult(RecordBuffers):
    """The messages with a key, oldest first, and how far the index reaches.

    Release it, or use it in a `with` statement. `index_last_update_timestamp` (milliseconds) and
    `index_last_update_phyoffset` are those of the newest indexed record. Both are None while the index is empty;
    RocketMQ returns 0 there.

    Source: `QueryMessageResult`.
    """

    messages: tuple[RecordBuffer, ...] = ()
    index_last_update_timestamp: int | None = None
    index_last_update_phyoffset: int | None = None


class _Wanted:
    """The topic and the key of one query, as they are stored."""

    __slots__ = ("_key", "stored", "topic")

    def __init__(self, topic: str, key: str) -> None:
        self._key = key
        self.topic = topic.encode("utf-8", "surrogatepass")
        self.stored = key.encode("utf-8", "surrogatepass")

    def is_in(self, session: LogSession, size: int) -> bool:
        """Return whether the record found last, of `size` bytes, is indexed under the key.

        Source: `IndexService.buildIndex`.
        """
        view, position = session.view, session.position
        topic_at, topic_end, sys_flag = topic_in_record(view, position)
        if view[topic_at:topic_end] != self.topic or sys_flag & TRANSACTION_MASK == _ROLLBACK:
            return False
        if b"\x01" not in self.stored and b"\x02" not in self.stored:  # without parsing
            text = b"\x02" + bytes(view[topic_end + 2 : position + size]) + b"\x02"
            if b"\x02UNIQ_KEY\x01" + self.stored + b"\x02" in text and text.count(_UNIQUE) == 1:
                return True
        properties = session.properties()
        return self._key == properties.get("UNIQ_KEY") or self._key in properties.get("KEYS", "").split(" ")


class MessageQuery:
    """Looks up messages.

    `index` is None in a store without one; an answer has at most `batch_max` messages. `hash_of` and `confirm` are the
    plain functions or their compiled twins.
    """

    def __init__(
        self,
        index: KeyIndex | None,
        reader: LogReader,
        *,
        batch_max: int,
        hash_of: Callable[[str, str], int] = key_hash,
        confirm: ConfirmKey = confirm_key,
    ) -> None:
        self._index = index
        self._reader = reader
        self._batch_max = batch_max
        self._hash_of = hash_of
        self._confirm = confirm

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        """Return the newest messages of a topic with a key, stored in [begin_ms, end_ms].

        A key is a word of KEYS, or UNIQ_KEY. Cost: every entry of the key's slot, newest first, until enough messages
        were found.
        """
        if self._index is None:
            return QueryMessageResult()
        while True:
            log_min = self._reader.log.min_offset
            found = self._found(self._index, topic, key, min(max_num, self._batch_max), begin_ms, end_ms)
            if self._reader.log.min_offset == log_min:
                return found
            found.release()  # messages expired meanwhile and others may have arrived: the answer would be inconsistent

    def _found(
        self, index: KeyIndex, topic: str, key: str, limit: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        found: dict[int, RecordBuffer] = {}
        with self._reader.session() as session:
            if limit > 0 and key:
                wanted = _Wanted(topic, key)
                for offset in index.candidates(self._hash_of(topic, key), begin_ms, end_ms):
                    if offset in found:
                        continue
                    buffer = self._record(session, offset, wanted, begin_ms, end_ms)
                    if buffer is not None:
                        found[offset] = buffer
                        if len(found) == limit:
                            break
            return QueryMessageResult(tuple(map(found.__getitem__, sorted(found))), *index.last_update)

    def _record(
        self, session: LogSession, offset: int, wanted: _Wanted, begin_ms: int, end_ms: int
    ) -> RecordBuffer | None:
        """Return a buffer of the record at an offset if it is wanted."""
        buffer = session.take_keyed(self._confirm, offset, wanted.topic, wanted.stored, begin_ms, end_ms)
        if buffer is not None:
            return buffer
        size = session.find(offset)
        if size and begin_ms <= session.store_timestamp() <= end_ms and wanted.is_in(session, size):
            return session.take(size, session.queue_offset())
        return None

    def at(self, offset: int, size: int | None = None) -> RecordBuffer | None:
        """Return the record that begins at a physical offset, if it has that size; None otherwise."""
        with self._reader.session() as session:
            found = session.find(offset)
            if not found or size not in (None, found):
                return None
            return session.take(found, session.queue_offset())

    def rest_of_file(self, offset: int) -> ReadBuffer | None:
        """Return everything readable from an offset to the end of its log file.

        It may begin inside a record.
        """
        with self._reader.session() as session:
            return session.rest_of_file(offset)

    def store_timestamp(self, offset: int) -> int | None:
        """Return the store time of the record at a physical offset in ms, None without one."""
        with self._reader.session() as session:
            return session.store_timestamp() if session.find(offset) else None


def parse_message_id(text: str) -> tuple[Host, int] | None:
    """Return store host and physical offset of an offset message id; None if the text is none.

    Hexadecimal digits may be lower case. Source: docs/format.md, "Message ids".
    """
    if len(text) not in _ID_CHARACTERS or not text.isascii():
        return None
    try:
        packed = bytes.fromhex(text)
    except ValueError:
        return None
    if len(packed) * 2 != len(text):  # spaces between the digits
        return None
    return host_text(packed[:-8]), int.from_bytes(packed[-8:], "big", signed=True)
