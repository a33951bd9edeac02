"""Reads of the store: admission, lookup, statistics.

Every answer is consistent: a read during which the store is closed raises StoreClosed, whatever it has found.
Source: `DefaultMessageStore`.
"""

import os

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import NotReadable, StoreClosed
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.message.message import GetResult, GetStatus
from tornpage.impl.message.multi_dispatch import MultiDispatch
from tornpage.impl.message.properties_text import parser_of
from tornpage.impl.parts import Parts
from tornpage.impl.read.confirming import confirm_key, confirm_units
from tornpage.impl.read.held_pulls import PullRequest, QueueName
from tornpage.impl.read.log_reader import LogReader
from tornpage.impl.read.message_filter import MessageFilter
from tornpage.impl.read.message_query import KeyIndex, MessageQuery, parse_message_id
from tornpage.impl.read.queue_pull import GetMessageResult, TransferLimits
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.impl.read.queued_records import QueuedRecords, ReadableQueues
from tornpage.impl.read.read_buffer import ReadBuffers
from tornpage.impl.read.runtime_info import runtime_info
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.running_flags import RunningFlags
from tornpage.impl.statistics.read_statistics import ReadStatistics, ReadStatisticsSnapshot
from tornpage.impl.statistics.store_statistics import StatisticsSnapshot

__all__ = ["ReadPath", "StorePulls"]

_PER_CENT = 100


class ReadPath:
    """The parts of all reads.

    `index` is None without one; `memory_bytes` None means the memory of the machine. Used as `with reads:`, it raises
    StoreClosed or ForkedStore if the store is closed before or during the block.
    """

    def __init__(
        self,
        log: MappedFileQueue,
        queues: ReadableQueues,
        index: KeyIndex | None,
        *,
        lifecycle: Lifecycle,
        flags: RunningFlags,
        config: MessageStoreConfig,
        clock: Clock,
        parts: Parts,
        dispatch: MultiDispatch | None,
        files: Files,
        memory_bytes: int | None = None,
        is_damaged: bool = False,
    ) -> None:
        self.log = log
        self.buffers = parts.of(ReadBuffers)(parse=parser_of(config.rocketmq_version))
        self._lifecycle = lifecycle
        self._flags = flags
        self._clock = clock
        self._files = files
        self._records_disk_fall = config.disk_fall_recorded
        self._statistics = ReadStatistics(started_ms=clock())
        for file in log.mapped:
            log.verified.marks_of(file)  # what is appended from now on counts as appended by this process
        self.reader = LogReader(log, check=parts.of(check_record), buffers=self.buffers, never_grows=is_damaged)
        self.queues = parts.of(QueueReads)(
            queues,
            self.reader,
            records=parts.of(QueuedRecords)(dispatch),
            limits=_limits(config, _memory_of_the_machine() if memory_bytes is None else memory_bytes),
            corrects_offsets=config.broker_role is not BrokerRole.SLAVE or config.offset_check_in_slave,
            confirm=parts.of(confirm_units),
        )
        self.query = parts.of(MessageQuery)(
            index,
            self.reader,
            batch_max=config.max_msgs_num_batch,
            hash_of=parts.of(key_hash),
            confirm=parts.of(confirm_key),
        )

    def __enter__(self) -> None:
        if self._lifecycle.shut or self.buffers.is_shut:
            self._require_open()

    def __exit__(self, kind: type[BaseException] | None, _error: object, _traceback: object) -> None:
        if (self._lifecycle.shut or self.buffers.is_shut) and (kind is None or issubclass(kind, ValueError)):
            self._require_open()  # files may have been closed meanwhile

    def _require_open(self) -> None:
        if self._lifecycle.shut:
            self._lifecycle.require_open()
        if self.buffers.is_shut:  # a close has begun and no file can be held
            raise StoreClosed(self._lifecycle.directory)

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_msg_nums: int,
        message_filter: MessageFilter | None,
        group: str,
    ) -> GetMessageResult:
        """Read by queue, and count the read. Raises NotReadable too."""
        began_ms = self._clock()
        if not self._flags.readable:
            self._require_open()
            raise NotReadable(self._lifecycle.directory)
        with self:
            result = self.queues.get_message(
                topic, queue_id, offset, max_msg_nums=max_msg_nums, message_filter=message_filter
            )
        now_ms = self._clock()
        self._statistics.count(messages=len(result.messages), elapsed_ms=now_ms - began_ms, now_ms=now_ms)
        if self._records_disk_fall and result.behind_bytes is not None:
            self._statistics.record_disk_fall(topic, queue_id, group, result.behind_bytes)
        return result

    def by_id(self, text: str) -> GetResult:
        """Return the message of an offset message id, if its offset and store host match."""
        parsed = parse_message_id(text)
        buffer = None if parsed is None else self.query.at(parsed[1])
        if parsed is None or buffer is None:
            return GetResult(GetStatus.OFFSET_FOUND_NULL)
        with buffer:
            message = buffer.message()
        if message.store_host != parsed[0]:
            return GetResult(GetStatus.OFFSET_FOUND_NULL)
        return GetResult(GetStatus.FOUND, message)

    def message_ids(self, topic: str, queue_id: int, begin: int, end: int) -> dict[str, int]:
        """Return the queue offset of each message of [begin, end) by its offset message id."""
        return {
            buffer.message().message_id: buffer.queue_offset
            for buffer in self.queues.records(topic, queue_id, begin, end)
        }

    def statistics(self) -> ReadStatisticsSnapshot:
        """Return the counts of the reads so far."""
        self._lifecycle.require_opener()
        return self._statistics.snapshot(self._clock())

    def runtime_info(self, puts: StatisticsSnapshot) -> dict[str, str]:
        """Return counts, rates and disk usage as texts; `puts` are the counts of the puts."""
        return runtime_info(
            puts,
            self.statistics(),
            self.log,
            files=self._files,
            queues_directory=f"{self._lifecycle.directory}/consumequeue",
        )

    def shut(self) -> None:
        """Take all buffers back, before the log files are closed."""
        self.buffers.shut()

    def note_leaks(self) -> None:
        """Log which mappings outlive the store, after the log files were closed."""
        self.buffers.log_leaks()


class StorePulls:
    """The reads that long polling uses."""

    def __init__(self, reads: ReadPath) -> None:
        self._reads = reads

    def pull(self, request: PullRequest) -> GetMessageResult:
        """Answer a request, and count the read. Raises NotReadable too."""
        return self._reads.get_message(
            *request.queue,
            request.offset,
            max_msg_nums=request.max_msg_nums,
            message_filter=request.message_filter,
            group=request.group,
        )

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        """Return the first message that a request accepts, without counting the read.

        The search begins at a queue offset.
        """
        with self._reads:
            return self._reads.queues.get_message(
                *request.queue, offset, max_msg_nums=1, message_filter=request.message_filter
            )

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        """Return minimum and maximum of a queue; 0 and 0 for an unknown one."""
        with self._reads:
            return self._reads.queues.range_of(*queue)


def _memory_of_the_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limits(config: MessageStoreConfig, memory_bytes: int) -> TransferLimits:
    return TransferLimits(
        bytes_in_memory=config.max_transfer_bytes_on_message_in_memory,
        count_in_memory=config.max_transfer_count_on_message_in_memory,
        bytes_in_disk=config.max_transfer_bytes_on_message_in_disk,
        count_in_disk=config.max_transfer_count_on_message_in_disk,
        memory_bytes=memory_bytes * config.access_message_in_memory_max_ratio // _PER_CENT,
    )
