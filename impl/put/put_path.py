"""Puts: admission, append, answer, statistics.

Source: `DefaultMessageStore.asyncPutMessage`.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.durability import Durability
from tornpage.impl.io.files import Clock
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.put_lock import make_put_lock
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.encoder import RecordEncoder
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.message.properties_text import parser_of, text_of, wait_store_msg_ok
from tornpage.impl.parts import Parts
from tornpage.impl.put.delayed_copy import refusal_of_copy
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.put_answers import PendingAnswer, PutAnswers
from tornpage.impl.put.replication import ReplicaGate, make_replicas
from tornpage.impl.put.rewriting import delayed
from tornpage.impl.put.time_outs import TimeOuts
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlags
from tornpage.impl.statistics.store_statistics import (
    SLOW_PUT_MS,
    PutRefusals,
    StatisticsSnapshot,
    StoreStatistics,
    warn_if_slow,
    warn_if_slow_in_lock,
)

__all__ = ["PutEntry", "PutPath", "commit_log_of"]


class PutEntry:
    """Admission: checks role, running flags and page cache, in this order.

    Source: docs/statuses.md, "every put". `busy_after_ms` is how long the put lock may be held, in milliseconds.
    RocketMQ counts a lock held for more than 10,000 s as free; here it stays busy.
    """

    __slots__ = ("_busy_after_ms", "_flags", "_is_slave", "_refusals")

    def __init__(self, *, role: BrokerRole, flags: RunningFlags, busy_after_ms: int) -> None:
        self._is_slave = role is BrokerRole.SLAVE
        self._flags = flags
        self._busy_after_ms = busy_after_ms
        self._refusals = PutRefusals()

    def refusal(self, *, now_ms: int, begin_time_in_lock: int) -> PutStatus | None:
        """Return the status that refuses a put, or None.

        `begin_time_in_lock` is 0 while the put lock is free.
        """
        if self._is_slave or not self._flags.writeable:
            self._refusals.refused("role" if self._is_slave else "flags", bits=self._flags.bits)
            return PutStatus.SERVICE_NOT_AVAILABLE
        if self._refusals.count:
            self._refusals.writeable_again()
        if begin_time_in_lock and now_ms - begin_time_in_lock > self._busy_after_ms:
            return PutStatus.OS_PAGECACHE_BUSY
        return None


class PutPath:
    """The parts of all puts. `written` is called with the end offset of each put."""

    def __init__(
        self,
        log: MappedFileQueue,
        commit_log: CommitLog,
        lifecycle: Lifecycle,
        flags: RunningFlags,
        *,
        config: MessageStoreConfig,
        clock: Clock,
        parts: Parts,
        durability: Durability,
        written: Callable[[int], None],
        disk_watch: DiskWatch,
        statistics: StoreStatistics,
    ) -> None:
        self._written = written
        self._log = log
        self._commit_log = commit_log
        self._lifecycle = lifecycle
        self._clock = clock
        self._disk_watch = disk_watch
        if not lifecycle.shut:  # a damaged directory may have no log directory
            self._disk_watch.step(clock())
        self._entry = PutEntry(
            role=config.broker_role, flags=flags, busy_after_ms=config.os_page_cache_busy_time_out_mills
        )
        self._statistics = statistics
        self._statistics_guard = threading.Lock()
        self._answers = parts.of(PutAnswers)(
            flush_policy=config.flush_policy(),
            group_commit=parts.of(GroupCommit)(durability.flush),
            time_outs=parts.of(TimeOuts)(),
            runner=parts.of(ThreadRunner),
            replica_gate=ReplicaGate(
                config.broker_role, parts.of(make_replicas)(), fallbehind_max=config.ha_slave_fallbehind_max
            ),
            slave_timeout_ms=config.slave_timeout,
        )
        self._answers_wait = (
            config.flush_disk_type is FlushDiskType.SYNC_FLUSH or config.broker_role is BrokerRole.SYNC_MASTER
        )

    def append(self, message: Message | MessageBatch, *, may_wait: bool = True) -> PutResult | PendingAnswer:
        """Append a message or a batch.

        Return the answer, or a pending one that waits for flush or replica. With `may_wait` false the answer waits for
        neither, whatever the properties say.
        """
        clock, lifecycle, commit_log, disk_watch = self._clock, self._lifecycle, self._commit_log, self._disk_watch
        began_ms = clock()
        if lifecycle.shut:
            lifecycle.require_opener()
            return PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
        if not disk_watch.checked_ms <= began_ms < disk_watch.due_ms:
            disk_watch.step(began_ms)
        refusal = self._entry.refusal(now_ms=began_ms, begin_time_in_lock=commit_log.begin_time_in_lock)
        if refusal is not None:
            return PutResult(refusal)
        if isinstance(message, MessageBatch):
            result = commit_log.put_batch(message, now_ms=began_ms)
        else:
            result = commit_log.put(message, now_ms=began_ms)
        offset = result.offset
        # a refused put may have ended a file
        self._written(offset + result.size_bytes if offset >= 0 else self._log.max_offset)
        if self._answers_wait and offset >= 0:
            appended_ms = clock()
            settled = self._answers.settle(
                result,
                waits=may_wait and _waits(message),
                on_answer=lambda answer: self._count(message, answer, began_ms, appended_ms),
            )
            if isinstance(settled, PendingAnswer):
                return settled
            result = settled
        self._count(message, result, began_ms, None)
        return result

    def wait(self, pending: PendingAnswer) -> PutResult:
        """Wait in this thread for an answer."""
        return self._answers.wait(pending)

    def put_without_waiting(self, message: Message) -> PutResult:
        """Put one message without a wait for flush or replica, whatever its properties say."""
        answer = self.append(message, may_wait=False)
        return self._answers.wait(answer) if isinstance(answer, PendingAnswer) else answer

    def put_async(self, message: Message | MessageBatch) -> Future[PutResult]:
        """Append a message or a batch; the future gets the answer once it is known."""
        settled = self.append(message)
        if isinstance(settled, PendingAnswer):
            return settled
        answer: Future[PutResult] = Future()
        answer.set_result(settled)
        return answer

    def _count(
        self, message: Message | MessageBatch, result: PutResult, began_ms: int, appended_ms: int | None
    ) -> None:
        """Count an answer in the statistics, and log a slow put; `appended_ms` None means now."""
        clock, statistics = self._clock, self._statistics
        record_put, now_ms = statistics.record_put, clock()
        elapsed_ms = now_ms - began_ms
        record_put(elapsed_ms)
        if result.offset < 0 or not statistics.stepped_ms <= now_ms < statistics.due_ms:
            with self._statistics_guard:
                if result.offset < 0:
                    statistics.record_failure()
                statistics.step(clock())  # read again: another thread may have stepped later
        if elapsed_ms > SLOW_PUT_MS:
            body_bytes = len(message.body or b"")
            warn_if_slow(elapsed_ms, topic=message.topic, body_bytes=body_bytes)
            if result.stored:
                in_lock_ms = (now_ms if appended_ms is None else appended_ms) - result.store_timestamp
                warn_if_slow_in_lock(in_lock_ms, topic=message.topic, body_bytes=body_bytes)

    def statistics(self) -> StatisticsSnapshot:
        """Return counts, latencies and rates of the puts so far."""
        with self._statistics_guard:
            now_ms = self._clock()
            self._statistics.step(now_ms)
            return self._statistics.snapshot(now_ms)

    def refuse(self) -> None:
        """Refuse later puts. A put that was under way has been appended when this returns."""
        self._commit_log.stop()

    def stop(self) -> None:
        """Refuse later puts, and answer all waiting ones."""
        self.refuse()
        self._answers.finish()


def commit_log_of(
    held: OpenDirectory,
    config: MessageStoreConfig,
    parts: Parts,
    *,
    statistics: StoreStatistics,
    clock: Clock,
) -> CommitLog:
    """Return the commit log of an open directory, built from its configuration."""
    trailer = config.record_checksum == "record"
    return parts.of(CommitLog)(
        held.log,
        encoder=parts.of(RecordEncoder)(
            store_host=config.store_host,
            trailer=trailer,
            record_bytes_max=config.max_message_size,
            room_bytes_max=config.record_room_bytes,
        ),
        batch_encoder=parts.of(BatchEncoder)(
            store_host=config.store_host,
            trailer=trailer,
            record_bytes_max=config.max_message_size,
            room_bytes_max=config.record_room_bytes,
            multi_dispatch=config.enable_multi_dispatch,
        ),
        store_host=config.store_host,
        trailer=trailer,
        delay_levels=config.delay_levels(),
        delay=parts.of(delayed),
        refusal_of_copy=parts.of(refusal_of_copy),
        dispatch=held.dispatch,
        light_queues_max=config.max_lmq_consume_queue_num,
        queue_offsets=held.queue_offsets,
        put_lock=parts.of(make_put_lock)(config.put_lock_kind),
        statistics=statistics,
        clock=clock,
        check=parts.of(check_record),
        parse=parser_of(config.rocketmq_version),
    )


def _waits(message: Message | MessageBatch) -> bool:
    """Return whether a producer wants to wait for flush and replica (property WAIT)."""
    return not message.properties or wait_store_msg_ok(text_of(message.properties) or "")
