"""Bugs of queries by key, and of store times (RMQ-B.. and 4.9.3)."""

import struct
from itertools import islice
from typing import Any

from impl.log_reader import LogSession
from impl.message_query import MessageQuery, QueryMessageResult
from impl.parts import Parts

__all__ = ["BUGS"]

_I64 = struct.Struct(">q")
_POINTER_BYTES = 8
_STORE_TIMESTAMP_AT = 56
_TWO_MESSAGES_BYTES = 8 << 20


class _EqualHashes(MessageQuery):
    """What the index names is brought, whatever its key (4.9.3)."""

    def _is_about(self, session: LogSession, topic: str, key: str) -> bool:
        return True


class _FirstFew:
    """An index that names so many records at most."""

    def __init__(self, index: Any, count: int) -> None:
        self._index = index
        self._count = count

    def candidates(self, *asked: int) -> Any:
        return islice(self._index.candidates(*asked), self._count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


class _LimitBeforeTheKey(MessageQuery):
    """Messages with another key of the same hash count against the limit (4.9.3)."""

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        limit = max(0, min(max_num, self._batch_max))
        index: Any = self._index and _FirstFew(self._index, limit)
        query = MessageQuery(index, self._reader, batch_max=self._batch_max)
        return query.by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)


class _RoundsOverlap(MessageQuery):
    """A query that brought too little goes on at the time of its oldest message, that one included (4.9.3)."""

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        found = super().by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)
        left = min(max_num, self._batch_max) - len(found.messages)
        if not found.messages or left <= 0:
            return found
        oldest_ms = found.messages[0].message().store_timestamp
        more = super().by_key(topic, key, max_num=left, begin_ms=begin_ms, end_ms=oldest_ms)
        return QueryMessageResult(
            more.messages + found.messages, found.index_last_update_timestamp, found.index_last_update_phyoffset
        )


class _RoomForAllAskedFor(MessageQuery):
    """Room for as many messages as the caller names is taken before the limit is looked at (RMQ-B52)."""

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        bytearray(_POINTER_BYTES * max(0, max_num))
        return super().by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)


class _TwoMessagesForATime(MessageQuery):
    """A store time is read with room for two of the largest messages, or not at all (RMQ-B47)."""

    def store_timestamp(self, offset: int) -> int:
        rest = self.rest_of_file(offset)
        if rest is None:
            return -1
        with rest:
            return super().store_timestamp(offset) if rest.size_bytes >= _TWO_MESSAGES_BYTES else -1


class _TimeBehindIPv4(MessageQuery):
    """A store time is looked for where it lies behind an IPv4 host (RMQ-B47, as it was mended first)."""

    def store_timestamp(self, offset: int) -> int:
        with self._reader.session() as session:
            if not session.find(offset):
                return -1
            timestamp: int = _I64.unpack_from(session.view, session.position + _STORE_TIMESTAMP_AT)[0]
            return timestamp


BUGS = (
    ("equal-hashes", "a query brings messages of another key with the same hash", 5,
     Parts({MessageQuery: _EqualHashes})),
    ("limit-before-the-key", "messages of another key count against the limit of a query", 5,
     Parts({MessageQuery: _LimitBeforeTheKey})),
    ("rounds-overlap", "a query that goes on brings its oldest messages again", 5,
     Parts({MessageQuery: _RoundsOverlap})),
    ("RMQ-B52", "a query takes room for as many messages as it is asked for, without a limit", 8,
     Parts({MessageQuery: _RoomForAllAskedFor})),
    ("RMQ-B47", "the time of the first message is -1 while the log is small", 8,
     Parts({MessageQuery: _TwoMessagesForATime})),
    ("RMQ-B47-IPv6", "the time of the first message is wrong behind an IPv6 host", 8,
     Parts({MessageQuery: _TimeBehindIPv4})),
)  # fmt: skip
