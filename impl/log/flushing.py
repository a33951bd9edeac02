"""The timed flush and commit services.

Source: `CommitLog.FlushRealTimeService`, `CommitRealTimeService`.
"""

from collections.abc import Callable

from tornpage.impl.config.policy import CommitPolicy, FlushPolicy

__all__ = ["CommitRealTime", "FlushRealTime"]


class FlushRealTime:
    """Flushes an asynchronous store after its answers.

    `flush` is called with the page rule of the round. The first round is thorough. Whether a round is thorough is
    decided at its begin.
    """

    name = "flush"

    def __init__(self, policy: FlushPolicy, flush: Callable[[int], object]) -> None:
        self._policy = policy
        self._flush = flush
        self._thorough_ms: int | None = None

    def step(self, now_ms: int) -> int:
        """Flush by the page rule; return when the next round is due, in milliseconds."""
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
    """Copies the pool's buffers to the page cache.

    `commit` gets the page rule and returns whether bytes moved. `committed`, if given, is called after a round that
    moved bytes.
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
        """Commit by the page rule; return when the next round is due, in milliseconds."""
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
