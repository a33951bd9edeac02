"""Messages by key, by id and by offset (contract 5).

Answers are complete up to the limit and have no foreign messages. The index only proposes offsets. Topic, key and store
time are compared with the record, so neither equal hashes nor stale entries return foreign messages, and the limit
counts messages that match. Source: `DefaultMessageStore.queryMessage`, `lookMessageByOffset`,
`MessageDecoder.decodeMessageId`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tornpage.impl.message.codec import TRANSACTION_MASK, queue_of_record
from tornpage.impl.message.hosts import Host, host_text
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.read.log_reader import LogReader, LogSession
from tornpage.impl.read.read_buffer import ReadBuffer, RecordBuffer, RecordBuffers

__all__ = ["KeyIndex", "MessageQuery", "QueryMessageResult", "parse_message_id"]

_ROLLBACK = 0x0C
_ID_CHARACTERS = (32, 56)


class KeyIndex(Protocol):
    """The part of the index that a query uses.

    `impl.index.index_service.IndexService` implements it.
    """

    @property
    def last_offset(self) -> int | None: ...
    @property
    def last_store_timestamp(self) -> int | None: ...
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


class MessageQuery:
    """Looks up messages.

    `index` is None in a store without one; an answer has at most `batch_max` messages.
    """

    def __init__(self, index: KeyIndex | None, reader: LogReader, *, batch_max: int) -> None:
        self._index = index
        self._reader = reader
        self._batch_max = batch_max

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
            offsets = index.candidates(key_hash(topic, key), begin_ms, end_ms) if limit > 0 else iter(())
            for offset in offsets:
                size = 0 if offset in found else session.find(offset)
                if size and begin_ms <= session.store_timestamp() <= end_ms and self._is_about(session, topic, key):
                    found[offset] = session.take(size, queue_of_record(session.view, session.position)[2])
                    if len(found) == limit:
                        break
            messages = tuple(found[offset] for offset in sorted(found))
            return QueryMessageResult(messages, index.last_store_timestamp, index.last_offset)

    def _is_about(self, session: LogSession, topic: str, key: str) -> bool:
        """Whether the record found last is indexed under a key. Source: `IndexService.buildIndex`."""
        found_topic, _, _, sys_flag = queue_of_record(session.view, session.position)
        is_rolled_back = sys_flag & TRANSACTION_MASK == _ROLLBACK
        if found_topic != topic.encode(errors="surrogatepass") or is_rolled_back or not key:
            return False
        properties = session.properties()
        return key == properties.get("UNIQ_KEY") or key in properties.get("KEYS", "").split(" ")

    def at(self, offset: int, size: int | None = None) -> RecordBuffer | None:
        """Return the record that begins at a physical offset, if it has that size; None otherwise."""
        with self._reader.session() as session:
            found = session.find(offset)
            if not found or size not in (None, found):
                return None
            return session.take(found, queue_of_record(session.view, session.position)[2])

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
