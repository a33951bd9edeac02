"""The message store and its public methods. Source: `DefaultMessageStore`.

docs/statuses.md says what each method returns. After `close()` every method raises StoreClosed, except `put`,
`put_batch` and `put_async`, which return a status. In a forked child every method raises ForkedStore. Offsets are
physical, in bytes from the start of the log, unless they are called queue offsets.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from tornpage.impl.assembly import open_parts
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch.arriving import MessageArrivingListener
from tornpage.impl.errors import BadDirectory
from tornpage.impl.groups.broker_configs import ConsumerFilterData, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.groups.broker_tables import BrokerTables
from tornpage.impl.groups.group_offsets import GroupOffsets
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.log.loading import Finding
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.dispatching import FilterBitMap
from tornpage.impl.message.message import GetResult, Message, MessageBatch, PutResult, StoredMessage
from tornpage.impl.parts import Parts
from tornpage.impl.put.receiving import Received
from tornpage.impl.read.held_pulls import PullRequest
from tornpage.impl.read.message_filter import MessageFilter
from tornpage.impl.read.message_query import QueryMessageResult
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.read.read_buffer import ReadBuffer, RecordBuffer
from tornpage.impl.recovery.recovery import readable_records
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.running_flags import RunningFlags
from tornpage.impl.statistics.read_statistics import ReadStatisticsSnapshot
from tornpage.impl.statistics.store_statistics import StatisticsSnapshot

__all__ = ["FlushResult", "MessageStore"]

_TIME_MAX = (1 << 63) - 1
_MESSAGES = 32


@dataclass(frozen=True, slots=True)
class FlushResult:
    """The outcome of a flush.

    `durable` says whether everything put before the call is on disk. `flushed_offset` is the physical offset up to
    which the log is on disk.
    """

    durable: bool
    flushed_offset: int


class MessageStore:
    """A store of one directory.

    `open` creates it; its methods may be called from several threads. One process at a time may have the directory
    open. An operator may set `running_flags`. The caller must release the buffers in an answer.
    """

    def __init__(
        self,
        directory: str,
        config: MessageStoreConfig,
        *,
        files: Files,
        clock: Clock,
        parts: Parts,
        listeners: Sequence[MessageArrivingListener] = (),
        filter_bit_map: FilterBitMap | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        """Open a store; call `open` instead."""
        self.directory = directory
        self.running_flags = RunningFlags()
        self._check = parts.of(check_record)
        self._close_guard = parts.of(make_guard)()
        self._closer: object = None  # stands for the running or finished `close`
        self._interruption: str | None = None
        self._lifecycle = Lifecycle(directory)
        opened = open_parts(
            directory,
            config,
            self._lifecycle,
            self.running_flags,
            files=files,
            clock=clock,
            parts=parts,
            arriving=listeners,
            bit_map_of=filter_bit_map,
            memory_bytes=memory_bytes,
        )
        self._held, self._log, self._commit_log = opened.held, opened.held.log, opened.commit_log
        self._reput, self._durability, self._background = opened.reput, opened.durability, opened.background
        self._puts, self._reads, self._pull_hold = opened.puts, opened.reads, opened.pull_hold
        self._delivery, self._progress, self._retention = opened.delivery, opened.progress, opened.retention
        self._received = opened.received
        self._group_offsets = GroupOffsets(self._progress, self._reads, self._lifecycle)
        self._broker_tables = BrokerTables(self._progress, self._lifecycle)
        if not self._lifecycle.shut:
            opened.start()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        config: MessageStoreConfig | None = None,
        *,
        files: Files,
        clock: Clock,
        parts: Parts | None = None,
        listeners: Sequence[MessageArrivingListener] = (),
        filter_bit_map: FilterBitMap | None = None,
        memory_bytes: int | None = None,
    ) -> Self:
        """Open the store in a directory; create it if it does not exist, recover it otherwise.

        `listeners` are called with each message that becomes readable in its queue. `filter_bit_map` returns the bit
        map of consumer filters that the queue extension stores for a message. `memory_bytes` is the size of the
        machine's memory; None means that the store asks the operating system.

        A damaged store opens read-only, and `findings` lists the damage. Raises StoreInUse, WrongFileSize, NoSpace,
        BadConfig or BadDirectory.
        """
        root = os.path.abspath(os.fspath(directory))
        try:
            return cls(
                root,
                config or MessageStoreConfig(),
                files=files,
                clock=clock,
                parts=parts or Parts(),
                listeners=listeners,
                filter_bit_map=filter_bit_map,
                memory_bytes=memory_bytes,
            )
        except PermissionError as error:
            raise BadDirectory(
                root, f"no permission for {error.filename or root}", "change its owner or mode"
            ) from error
        except OSError as error:
            reason = f"{error.strerror or error} ({error.filename or root})"
            raise BadDirectory(root, reason, "mend the disk or name another directory") from error

    # ---- puts --------------------------------------------------------------------------------------------------------

    def put(self, message: Message) -> PutResult:
        """Store one message and return its status as the flush policy promises.

        Never raises for bad data; the status says why a message was refused (contract 8). Raises ForkedStore.
        """
        answer = self._puts.append(message)
        return answer if isinstance(answer, PutResult) else self._puts.wait(answer)

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Store all messages of a batch or none; return the status as `put` does.

        Raises ForkedStore.
        """
        answer = self._puts.append(batch)
        return answer if isinstance(answer, PutResult) else self._puts.wait(answer)

    def append_to_commit_log(self, offset: int, data: memoryview) -> Received:
        """Append the whole records at the begin of `data` at a physical offset.

        A master sent the data. Only a slave accepts it, and only at the end of its log. Source:
        `DefaultMessageStore.appendToCommitLog`.
        Raises StoreClosed and ForkedStore.
        """
        self._lifecycle.require_open()
        return self._received.append(offset, data)

    def put_async(self, message: Message | MessageBatch) -> Future[PutResult]:
        """Append a message or a batch now; return a future of the result of `put`.

        The future cannot be cancelled. Its callbacks may run in a thread of the store and must not wait for another
        put. Raises ForkedStore.
        """
        return self._puts.put_async(message)

    # ---- durability and close ----------------------------------------------------------------------------------------

    def flush(self) -> FlushResult:
        """Commit all buffers and flush everything put so far. Raises StoreClosed and ForkedStore."""
        self._lifecycle.require_open()
        commit_failure = self._durability.commit_all()
        flushed_offset = self._durability.flush()
        return FlushResult(self.read_only_reason is None and commit_failure is None, flushed_offset)

    def close(self) -> None:
        """Answer waiting clients, dispatch, flush, record the clean exit and release the lock.

        Idempotent. If the store is read-only, or its last dispatch or flush fails, the abort marker stays and
        `read_only_reason` says why. If several threads call `close`, one does the work and the others return at once,
        since one of them may run a callback that the first one waits for. A close that an exception ends, such as that
        of a Ctrl-C, can be repeated; it then records no clean exit. Do not call it in a signal handler: it would wait
        for a flush or put of the interrupted thread. Raises ForkedStore.
        """
        self._lifecycle.require_opener()
        closer = object()
        try:
            with self._close_guard:
                if self._closer is not None:
                    return
                self._closer = closer
            self._close()
        except BaseException as error:
            if self._closer is closer:
                self._interruption = f"a close was interrupted: {error!r}"
                self._closer = None
            raise

    def _close(self) -> None:
        if self._lifecycle.shut != "closed":
            self._finish()
        with self._durability.guard:
            self._lifecycle.shut = "closed"
            self._reads.shut()
            self._held.close()
            self._reads.note_leaks()

    def _finish(self) -> None:
        """Stop everything, flush, and record the clean exit."""
        with self._retention.refusing_deletions():
            self._puts.refuse()  # an accepted deletion is one before all refused puts, and the reverse
        self._puts.stop()
        self._pull_hold.stop()
        self._held.stop_allocation()
        self._retention.stop()
        self._delivery.stop()
        self._progress.stop()
        self._background.stop()
        commit_failure = self._durability.commit_all()
        self._durability.flush()
        dispatch_failure = self._interruption or self._dispatch_failure()
        self._lifecycle.read_only_reason = self.read_only_reason or commit_failure or dispatch_failure
        if self.read_only_reason is None:
            try:
                self._progress.save_all()
                self._held.note_clean_exit()
            except OSError as error:
                self._lifecycle.read_only_reason = f"clean exit not noted: {error}"

    def _dispatch_failure(self) -> str | None:
        """Dispatch everything that is readable; return why that failed, or None."""
        try:
            self._reput.drain()
        except OSError as error:
            return f"dispatch at offset {self.reput_from_offset} failed: {error}"
        return self.dispatch_error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open store cannot be pickled: pass its directory and open it there")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__reduce__()

    # ---- reads by physical offset and key ----------------------------------------------------------------------------

    def get(self, offset: int) -> GetResult:
        """Return the message whose record begins at a physical offset.

        `message` is None and the status says why if no valid, readable record begins there. Raises StoreClosed and
        ForkedStore.
        """
        self._lifecycle.require_open()
        found = self._commit_log.get(offset, readable_end=self._log.readable_end)
        if found.message is None:
            self._lifecycle.require_open()  # a close meanwhile makes the answer void
        return found

    def messages(self) -> Iterator[StoredMessage]:
        """Yield every valid, readable record in offset order. Raises StoreClosed and ForkedStore."""
        self._lifecycle.require_open()
        for offset in readable_records(self._log, self._check):
            message = self.get(offset).message
            if message is not None:
                yield message

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_msg_nums: int = _MESSAGES,
        message_filter: MessageFilter | None = None,
        group: str = "",
    ) -> GetMessageResult:
        """Return up to `max_msg_nums` messages of a queue from a queue offset on.

        `message_filter` selects messages; None selects all. `group` is the reading consumer group, used in statistics
        only. An unknown queue gives the status NO_MATCHED_LOGIC_QUEUE. Raises NotReadable while the running flag
        NOT_READABLE is set, StoreClosed and ForkedStore.
        """
        return self._reads.get_message(
            topic, queue_id, offset, max_msg_nums=max_msg_nums, message_filter=message_filter, group=group
        )

    def query_message(
        self, topic: str, key: str, *, max_num: int = _MESSAGES, begin_ms: int = 0, end_ms: int = _TIME_MAX
    ) -> QueryMessageResult:
        """Return the newest messages with a key, stored in [begin_ms, end_ms], oldest first.

        Times are milliseconds since 1970. At most `max_num` messages are returned, and at most `max_msgs_num_batch` of
        the configuration. Raises StoreClosed and ForkedStore.
        """
        with self._reads:
            return self._reads.query.by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)

    def message_by_id(self, message_id: str) -> GetResult:
        """Return the message with an offset message id, as in `PutResult.message_id`.

        Hexadecimal digits may be lower case. The status is OFFSET_FOUND_NULL and `message` None if the text is no
        offset message id, if no readable record begins at its offset, or if another host stored that record. Raises
        StoreClosed and ForkedStore.
        """
        with self._reads:
            return self._reads.by_id(message_id)

    def select_message_by_offset(self, offset: int, size: int | None = None) -> RecordBuffer | None:
        """Return the record that begins at a physical offset, if it has `size` bytes.

        `size` None accepts any size. Returns None if there is no such record. Raises StoreClosed and ForkedStore.
        """
        with self._reads:
            return self._reads.query.at(offset, size)

    def commit_log_data(self, offset: int) -> ReadBuffer | None:
        """Return the readable bytes from a physical offset to the end of its log file.

        Replication uses this. Returns None if the offset lies outside the readable log. The bytes were verified when
        the log was opened or written, and are not verified again. Raises StoreClosed and ForkedStore.
        """
        with self._reads:
            return self._reads.query.rest_of_file(offset)

    # ---- reads by queue and queue offset -----------------------------------------------------------------------------

    def queues(self) -> list[tuple[str, int]]:
        """Return topic and queue id of every queue, sorted. Raises StoreClosed and ForkedStore."""
        with self._reads:
            return self._reads.queues.names()

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the first message.

        Returns 0 for an unknown queue, as for an empty one.
        """
        with self._reads:
            return self._reads.queues.range_of(topic, queue_id)[0]

    def max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the queue offset that the next message gets.

        Returns 0 for an unknown queue, as for an empty one.
        """
        with self._reads:
            return self._reads.queues.range_of(topic, queue_id)[1]

    def message_total_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the maximum minus the minimum of a queue; 0 for an unknown queue.

        Numbers without a message in between are counted too.
        """
        with self._reads:
            min_offset, max_offset = self._reads.queues.range_of(topic, queue_id)
        return max_offset - min_offset

    def commit_log_offset_in_queue(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the physical offset of a message, in bytes.

        Returns None if the queue has no such message, where RocketMQ returns 0.
        """
        with self._reads:
            unit = self._reads.queues.unit(topic, queue_id, queue_offset)
        return None if unit is None else unit.offset

    def store_timestamp_in_queue(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the store time of a message in milliseconds.

        Returns None if it cannot be read, where RocketMQ returns -1.
        """
        with self._reads:
            return self._reads.queues.store_timestamp(topic, queue_id, queue_offset)

    def earliest_message_time(self, topic: str | None = None, queue_id: int = 0) -> int | None:
        """Return the store time of the first message of a queue in milliseconds.

        Without a topic, it is that of the first message in the log. Returns None if there is no such message or it
        cannot be read, where RocketMQ returns -1.
        """
        if topic is None:
            with self._reads:
                return self._reads.query.store_timestamp(self._reads.log.min_offset)
        queue_offset = self.min_offset_in_queue(topic, queue_id)
        return self.store_timestamp_in_queue(topic, queue_id, queue_offset)

    def offset_in_queue_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Return the queue offset of the first message stored at or after a time in milliseconds.

        Returns the maximum of the queue if there is none. An unknown queue counts as empty and gives 0.
        """
        with self._reads:
            return self._reads.queues.offset_by_time(topic, queue_id, timestamp_ms)

    def message_ids_in_queue(self, topic: str, queue_id: int, begin: int, end: int) -> dict[str, int]:
        """Return the queue offset of each message in [begin, end) by its message id."""
        with self._reads:
            return self._reads.message_ids(topic, queue_id, begin, end)

    def is_in_disk(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Return whether a message is likely on the disk only, no longer in memory.

        Returns False if there is no such message.
        """
        with self._reads:
            return self._reads.queues.is_in_disk(topic, queue_id, queue_offset)

    # ---- long polling ------------------------------------------------------------------------------------------------

    def pull_async(
        self,
        group: str,
        topic: str,
        *,
        queue_id: int,
        offset: int,
        hold_ms: int,
        max_msg_nums: int = _MESSAGES,
        message_filter: MessageFilter | None = None,
    ) -> Future[GetMessageResult]:
        """Pull as `get_message` does; if nothing is found, wait for up to `hold_ms` milliseconds.

        With `hold_ms` 0 the call does not wait. The future gets the answer of a new pull as soon as a message that the
        filter accepts is in the queue, the queue is deleted, or the time is over. It gets StoreClosed if the store is
        closed before, and NotReadable if the running flag is set then. Cancel the future to stop waiting. Its callbacks
        run in a thread of the store and must not wait for another pull. If `long_polling_enable` is false, every
        waiting pull waits for `short_polling_time_mills`.

        Raises NotReadable while the running flag NOT_READABLE is set, TooManyHeldPulls if `max_held_pulls` pulls wait
        already, StoreClosed and ForkedStore.
        """
        request = PullRequest((topic, queue_id), offset, max_msg_nums, message_filter, group)
        return self._pull_hold.pull(request, hold_ms)

    @property
    def held_pulls(self) -> int:
        """The number of pulls that wait for a message."""
        return self._pull_hold.held_count

    # ---- consumer groups: a commit is saved every `flush_consumer_offset_interval` ms and by `close` -----------------

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Record the next queue offset that a group will read; return the recorded offset.

        It may be lower than before. An offset past the end of the queue is lowered to that end. Raises BadProgress if
        the state file cannot hold the names or the offset.
        """
        return self._group_offsets.commit_offset(group, topic, queue_id, offset)

    def raise_offset(self, stored: int, group: str, topic: str, queue_id: int, offset: int) -> int | None:
        """Record the next offset of a group in place of `stored`; return what is recorded.

        Return None and change nothing if `stored` is not the recorded offset, since the numbers of the queue restarted
        or another client has committed. An offset past the end of the queue is lowered to that end. Raises BadProgress
        if the state file cannot hold the names or the offset.
        """
        return self._group_offsets.raise_offset(stored, group, topic, queue_id, offset)

    def save_offsets(self) -> None:
        """Make all commits so far durable at once.

        Raises OSError, and ReadOnlyStore if the store is read-only.
        """
        self._group_offsets.save_offsets()

    def query_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the next queue offset that a group will read in a queue.

        None lets the client decide (`QUERY_NOT_FOUND`). For a group without a commit, a queue that still has its first
        message in memory returns 0, as in RocketMQ.
        """
        return self._group_offsets.query_offset(group, topic, queue_id)

    def consumer_offsets(self, topic: str) -> dict[str, dict[int, int]]:
        """Return the committed queue offsets of each group in a topic, by queue id."""
        return self._group_offsets.consumer_offsets(topic)

    def topics_of_group(self, group: str) -> list[str]:
        """Return the topics in which a group has committed an offset.

        Source: `whichTopicByConsumer`.
        """
        return self._group_offsets.topics_of_group(group)

    def diff_total(self, group: str, topic: str) -> int:
        """Return how many messages of a topic a group has still to read, over all its queues.

        A queue without a commit counts from 0. Source: `ConsumeStats.computeTotalDiff`.
        """
        return self._group_offsets.diff_total(group, topic)

    def query_min_offset_in_all_group(self, topic: str, without: Collection[str] = ()) -> dict[int, int]:
        """Return by queue id the lowest committed offset of all groups that is still readable.

        The groups in `without` are left out; RocketMQ deletes their commits.
        """
        return self._group_offsets.query_min_offset_in_all_group(topic, without)

    def clone_offset(self, source_group: str, target_group: str, topic: str) -> None:
        """Copy the offsets of a group in a topic to another group. Raises BadProgress.

        Source: `cloneOffset`.
        """
        self._group_offsets.clone_offset(source_group, target_group, topic)

    def scan_unsubscribed_topic(self, subscribed: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
        """Remove the offsets of groups that no longer subscribe.

        Returns the removed pairs (topic, group). A group is removed in a topic if (topic, group) is not in `subscribed`
        and none of its offsets lies
        past the minimum of its queue.
        """
        return self._group_offsets.scan_unsubscribed_topic(subscribed)

    # ---- topics, groups and filters: OSError if a write fails, ReadOnlyStore if the store is read-only ---------------

    def put_topic_config(self, topic: TopicConfig) -> None:
        """Set the configuration of a topic. Raises BadProgress if no state file can hold the name."""
        self._broker_tables.put_topic_config(topic)

    def delete_topic_config(self, topic: str) -> bool:
        """Remove a topic from the table; return whether it was there.

        `clean_unused_topics` deletes its queues.
        """
        return self._broker_tables.delete_topic_config(topic)

    def topic_configs(self) -> dict[str, TopicConfig]:
        """Return the configuration of every topic by name."""
        return self._broker_tables.topic_configs()

    def put_subscription_group(self, group: SubscriptionGroupConfig) -> None:
        """Set the configuration of a consumer group.

        Raises BadProgress if no state file can hold the name.
        """
        self._broker_tables.put_subscription_group(group)

    def delete_subscription_group(self, group: str) -> bool:
        """Remove a consumer group from the table; return whether it was there."""
        return self._broker_tables.delete_subscription_group(group)

    def subscription_groups(self) -> dict[str, SubscriptionGroupConfig]:
        """Return the configuration of every consumer group by name."""
        return self._broker_tables.subscription_groups()

    def put_consumer_filter(self, consumer_filter: ConsumerFilterData) -> None:
        """Set the filter of a group in a topic."""
        self._broker_tables.put_consumer_filter(consumer_filter)

    def consumer_filters(self) -> dict[tuple[str, str], ConsumerFilterData]:
        """Return every filter by topic and group."""
        return self._broker_tables.consumer_filters()

    # ---- deletion on request: OSError if a write or unlink fails -----------------------------------------------------

    def delete_expired_files_manually(self) -> None:
        """Delete expired files at once, at any hour, during the next 20 runs.

        Source: `executeDeleteFilesManually`.
        """
        self._retention.delete_manually()

    def clean_unused_topics(self, topics_in_use: Collection[str]) -> tuple[str, ...]:
        """Delete the queues of all topics not in use; return their names.

        Numbers of a deleted topic restart at 0. SCHEDULE_TOPIC_XXXX, RMQ_SYS_TRANS_OP_HALF_TOPIC and light queues stay.
        The messages stay in the log until they expire, and can be read by offset and key. Raises OSError if the
        deletion cannot be recorded; nothing is deleted then, although a crash may make the deletion effective. Files
        that cannot be unlinked are removed later. Source: `cleanUnusedTopic`.
        """
        return self._retention.clean_unused_topics(topics_in_use)

    def clean_unused_lmq_topic(self, topic: str) -> bool:
        """Delete a light queue; return whether there was one. Source: `cleanUnusedLmqTopic`."""
        return self._retention.clean_unused_lmq_topic(topic)

    def clean_expired_consume_queues(self) -> tuple[tuple[str, int], ...]:
        """Delete each queue whose messages have all expired; return their topics and queue ids.

        Their numbers restart at 0. Source: `cleanExpiredConsumerQueue`.
        """
        return self._retention.clean_expired_consume_queues()

    # ---- state, offsets and statistics -------------------------------------------------------------------------------

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the open."""
        return self._held.findings

    @property
    def min_offset(self) -> int:
        """Physical offset of the first retained byte."""
        return self._log.min_offset

    @property
    def max_offset(self) -> int:
        """Physical offset after the last record that was put."""
        return self._log.max_offset

    @property
    def committed_offset(self) -> int:
        """Physical offset up to which readers may read.

        Below the flushed offset after a failed sync.
        """
        return self._log.readable_end

    @property
    def flushed_offset(self) -> int:
        """Physical offset up to which the log is on disk."""
        return self._log.flushed_where

    @property
    def read_only_reason(self) -> str | None:
        """Why the store accepts no more puts, as a sentence; None while it does."""
        return self._lifecycle.read_only_reason

    @property
    def reput_from_offset(self) -> int:
        """Physical offset up to which messages are in their queues and in the index."""
        return self._held.derived.reput_from_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        """Bytes of the readable log that are not in queues and index yet."""
        return self._reput.behind_bytes

    @property
    def dispatch_error(self) -> str | None:
        """Why dispatch has stopped for good, as a sentence, or None. Puts are refused then."""
        return self._reput.error

    def statistics(self) -> StatisticsSnapshot:
        """Return counts, latencies and rates of the puts so far.

        Times are those of the store's clock.
        """
        self._lifecycle.require_opener()
        return self._puts.statistics()

    def read_statistics(self) -> ReadStatisticsSnapshot:
        """Return counts, latencies and rates of the queue reads so far."""
        return self._reads.statistics()

    def delay_offsets(self) -> dict[int, int]:
        """Return the queue offset of the next message to deliver, by delay level.

        Levels that have never delivered a message are left out.
        """
        return self._delivery.progress()

    def runtime_info(self) -> dict[str, str]:
        """Return the runtime information for operators, as texts under RocketMQ's names."""
        return self._reads.runtime_info(self.statistics()) | self._delivery.runtime_info()

    @property
    def leaked_buffers(self) -> int:
        """The number of log files of a closed store that are still mapped.

        A view of a buffer that a caller keeps holds such a mapping.
        """
        return self._reads.buffers.leaked

    def check(self) -> None:
        """Assert the order of all watermarks (contract 9)."""
        self._lifecycle.require_open()
        try:
            self._log.check()
            assert self.min_offset <= self.flushed_offset <= self.committed_offset <= self.max_offset
        except AssertionError:
            self._lifecycle.require_open()  # a close meanwhile has released the files
            raise
