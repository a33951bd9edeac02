"""The message store: its life and its verbs. What they answer: docs/statuses.md. Source: `DefaultMessageStore`.

Each verb raises StoreClosed after `close()` and ForkedStore in a forked child, except `put`, `put_batch` and
`put_async`, which answer with a status after a close. Offsets are physical unless they are named queue offsets.
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
    """`durable` says whether everything put before the call is on disk; `flushed_offset` up to where it is."""

    durable: bool
    flushed_offset: int


class MessageStore:
    """A store of one directory; made by `open`, one opener at a time, usable from several threads.

    `running_flags` may be set by an operator. Buffers in an answer are its reader's: release them.
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
        """Open it; see `open`."""
        self.directory = directory
        self.running_flags = RunningFlags()
        self._check = parts.of(check_record)
        self._close_guard = parts.of(make_guard)()
        self._closing = False
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
        """Open or create the store in a directory, recovering it first.

        `listeners` are called with each message that can be read from its queue; `filter_bit_map` returns what the
        extension of the queues stores about the filters of a message; `memory_bytes` is the memory of the machine, and
        None has the store ask the machine.

        Raises StoreInUse, WrongFileSize, NoSpace or BadDirectory; a damaged store opens read-only with `findings`.
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
        """Store one message and answer as the flush policy promises; never raises for bad data (contract 8)."""
        answer = self._puts.append(message)
        return answer if isinstance(answer, PutResult) else self._puts.wait(answer)

    def put_batch(self, batch: MessageBatch) -> PutResult:
        """Store all messages of a batch or none; the answer is that of `put`."""
        answer = self._puts.append(batch)
        return answer if isinstance(answer, PutResult) else self._puts.wait(answer)

    def put_async(self, message: Message | MessageBatch) -> Future[PutResult]:
        """Append a message or a batch now; the future has the answer of `put` once that is known.

        It cannot be cancelled. Its callbacks may run in a thread of the store and must not wait for another put.
        """
        return self._puts.put_async(message)

    # ---- durability and close ----------------------------------------------------------------------------------------

    def flush(self) -> FlushResult:
        """Make everything put so far durable: what is in a buffer is committed first."""
        self._lifecycle.require_open()
        commit_failure = self._durability.commit_all()
        flushed_offset = self._durability.flush()
        return FlushResult(self.read_only_reason is None and commit_failure is None, flushed_offset)

    def close(self) -> None:
        """Answer who waits, dispatch, flush, note the clean exit, give up the lock. Idempotent.

        A store that is read-only, or whose last dispatch or flush fails, keeps its abort marker; `read_only_reason`
        says why. Of several closers one does the work and the others return at once: one of them may be a callback the
        first waits for. Not for signal handlers: a flush or put under way in the same thread would wait for itself.
        """
        self._lifecycle.require_opener()
        with self._close_guard:
            if self._closing:
                return
            self._closing = True
        try:
            self._close()
        except BaseException:
            self._closing = False
            raise

    def _close(self) -> None:
        self._puts.stop()
        self._pull_hold.stop()
        self._held.stop_allocation()
        self._retention.stop()
        self._delivery.stop()
        self._progress.stop()
        self._background.stop()
        commit_failure = self._durability.commit_all()
        self._durability.flush()
        dispatch_failure = self._dispatch_failure()
        self._lifecycle.read_only_reason = self.read_only_reason or commit_failure or dispatch_failure
        if self.read_only_reason is None:
            try:
                self._progress.save_all()
                self._held.note_clean_exit()
            except OSError as error:
                self._lifecycle.read_only_reason = f"clean exit not noted: {error}"
        with self._durability.guard:
            self._lifecycle.shut = "closed"
            self._reads.shut()
            self._held.close()
            self._reads.note_leaks()

    def _dispatch_failure(self) -> str | None:
        """Dispatch everything that is readable; return why that did not work, or None."""
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
        """Return the message whose record begins at a physical offset."""
        self._lifecycle.require_open()
        found = self._commit_log.get(offset, readable_end=self._log.readable_end)
        if found.message is None:
            self._lifecycle.require_open()  # nothing is found in a store that was closed meanwhile
        return found

    def messages(self) -> Iterator[StoredMessage]:
        """Yield every record that verifies and is committed, in offset order."""
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
        """Return messages of a queue from a queue offset on; `group` is who reads, for the statistics.

        Raises NotReadable while the running flag NOT_READABLE is set.
        """
        return self._reads.get_message(
            topic, queue_id, offset, max_msg_nums=max_msg_nums, message_filter=message_filter, group=group
        )

    def query_message(
        self, topic: str, key: str, *, max_num: int = _MESSAGES, begin_ms: int = 0, end_ms: int = _TIME_MAX
    ) -> QueryMessageResult:
        """Return the newest messages of a topic with a key, stored in [begin_ms, end_ms], oldest first.

        At most `max_msgs_num_batch` of the configuration come at once.
        """
        with self._reads:
            return self._reads.query.by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)

    def message_by_id(self, message_id: str) -> GetResult:
        """Return the message of an offset message id, as `PutResult.message_id` has it; hex digits may be small.

        The status is OFFSET_FOUND_NULL, and `message` None, for a text that is no offset message id, for a place where
        no readable record begins, and for a record that another host stored.
        """
        with self._reads:
            return self._reads.by_id(message_id)

    def select_message_by_offset(self, offset: int, size: int | None = None) -> RecordBuffer | None:
        """Return the record that begins at a physical offset, if it has that size."""
        with self._reads:
            return self._reads.query.at(offset, size)

    def commit_log_data(self, offset: int) -> ReadBuffer | None:
        """Return all readable bytes from a physical offset to the end of its log file, for who copies the log.

        They were checked when the log was opened or written, and are not checked again.
        """
        with self._reads:
            return self._reads.query.rest_of_file(offset)

    # ---- reads by queue and queue offset -----------------------------------------------------------------------------

    def queues(self) -> list[tuple[str, int]]:
        """Return topic and queue id of every queue."""
        with self._reads:
            return self._reads.queues.names()

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the first message; an unknown queue counts as an empty one, 0."""
        with self._reads:
            return self._reads.queues.range_of(topic, queue_id)[0]

    def max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the queue offset that the next message gets; an unknown queue counts as an empty one, 0."""
        with self._reads:
            return self._reads.queues.range_of(topic, queue_id)[1]

    def message_total_in_queue(self, topic: str, queue_id: int) -> int:
        """Return how many numbers lie between minimum and maximum."""
        with self._reads:
            min_offset, max_offset = self._reads.queues.range_of(topic, queue_id)
        return max_offset - min_offset

    def commit_log_offset_in_queue(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the physical offset of a message, None if the queue has no such message (RocketMQ: 0)."""
        with self._reads:
            unit = self._reads.queues.unit(topic, queue_id, queue_offset)
        return None if unit is None else unit.offset

    def store_timestamp_in_queue(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the store time of a message in ms, None if it cannot be read (RocketMQ: -1)."""
        with self._reads:
            return self._reads.queues.store_timestamp(topic, queue_id, queue_offset)

    def earliest_message_time(self, topic: str | None = None, queue_id: int = 0) -> int | None:
        """Return the store time in ms of the first message of a queue, or of the log if no topic is given.

        None if there is no such message, or if it cannot be read (RocketMQ: -1).
        """
        if topic is None:
            with self._reads:
                return self._reads.query.store_timestamp(self._reads.log.min_offset)
        queue_offset = self.min_offset_in_queue(topic, queue_id)
        return self.store_timestamp_in_queue(topic, queue_id, queue_offset)

    def offset_in_queue_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Return the queue offset of the first message stored at or after a time; the maximum if there is none."""
        with self._reads:
            return self._reads.queues.offset_by_time(topic, queue_id, timestamp_ms)

    def message_ids_in_queue(self, topic: str, queue_id: int, begin: int, end: int) -> dict[str, int]:
        """Return the queue offset of each message id in [begin, end), as far as there are messages."""
        with self._reads:
            return self._reads.message_ids(topic, queue_id, begin, end)

    def is_in_disk(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Return whether a message is so old that it has likely left the memory; False when there is none."""
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
        """Pull as `get_message` does, and wait for up to `hold_ms` where there is nothing yet; 0 is not to wait.

        The future has the answer of a pull at the moment when there is a message that the filter wants, when the queue
        was deleted, or when the time is over; StoreClosed if the store is closed before, NotReadable if nobody may
        read then. To cancel it is to give up waiting. Its callbacks run in a thread of the store and must not wait for
        another pull. Without `long_polling_enable` everybody who would wait does so for `short_polling_time_mills`.

        Raises NotReadable while the running flag NOT_READABLE is set, TooManyHeldPulls where nobody more may wait,
        StoreClosed and ForkedStore.
        """
        request = PullRequest((topic, queue_id), offset, max_msg_nums, message_filter, group)
        return self._pull_hold.pull(request, hold_ms)

    @property
    def held_pulls(self) -> int:
        """How many pulls wait for a message."""
        return self._pull_hold.held_count

    # ---- consumer groups: a commit is saved every `flush_consumer_offset_interval` ms and by `close` -----------------

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Note that a group wants the message `offset` of a queue next, be it less than before; return what counts.

        An offset beyond the end of the queue counts as that end. Raises BadProgress for what no file could hold.
        """
        return self._group_offsets.commit_offset(group, topic, queue_id, offset)

    def query_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return where a group goes on in a queue, None where the client is to decide (`QUERY_NOT_FOUND`).

        A group that has committed nothing begins at 0 of a queue that has its first message, in memory, as in RocketMQ.
        """
        return self._group_offsets.query_offset(group, topic, queue_id)

    def consumer_offsets(self, topic: str) -> dict[str, dict[int, int]]:
        """Return what each group has committed in a topic, by queue id."""
        return self._group_offsets.consumer_offsets(topic)

    def topics_of_group(self, group: str) -> list[str]:
        """Return the topics in which a group has committed something. Source: `whichTopicByConsumer`."""
        return self._group_offsets.topics_of_group(group)

    def diff_total(self, group: str, topic: str) -> int:
        """Return how many messages of a topic a group has still to read: the sum over the queues of the topic.

        What a group has not committed counts as 0. Source: `ConsumeStats.computeTotalDiff`.
        """
        return self._group_offsets.diff_total(group, topic)

    def query_min_offset_in_all_group(self, topic: str, without: Collection[str] = ()) -> dict[int, int]:
        """Return by queue id the least of the offsets that groups have committed there and that can be read.

        The groups `without` are left out; RocketMQ deletes what they have committed.
        """
        return self._group_offsets.query_min_offset_in_all_group(topic, without)

    def clone_offset(self, source_group: str, target_group: str, topic: str) -> None:
        """Let a group go on where another one is in a topic. Raises BadProgress. Source: `cloneOffset`."""
        self._group_offsets.clone_offset(source_group, target_group, topic)

    def scan_unsubscribed_topic(self, subscribed: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
        """Remove the offsets of groups that have left: not in `subscribed` (topic, group), and behind every message.

        Returns topic and group of what was removed.
        """
        return self._group_offsets.scan_unsubscribed_topic(subscribed)

    # ---- topics, groups and filters: OSError if the disk refuses, ReadOnlyStore if nothing may be written ------------

    def put_topic_config(self, topic: TopicConfig) -> None:
        """Set a topic. Raises BadProgress for a name that no progress could be kept under."""
        self._broker_tables.put_topic_config(topic)

    def delete_topic_config(self, topic: str) -> bool:
        """Remove a topic from the table; return whether it was there. `clean_unused_topics` deletes its queues."""
        return self._broker_tables.delete_topic_config(topic)

    def topic_configs(self) -> dict[str, TopicConfig]:
        """Return every topic by name."""
        return self._broker_tables.topic_configs()

    def put_subscription_group(self, group: SubscriptionGroupConfig) -> None:
        """Set a consumer group. Raises BadProgress for a name that no progress could be kept under."""
        self._broker_tables.put_subscription_group(group)

    def delete_subscription_group(self, group: str) -> bool:
        """Remove a consumer group from the table; return whether it was there."""
        return self._broker_tables.delete_subscription_group(group)

    def subscription_groups(self) -> dict[str, SubscriptionGroupConfig]:
        """Return every consumer group by name."""
        return self._broker_tables.subscription_groups()

    def put_consumer_filter(self, consumer_filter: ConsumerFilterData) -> None:
        """Set the filter of a group in a topic."""
        self._broker_tables.put_consumer_filter(consumer_filter)

    def consumer_filters(self) -> dict[tuple[str, str], ConsumerFilterData]:
        """Return every filter by topic and group."""
        return self._broker_tables.consumer_filters()

    # ---- deletion on request: OSError if the disk refuses ------------------------------------------------------------

    def delete_expired_files_manually(self) -> None:
        """Have expired files deleted at once: the next 20 runs wait for no hour (`executeDeleteFilesManually`)."""
        self._retention.delete_manually()

    def clean_unused_topics(self, topics_in_use: Collection[str]) -> tuple[str, ...]:
        """Delete the queues of all other topics, and return their names; a deleted topic begins at number 0 again.

        SCHEDULE_TOPIC_XXXX, RMQ_SYS_TRANS_OP_HALF_TOPIC and light queues stay. The messages stay in the log, and can be
        read by place and key, until they expire. Raises OSError: nothing has changed where the disk refuses to remember
        it, but for a crash that may find it; files that it refuses to remove go later. Source: `cleanUnusedTopic`.
        """
        return self._retention.clean_unused_topics(topics_in_use)

    def clean_unused_lmq_topic(self, topic: str) -> bool:
        """Delete a light queue; return whether there was one. Source: `cleanUnusedLmqTopic`."""
        return self._retention.clean_unused_lmq_topic(topic)

    def clean_expired_consume_queues(self) -> tuple[tuple[str, int], ...]:
        """Delete each queue whose messages have all expired, and return topic and queue id of them.

        Their numbers begin at 0 again. Source: `cleanExpiredConsumerQueue`.
        """
        return self._retention.clean_expired_consume_queues()

    # ---- state, offsets and statistics -------------------------------------------------------------------------------

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found at open."""
        return self._held.findings

    @property
    def min_offset(self) -> int:
        """Physical offset of the first retained byte."""
        return self._log.min_offset

    @property
    def max_offset(self) -> int:
        """Physical offset just behind the last record that was put."""
        return self._log.max_offset

    @property
    def committed_offset(self) -> int:
        """End of what readers may see: below the flushed end once a sync has failed."""
        return self._log.readable_end

    @property
    def flushed_offset(self) -> int:
        """Everything below this physical offset is on disk."""
        return self._log.flushed_where

    @property
    def read_only_reason(self) -> str | None:
        """Why the store takes no more puts, as a sentence, or None."""
        return self._lifecycle.read_only_reason

    @property
    def reput_from_offset(self) -> int:
        """Up to this physical offset messages are in their queues and in the index."""
        return self._held.derived.reput_from_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        """How much of what readers may see of the log is not in queues and index yet."""
        return self._reput.behind_bytes

    @property
    def dispatch_error(self) -> str | None:
        """Why no message goes into a queue any more, as a sentence, or None. Puts are refused then."""
        return self._reput.error

    def statistics(self) -> StatisticsSnapshot:
        """Return counts, latencies and rates of the puts so far; times are those of the store's clock."""
        self._lifecycle.require_opener()
        return self._puts.statistics()

    def read_statistics(self) -> ReadStatisticsSnapshot:
        """Return counts, latencies and rates of the reads by queue so far."""
        return self._reads.statistics()

    def delay_offsets(self) -> dict[int, int]:
        """Return the number of the next message to be delivered of each delay level that has ever delivered one."""
        return self._delivery.progress()

    def runtime_info(self) -> dict[str, str]:
        """Return what an operator asks, as texts under RocketMQ's names."""
        return self._reads.runtime_info(self.statistics()) | self._delivery.runtime_info()

    @property
    def leaked_buffers(self) -> int:
        """How many log files of a closed store are still mapped, because somebody keeps a view of a buffer."""
        return self._reads.buffers.leaked

    def check(self) -> None:
        """Assert the order of all watermarks (contract 9)."""
        self._lifecycle.require_open()
        try:
            self._log.check()
            assert self.min_offset <= self.flushed_offset <= self.committed_offset <= self.max_offset
        except AssertionError:
            self._lifecycle.require_open()  # a store that was closed meanwhile has given its files up
            raise
