"""The timed services between page cache and disk. Source: `CommitLog.FlushRealTimeService`, `CommitRealTimeService`."""

from collections.abc import Callable

from tornpage.impl.config.policy import CommitPolicy, FlushPolicy

__all__ = ["CommitRealTime", "FlushRealTime"]


class FlushRealTime:
    """Flushes an asynchronous store behind its answers; `flush` is told the page rule of the round.

    The first round is thorough, and whether one is thorough is decided when it begins.
    """

    name = "flush"

    def __init__(self, policy: FlushPolicy, flush: Callable[[int], object]) -> None:
        self._policy = policy
        self._flush = flush
        self._thorough_ms: int | None = None

    def step(self, now_ms: int) -> int:
        """Flush what is worth it."""
        least_pages = self._least_pages(now_ms)
        if least_pages == 0:
            self._thorough_ms = now_ms
        self._flush(least_pages)
        return now_ms + self._policy.flush_interval_commit_log

    def _least_pages(self, now_ms: int) -> int:
        if self._thorough_ms is None:
            return 0
        return self._policy.least_pages(since_thorough_ms=now_ms - self._thorough_ms)


class CommitRealTime:
    """Copies the pool's buffers to the page cache; `commit` is told the page rule and says whether anything moved.

    `committed`, if there is one, is called after a round that moved something.
    """

    name = "commit"

    def __init__(
        self, policy: CommitPolicy, commit: Callable[[int], bool], *, committed: Callable[[], object] | None
    ) -> None:
        self._policy = policy
        self._commit = commit
        self._committed = committed
        self._commit_ms: int | None = None

    def step(self, now_ms: int) -> int:
        """Commit what is worth it."""
        least_pages = self._least_pages(now_ms)
        if least_pages == 0:
            self._commit_ms = now_ms
        if self._commit(least_pages):
            self._commit_ms = now_ms
            if self._committed is not None:
                self._committed()
        return now_ms + self._policy.commit_interval_commit_log

    def _least_pages(self, now_ms: int) -> int:
        if self._commit_ms is None:
            return 0
        return self._policy.least_pages(since_commit_ms=now_ms - self._commit_ms)
