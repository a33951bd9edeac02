"""The way of a put through the store: entry, append, answer, count. Source: `DefaultMessageStore.asyncPutMessage`."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.io.files import Clock
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.put_lock import make_put_lock
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.encoder import RecordEncoder
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.message.properties_text import text_of, wait_store_msg_ok
from tornpage.impl.parts import Parts
from tornpage.impl.put.delayed_copy import refusal_of_copy
from tornpage.impl.put.entry import PutEntry
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
    StatisticsSnapshot,
    StoreStatistics,
    warn_if_slow,
    warn_if_slow_in_lock,
)

__all__ = ["PutPath"]


class PutPath:
    """Everything a put meets; `flush` tries to make all of the log durable and returns up to where it is.

    `written` is told where each put ended.
    """

    def __init__(
        self,
        held: OpenDirectory,
        lifecycle: Lifecycle,
        flags: RunningFlags,
        *,
        config: MessageStoreConfig,
        clock: Clock,
        parts: Parts,
        flush: Callable[[], int],
        written: Callable[[int], None],
        disk_watch: DiskWatch,
    ) -> None:
        self._written = written
        self._log = held.log
        now_ms = clock()
        self._lifecycle = lifecycle
        self._clock = clock
        self._disk_watch = disk_watch
        if not lifecycle.shut:  # a damaged directory may have no log directory to ask about
            self._disk_watch.step(now_ms)
        self._entry = PutEntry(
            role=config.broker_role, flags=flags, busy_after_ms=config.os_page_cache_busy_time_out_mills
        )
        self._statistics = StoreStatistics(started_ms=now_ms)
        self._statistics_guard = threading.Lock()
        self.commit_log = _commit_log(held, config, parts, statistics=self._statistics, clock=clock)
        self._answers = parts.of(PutAnswers)(
            flush_policy=config.flush_policy(),
            group_commit=parts.of(GroupCommit)(flush),
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

    def put(self, append: Callable[..., PutResult], message: Message | MessageBatch) -> PutResult:
        """Put by one of the commit log's appends, and wait in this thread for what the answer needs."""
        settled = self._put(append, message, _waits)
        return self._answers.wait(settled) if isinstance(settled, PendingAnswer) else settled

    def put_without_waiting(self, message: Message) -> PutResult:
        """Put one message whose answer waits neither for disk nor replica, whatever its properties say."""
        settled = self._put(self.commit_log.put, message, _nobody_waits)
        return self._answers.wait(settled) if isinstance(settled, PendingAnswer) else settled

    def put_async(self, append: Callable[..., PutResult], message: Message | MessageBatch) -> Future[PutResult]:
        """Put by one of the commit log's appends; the future has the answer once it is known."""
        settled = self._put(append, message, _waits)
        if isinstance(settled, PendingAnswer):
            return settled
        answer: Future[PutResult] = Future()
        answer.set_result(settled)
        return answer

    def _put(
        self,
        append: Callable[..., PutResult],
        message: Message | MessageBatch,
        waits: Callable[[Message | MessageBatch], bool],
    ) -> PutResult | PendingAnswer:
        clock, written = self._clock, self._written  # a call by a local name takes half the time of one by an attribute
        began_ms = clock()
        refusal = self._refusal(began_ms)
        if refusal is not None:
            return PutResult(refusal)
        result = append(message, now_ms=began_ms)
        offset = result.offset
        # one that was refused may have ended a file
        written(offset + result.size_bytes if offset >= 0 else self._log.max_offset)
        if self._answers_wait and offset >= 0:
            appended_ms = clock()
            settled = self._answers.settle(
                result,
                waits=waits(message),
                on_answer=lambda answer: self._count(message, answer, began_ms, appended_ms),
            )
            if isinstance(settled, PendingAnswer):
                return settled
            result = settled
        self._count(message, result, began_ms, None)
        return result

    def _refusal(self, now_ms: int) -> PutStatus | None:
        """Return why a put may not begin, or None; look at the disk when that is due."""
        if self._lifecycle.shut:
            self._lifecycle.require_opener()
            return PutStatus.SERVICE_NOT_AVAILABLE
        disk_watch = self._disk_watch
        if not disk_watch.looked_ms <= now_ms < disk_watch.due_ms:
            disk_watch.step(now_ms)
        return self._entry.refusal(now_ms=now_ms, begin_time_in_lock=self.commit_log.begin_time_in_lock)

    def _count(
        self, message: Message | MessageBatch, result: PutResult, began_ms: int, appended_ms: int | None
    ) -> None:
        """Take an answer into the statistics, and say so when it took long; `appended_ms` None means just now."""
        clock, statistics = self._clock, self._statistics
        record_put, now_ms = statistics.record_put, clock()
        elapsed_ms = now_ms - began_ms
        record_put(elapsed_ms)
        if result.offset < 0 or not statistics.stepped_ms <= now_ms < statistics.due_ms:
            with self._statistics_guard:
                if result.offset < 0:
                    statistics.record_failure()
                statistics.step(clock())  # anew: another thread may have stepped at a later time than ours
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

    def stop(self) -> None:
        """Take no more puts, and answer all that wait."""
        self.commit_log.stop()
        self._answers.finish()


def _commit_log(
    held: OpenDirectory,
    config: MessageStoreConfig,
    parts: Parts,
    *,
    statistics: StoreStatistics,
    clock: Clock,
) -> CommitLog:
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
    )


def _nobody_waits(_: Message | MessageBatch) -> bool:
    return False


def _waits(message: Message | MessageBatch) -> bool:
    """Return whether a producer wants to wait for disk and replica (property WAIT)."""
    return not message.properties or wait_store_msg_ok(text_of(message.properties) or "")
