"""Bugs between a producer's message and the page cache, after those that RocketMQ had or has (RMQ-B..)."""

from collections.abc import Callable
from typing import Any

from impl.commit_log import CommitLog
from impl.encoder import RecordEncoder
from impl.group_commit import GroupCommit
from impl.message import Message, PutResult, PutStatus
from impl.parts import Parts
from impl.time_outs import Awaited, Request

__all__ = ["BUGS"]


class _BeginTimeStays(CommitLog):
    """After an append that raises, the put lock seems held for ever (RMQ-B16)."""

    def _under_lock(self, append: Callable[[Any, Any, int], PutResult], incoming: Any, draft: Any) -> PutResult:
        with self._put_lock:
            self.begin_time_in_lock = store_timestamp = self._clock()
            if self._stopped:
                self.begin_time_in_lock = 0
                return PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
            try:
                result = append(incoming, draft, store_timestamp)
            except OSError:
                return PutResult(PutStatus.UNKNOWN_ERROR)
            self.begin_time_in_lock = 0
            return result


class _OffsetForARefusal(CommitLog):
    """A refused message uses up an offset of its queue (RMQ-B18)."""

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        key = (message.topic.encode(errors="replace"), message.queue_id)
        before = self._queue_offsets.next_offset(key)
        result = super().put(message, now_ms=now_ms)
        if result.status in (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED):
            self._queue_offsets.advance(key, before + 1)
        return result


class _WrongTimeout(GroupCommit):
    """A failed flush is reported as a replica that was silent (RMQ-B23)."""

    def submit(self, request: Request) -> None:
        def say(status: PutStatus) -> None:
            failed = status is PutStatus.FLUSH_DISK_TIMEOUT
            request.answer(PutStatus.FLUSH_SLAVE_TIMEOUT if failed else status)

        super().submit(
            Awaited(say, end_offset=request.end_offset, deadline_ms=request.deadline_ms, too_late=request.too_late)
        )


class _TopicInCharacters(RecordEncoder):
    """The length of a topic is limited in characters and stored in one signed byte (wire format, limit 11)."""

    def _learn(self, topic: str) -> bytes | None:
        stored = super()._learn(topic)
        data = topic.encode(errors="replace")
        if stored is None and 0 < len(topic) <= 127 < len(data) < 256 and not set(b"\0/") & set(data):
            return bytes((len(data),)) + data
        return stored


BUGS = (
    ("RMQ-B16", "after an append that fails, the put lock seems held for ever", 8,
     Parts({CommitLog: _BeginTimeStays})),
    ("RMQ-B18", "a refused message uses up an offset of its queue", 8, Parts({CommitLog: _OffsetForARefusal})),
    ("RMQ-B23", "a failed flush is answered as a replica's time-out", 8, Parts({GroupCommit: _WrongTimeout})),
    ("topic-in-characters", "the length of a topic is limited in characters, not bytes", 8,
     Parts({RecordEncoder: _TopicInCharacters})),
)  # fmt: skip
