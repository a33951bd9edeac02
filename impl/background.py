"""The services that work behind the answers of a store: timed flush, commit of the pool, consume queues."""

from collections.abc import Callable

from impl.checkpoint import Checkpoint
from impl.config import MessageStoreConfig
from impl.flushing import CommitRealTime, FlushRealTime
from impl.policy import PAGE_BYTES, FlushDiskType, FlushPolicy
from impl.queue_flush import FlushConsumeQueues
from impl.runner import Runner, RunnerFactory

__all__ = ["Background"]


class Background:
    """Builds the services that a configuration asks for; `start` lets them run, `stop` ends them.

    `written`, if there is one, is to be told where each put ended: it wakes a service once there are pages enough for
    it. RocketMQ wakes at each put a service that then finds too few.
    """

    def __init__(
        self,
        config: MessageStoreConfig,
        *,
        runner: RunnerFactory,
        flush: Callable[[int], object],
        commit: Callable[[int], bool],
        checkpoint: Checkpoint,
    ) -> None:
        self.written: Callable[[int], None] | None = None
        self._timers: list[tuple[Runner, int]] = []
        flush_policy, commit_policy, queue_policy = (
            config.flush_policy(),
            config.commit_policy(),
            config.queue_flush_policy(),
        )
        committed: Callable[[], None] | None = None
        if flush_policy.flush_disk_type is FlushDiskType.ASYNC_FLUSH:
            flusher = runner(self._flush_service(flush_policy, flush))
            self._timers.append((flusher, flush_policy.flush_interval_commit_log))
            if not flush_policy.flush_commit_log_timed:
                committed = flusher.wake
                self.written = _wakes(flusher, flush_policy.flush_commit_log_least_pages)
        if config.pool_buffers:
            committer = runner(CommitRealTime(commit_policy, commit, committed=committed))
            self._timers.append((committer, commit_policy.commit_interval_commit_log))
            self.written = _wakes(committer, commit_policy.commit_commit_log_least_pages)
        queues = runner(FlushConsumeQueues(queue_policy, checkpoint, tuple))
        self._timers.append((queues, queue_policy.flush_interval_consume_queue))

    @staticmethod
    def _flush_service(policy: FlushPolicy, flush: Callable[[int], object]) -> FlushRealTime:
        return FlushRealTime(policy, flush)

    def start(self) -> None:
        """Have each service's first round one interval from now."""
        for runner, interval_ms in self._timers:
            runner.start(after_ms=interval_ms)

    def stop(self) -> None:
        """End all of them; what they left undone is the caller's."""
        for runner, _ in self._timers:
            runner.stop()


def _wakes(runner: Runner, least_pages: int) -> Callable[[int], None]:
    """Return what wakes a service each time so many pages more are written; of two puts at once one is enough."""
    step_bytes = least_pages * PAGE_BYTES
    wake_at = 0

    def written(end_offset: int) -> None:
        nonlocal wake_at
        if end_offset >= wake_at:
            wake_at = end_offset + step_bytes
            runner.wake()

    return written
