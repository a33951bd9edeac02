"""The background services of a store: flush, commit, dispatch, page population."""

from collections.abc import Callable

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import PAGE_BYTES, FlushDiskType
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.queue_flush import FlushConsumeQueues
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.durability import Durability
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.log.flushing import CommitRealTime, FlushRealTime
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.populating import PopulateAhead
from tornpage.impl.recovery.derived_floor_raising import RaiseDerivedFloor
from tornpage.impl.service.runner import Runner, RunnerFactory

__all__ = ["Background"]


class Background:
    """Builds the services of a configuration; `start` runs them, `stop` ends them.

    Call `written` with the end offset of each put. It wakes dispatch if that sleeps, and wakes the flush or commit
    service once enough pages are written. RocketMQ wakes the service at each put, and the service then finds too few
    pages.
    """

    def __init__(
        self,
        config: MessageStoreConfig,
        *,
        runner: RunnerFactory,
        flush_service: type[FlushRealTime],
        durability: Durability,
        checkpoint: Checkpoint,
        derived: Derived,
        floor: RaiseDerivedFloor,
        reput: ReputMessages,
        log: MappedFileQueue,
    ) -> None:
        self.written: Callable[[int], None] = reput.note_readable
        self._reput = reput
        self._timers: list[tuple[Runner, int]] = []
        flush_policy, commit_policy, queue_policy = (
            config.flush_policy(),
            config.commit_policy(),
            config.queue_flush_policy(),
        )
        committed: Callable[[], None] | None = None
        if flush_policy.flush_disk_type is FlushDiskType.ASYNC_FLUSH:
            flusher = runner(flush_service(flush_policy, durability.flush))
            self._timers.append((flusher, flush_policy.flush_interval_commit_log))
            if not flush_policy.flush_commit_log_timed:
                committed = flusher.wake
                self.written = _wakes(
                    flusher, flush_policy.flush_commit_log_least_pages, lambda: log.flushed_where, reput
                )
        if config.pool_buffers:
            committer = runner(CommitRealTime(commit_policy, durability.commit, committed=committed))
            self._timers.append((committer, commit_policy.commit_interval_commit_log))
            self.written = _wakes(
                committer, commit_policy.commit_commit_log_least_pages, lambda: log.committed_where, reput
            )
        self._dispatcher = runner(reput)
        reput.wake = self._dispatcher.wake
        self._woken: list[Runner] = [self._dispatcher]
        if log.populate_ahead_bytes:
            populate = PopulateAhead(log, least_bytes=log.populate_ahead_bytes)
            populater = runner(populate)
            log.want_pages = populate.wake = populater.wake
            self._woken.append(populater)
        queues = runner(
            FlushConsumeQueues(
                queue_policy,
                checkpoint,
                derived.flushables,
                dispatched=lambda: derived.store_timestamp,
                floor=floor,
            )
        )
        self._timers.append((queues, queue_policy.flush_interval_consume_queue))

    def start(self) -> None:
        """Start each service; its first round is one interval from now.

        Dispatch starts at once if it has work.
        """
        for runner, interval_ms in self._timers:
            runner.start(after_ms=interval_ms)
        if self._reput.behind_bytes:
            self._dispatcher.start(after_ms=0)

    def stop(self) -> None:
        """Stop all services. The caller completes their unfinished work."""
        for runner, _ in self._timers:
            runner.stop()
        for woken in self._woken:
            woken.stop()


def _wakes(runner: Runner, least_pages: int, reached: Callable[[], int], reput: ReputMessages) -> Callable[[int], None]:
    """Return a function that wakes a service by its page rule, and dispatch after each put.

    `reached` returns the position from which pages are counted. A running round may have begun before a put that it
    should have included. Until the service has advanced, each further page therefore wakes it again.
    """
    note_readable = reput.note_readable
    rule_bytes = least_pages * PAGE_BYTES
    look_at = 0

    def written(end_offset: int) -> None:
        nonlocal look_at
        if end_offset >= look_at:
            look_at = reached() // PAGE_BYTES * PAGE_BYTES + rule_bytes
            if end_offset >= look_at:
                look_at = end_offset + min(rule_bytes, PAGE_BYTES)
                runner.wake()
        note_readable(end_offset)

    return written
