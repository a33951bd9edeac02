"""Bugs of the services behind the answers: flush, group commit, time-outs, checkpoint (after RMQ-B.. and 4.9.3)."""

from collections.abc import Callable
from typing import Any

from impl.commit_log import CommitLog
from impl.flushing import FlushRealTime
from impl.group_commit import GroupCommit
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.message import Message, PutResult, PutStatus
from impl.parts import Parts
from impl.properties_text import text_of, wait_store_msg_ok
from impl.time_outs import Request, TimeOuts
from properties.scheduler import yield_point

__all__ = ["BUGS"]


class _OnlyWhoWaits(CommitLog):
    """The checkpoint knows only of puts that waited for the disk (RMQ-B06)."""

    def _append(self, message: Message, record: bytearray, store_timestamp: int) -> PutResult:
        before = self._last_store_timestamp
        result = super()._append(message, record, store_timestamp)
        if not wait_store_msg_ok(text_of(message.properties) or ""):
            self._last_store_timestamp = before
        return result


class _CheckpointAhead(CommitLog):
    """The checkpoint takes the time of the newest record, flushed or not (4.9.3, with a pool)."""

    def flush(self, least_pages: int = 0) -> None:
        super().flush(least_pages)
        self.flushed_store_timestamp = self._last_store_timestamp


class _Spins(GroupCommit):
    """A service without work wants to run again at once (RMQ-B30)."""

    def step(self, now_ms: int) -> int:  # type: ignore[override]
        super().step(now_ms)
        return now_ms


class _ForgetsAtShutdown(GroupCommit):
    """Requests that wait when the store is closed are never answered (4.9.3, requests behind the last swap)."""

    def finish(self) -> None:
        self._waiting.clear()
        super().finish()


class _SwappedUnderAWriter(GroupCommit):
    """Requests go to one of two lists, which are swapped while somebody adds; the list that was served is emptied, with
    the request that came to it too late (RMQ-B31).
    """

    def __init__(self, flush: Callable[[], int], **options: Any) -> None:
        super().__init__(flush, **options)
        self._served: list[Request] = []

    def submit(self, request: Request) -> None:
        waiting = self._waiting
        yield_point("add a request")
        waiting.append(request)
        if self._finished:
            self._serve()

    def _serve(self) -> None:
        served = self._waiting
        self._waiting, self._served = self._served, served
        flushed_offset = 0
        try:
            flushed_offset = self._flush()
        finally:
            for request in served:
                is_durable = flushed_offset >= request.end_offset
                request.answer(PutStatus.PUT_OK if is_durable else PutStatus.FLUSH_DISK_TIMEOUT)
            yield_point("empty the list")
            served.clear()


class _TriesTwice(MappedFileQueue):
    """A flush goes over two files; a request further ahead times out at once (4.9.3)."""

    def flush(self, least_pages: int = 0) -> int:
        kept = self.mapped
        start = self.find(self.flushed_where)
        try:
            self.mapped = kept[: kept.index(start) + 2] if start is not None else kept
            return super().flush(least_pages)
        finally:
            self.mapped = kept


class _FullFilesWait(MappedFile):
    """The page rule holds for the end of a full file too, so that no timed flush gets past it."""

    @property
    def is_full(self) -> bool:
        return False


class _NeverThorough(FlushRealTime):
    """A few bytes that fill no pages are never flushed by the timer."""

    def _least_pages(self, now_ms: int) -> int:
        return self._policy.flush_commit_log_least_pages


class _NoTimeOut(TimeOuts):
    """Nobody looks at deadlines: who waits for a disk that hangs waits for ever."""

    def step(self, now_ms: int) -> int | None:
        return None


BUGS = (
    ("RMQ-B06", "the checkpoint knows only of puts that waited for the disk", 9, Parts({CommitLog: _OnlyWhoWaits})),
    ("checkpoint-ahead", "the checkpoint names a record that is not durable", 9,
     Parts({CommitLog: _CheckpointAhead})),
    ("RMQ-B30", "a service without work runs again at once", 16, Parts({GroupCommit: _Spins})),
    ("forgotten-at-shutdown", "puts that wait when the store is closed are not answered by a flush", 16,
     Parts({GroupCommit: _ForgetsAtShutdown})),
    ("RMQ-B31", "a put that comes while group commit swaps its lists is not answered by its flush", 17,
     Parts({GroupCommit: _SwappedUnderAWriter})),
    ("two-files-a-flush", "a flush stops behind two files", 9, Parts({MappedFileQueue: _TriesTwice})),
    ("full-files-wait", "the end of a full file waits for the page rule", 9, Parts({MappedFile: _FullFilesWait})),
    ("never-thorough", "the timer never flushes a few bytes", 9, Parts({FlushRealTime: _NeverThorough})),
    ("no-time-out", "a put that waits for a disk that hangs is never answered", 16,
     Parts({TimeOuts: _NoTimeOut})),
)  # fmt: skip
