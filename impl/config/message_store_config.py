"""The configuration of a store: RocketMQ's names in snake case, each with its unit."""

from dataclasses import dataclass
from typing import Literal

from tornpage.impl.config import defaults
from tornpage.impl.config.config_checks import require_possible
from tornpage.impl.config.policy import (
    AllocationPolicy,
    BrokerRole,
    CommitPolicy,
    FlushDiskType,
    FlushPolicy,
    PutLockKind,
    QueueFlushPolicy,
    VerifyReads,
    WarmUp,
)
from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.message.codec import BLANK_BYTES
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.message.properties_text import parse_split_pairs, parser_of

__all__ = ["MessageStoreConfig", "RecordChecksum", "VerifyReads"]

RecordChecksum = Literal["record", "body"]

_FLUSH = FlushPolicy(FlushDiskType.ASYNC_FLUSH)
_COMMIT = CommitPolicy()
_QUEUE_FLUSH = QueueFlushPolicy()
_ALLOCATION = AllocationPolicy()
_RETENTION = RetentionPolicy()


@dataclass(frozen=True, slots=True)
class MessageStoreConfig:
    """The settings of a store. Raises BadConfig for an invalid value.

    `mapped_file_size_commit_log` and `max_message_size` are bytes. `record_checksum="record"` ends each record with the
    checksum trailer of RocketMQ 5; `"body"` writes the plain records of 4.9.3. `populate_ahead_bytes` (not in RocketMQ)
    is for asynchronous stores. A thread of the store populates at least that many bytes of pages of the log ahead of
    the records. With 0 each page is populated by a page fault.

    `store_path_commit_log` names the directories of the log, each used by one store only. Relative paths are relative
    to the store directory, and an empty tuple means `commitlog` there. No new file is created in the directories of
    `read_only_commit_log_store_paths`; existing files there are written and removed like others.

    `rocketmq_version` matters for stores of 4.8.0 and 4.9.0, which may join two properties of a batch. Nothing in a
    directory states the release that wrote it.

    Sizes of consume queue files are bytes, rounded up to whole units. An index file has `max_hash_slot_num` slots and
    room for `max_index_num` - 1 entries. These sizes may change between two opens: files of another size are rebuilt
    from the log.

    `check_whole_log_on_recover` (not in RocketMQ) verifies every record when the store opens. Without it an open begins
    at the offset up to which log, queues and index were durable, and damage before that offset is found when it is
    read.

    `verify_reads` (not in RocketMQ, which verifies no read) says which reads verify the checksums of a record:
    `"always"` all of them, `"once"` those of records that this process has neither appended nor verified, `"never"`
    none. With `"once"` a failed check, or a failed operation on a log file, makes the store verify everything again. A
    get by physical offset and the delivery of a delayed message always verify.

    The first put to an empty store waits for the first log file: its blocks are allocated, and its name is synced. With
    `first_file_at_open` (not in RocketMQ) the open waits for that instead. A file that no put has used is removed by
    the close.

    With `deliver_delayed_messages` (not in RocketMQ, whose masters always deliver) a master delivers delayed messages
    when they are due; without it they stay in their queues. With `enable_schedule_async_deliver` the answer to a
    delivered copy waits for disk and replica while the next message is delivered. At most
    `schedule_async_deliver_max_pending_limit` copies of a level are unanswered at a time.

    `max_held_pulls` (not in RocketMQ) limits the pulls that wait for messages at a time.
    """

    mapped_file_size_commit_log: int = defaults.MAPPED_FILE_SIZE_COMMIT_LOG
    """`mappedFileSizeCommitLog`, bytes of one commit log file."""
    max_message_size: int = defaults.MAX_MESSAGE_SIZE
    """`maxMessageSize`, bytes of the longest record that a put accepts."""
    store_path_commit_log: tuple[str, ...] = ()
    """`storePathCommitLog`: directories of the commit log."""
    read_only_commit_log_store_paths: tuple[str, ...] = ()
    """`readOnlyCommitLogStorePaths`: directories of the commit log that get no new file."""
    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    """`flushDiskType`: whether the answer to a put waits for the flush."""
    record_checksum: RecordChecksum = "record"
    """Not in RocketMQ: the bytes covered by the checksum at the end of a record."""
    rocketmq_version: str = defaults.ROCKETMQ_VERSION
    """Not in RocketMQ: the release that wrote the store; the properties of its records are parsed as that one does."""
    store_host: tuple[str, int] = defaults.STORE_HOST
    """Not in RocketMQ: host and port written into records and message ids."""
    broker_role: BrokerRole = BrokerRole.ASYNC_MASTER
    """`brokerRole`: whether puts are accepted, and whether they wait for a replica."""
    use_reentrant_lock_when_put_message: bool = True
    """`useReentrantLockWhenPutMessage`: the kind of the put lock; see `put_lock_kind`."""
    os_page_cache_busy_time_out_mills: int = defaults.OS_PAGE_CACHE_BUSY_TIME_OUT_MILLS
    """`osPageCacheBusyTimeOutMills`, ms that the put lock may be held before other puts are refused."""
    message_delay_level: str = defaults.MESSAGE_DELAY_LEVEL
    """`messageDelayLevel`: the delay of each level, level 1 first: numbers with s, m, h or d."""
    enable_multi_dispatch: bool = False
    """`enableMultiDispatch`: whether a message also goes into the queues that its properties name."""
    enable_lmq: bool = False
    """`enableLmq`: whether light message queues exist."""
    max_lmq_consume_queue_num: int = defaults.MAX_LMQ_CONSUME_QUEUE_NUM
    """`maxLmqConsumeQueueNum`: the greatest number of light queues."""
    ha_slave_fallbehind_max: int = defaults.HA_SLAVE_FALLBEHIND_MAX
    """`haSlaveFallbehindMax`, bytes that a usable replica may lag."""
    slave_timeout: int = defaults.SLAVE_TIMEOUT
    """`slaveTimeout`, ms that a put waits for a replica."""
    clean_resource_interval: int = defaults.CLEAN_RESOURCE_INTERVAL
    """`cleanResourceInterval`, ms between two clean-ups, and between two checks of the disk space."""
    disk_space_warning_level_ratio: float = defaults.DISK_SPACE_WARNING_LEVEL_RATIO
    """`rocketmq.broker.diskSpaceWarningLevelRatio`, share of the disk: a fuller disk accepts no messages."""
    disk_space_clean_forcibly_ratio: float = defaults.DISK_SPACE_CLEAN_FORCIBLY_RATIO
    """`rocketmq.broker.diskSpaceCleanForciblyRatio`, share of the disk: on a fuller one files of any age are
    deleted.
    """
    populate_ahead_bytes: int = defaults.POPULATE_AHEAD_BYTES
    """Not in RocketMQ: bytes of the log populated ahead of the records."""
    sync_flush_timeout: int = _FLUSH.sync_flush_timeout
    """`syncFlushTimeout`, ms that a synchronous put waits for the flush."""
    flush_interval_commit_log: int = _FLUSH.flush_interval_commit_log
    """`flushIntervalCommitLog`, ms between two rounds of the timed flush."""
    flush_commit_log_least_pages: int = _FLUSH.flush_commit_log_least_pages
    """`flushCommitLogLeastPages`, pages of 4,096 bytes: a round skips a file with fewer unflushed pages."""
    flush_commit_log_thorough_interval: int = _FLUSH.flush_commit_log_thorough_interval
    """`flushCommitLogThoroughInterval`, ms after which one round ignores the page rule."""
    flush_commit_log_timed: bool = _FLUSH.flush_commit_log_timed
    """`flushCommitLogTimed`: whether rounds are started by the clock only."""
    commit_interval_commit_log: int = _COMMIT.commit_interval_commit_log
    """`commitIntervalCommitLog`, ms between two commits of the pool; a put may start one earlier."""
    commit_commit_log_least_pages: int = _COMMIT.commit_commit_log_least_pages
    """`commitCommitLogLeastPages`, pages of 4,096 bytes: a commit skips a buffer with fewer uncommitted pages."""
    commit_commit_log_thorough_interval: int = _COMMIT.commit_commit_log_thorough_interval
    """`commitCommitLogThoroughInterval`, ms without a commit after which a round ignores the page rule."""
    flush_interval_consume_queue: int = _QUEUE_FLUSH.flush_interval_consume_queue
    """`flushIntervalConsumeQueue`, ms between two flushes of the consume queues."""
    flush_consume_queue_least_pages: int = _QUEUE_FLUSH.flush_consume_queue_least_pages
    """`flushConsumeQueueLeastPages`, pages of 4,096 bytes: a flush skips a queue with fewer unflushed pages."""
    flush_consume_queue_thorough_interval: int = _QUEUE_FLUSH.flush_consume_queue_thorough_interval
    """`flushConsumeQueueThoroughInterval`, ms after which one flush ignores the page rule and writes the checkpoint."""
    transient_store_pool_enable: bool = False
    """`transientStorePoolEnable`: whether records are first written to a pool of buffers."""
    transient_store_pool_size: int = defaults.TRANSIENT_STORE_POOL_SIZE
    """`transientStorePoolSize`, buffers of the pool, each as large as a log file."""
    fast_fail_if_no_buffer_in_store_pool: bool = False
    """`fastFailIfNoBufferInStorePool`: whether puts are refused while the pool has no free buffer."""
    mapped_files_ahead: int = _ALLOCATION.files_ahead
    """Not in RocketMQ: log files created before they are needed; RocketMQ creates 1."""
    warm_up: WarmUp = WarmUp.NONE
    """`warmMapedFileEnable`: how the pages of a new log file are populated."""
    flush_least_pages_when_warm_mapped_file: int = _ALLOCATION.flush_least_pages_when_warm_mapped_file
    """`flushLeastPagesWhenWarmMapedFile`, pages of 4,096 bytes between two syncs of a warm-up."""
    mapped_file_size_consume_queue: int = defaults.MAPPED_FILE_SIZE_CONSUME_QUEUE
    """`mappedFileSizeConsumeQueue`, bytes of one consume queue file, rounded up to whole units of 20."""
    enable_consume_queue_ext: bool = False
    """`enableConsumeQueueExt`: whether queues have extension files."""
    mapped_file_size_consume_queue_ext: int = defaults.MAPPED_FILE_SIZE_CONSUME_QUEUE_EXT
    """`mappedFileSizeConsumeQueueExt`, bytes of one extension file."""
    message_index_enable: bool = True
    """`messageIndexEnable`: whether the store keeps an index of keys."""
    max_hash_slot_num: int = defaults.MAX_HASH_SLOT_NUM
    """`maxHashSlotNum`, hash slots of one index file, 4 bytes each."""
    max_index_num: int = defaults.MAX_INDEX_NUM
    """`maxIndexNum`, entries of one index file, 20 bytes each; the first is never used."""
    max_msgs_num_batch: int = defaults.MAX_MSGS_NUM_BATCH
    """`maxMsgsNumBatch`: the greatest number of messages that one query by key returns."""
    max_transfer_bytes_on_message_in_memory: int = defaults.MAX_TRANSFER_BYTES_ON_MESSAGE_IN_MEMORY
    """`maxTransferBytesOnMessageInMemory`, greatest number of bytes of one answer whose messages are likely in
    memory.
    """
    max_transfer_count_on_message_in_memory: int = defaults.MAX_TRANSFER_COUNT_ON_MESSAGE_IN_MEMORY
    """`maxTransferCountOnMessageInMemory`, greatest number of messages of such an answer."""
    max_transfer_bytes_on_message_in_disk: int = defaults.MAX_TRANSFER_BYTES_ON_MESSAGE_IN_DISK
    """`maxTransferBytesOnMessageInDisk`, greatest number of bytes of one answer whose messages are likely on disk
    only.
    """
    max_transfer_count_on_message_in_disk: int = defaults.MAX_TRANSFER_COUNT_ON_MESSAGE_IN_DISK
    """`maxTransferCountOnMessageInDisk`, greatest number of messages of such an answer."""
    access_message_in_memory_max_ratio: int = defaults.ACCESS_MESSAGE_IN_MEMORY_MAX_RATIO
    """`accessMessageInMemoryMaxRatio`, percent of the machine's memory that the log's end is assumed to occupy."""
    disk_fall_recorded: bool = True
    """`diskFallRecorded`: whether the statistics record how far each consumer group lags."""
    offset_check_in_slave: bool = False
    """`offsetCheckInSlave`: whether a slave corrects offsets outside a queue."""
    check_whole_log_on_recover: bool = False
    """Not in RocketMQ: whether an open verifies every record of the log."""
    verify_reads: VerifyReads = "always"
    """Not in RocketMQ: which reads verify the checksums of a record."""
    first_file_at_open: bool = False
    """Not in RocketMQ: whether the open of an empty store creates its first log file."""
    deliver_delayed_messages: bool = True
    """Not in RocketMQ: whether a master delivers delayed messages when they are due."""
    enable_schedule_async_deliver: bool = False
    """`enableScheduleAsyncDeliver`: whether a delayed message may be put before the previous one is answered."""
    schedule_async_deliver_max_pending_limit: int = defaults.SCHEDULE_ASYNC_DELIVER_MAX_PENDING_LIMIT
    """`scheduleAsyncDeliverMaxPendingLimit`, copies of one delay level that may be unanswered at a time."""
    flush_delay_offset_interval: int = defaults.FLUSH_DELAY_OFFSET_INTERVAL
    """`flushDelayOffsetInterval`, ms between two saves of the progress of delayed delivery."""
    long_polling_enable: bool = True
    """`longPollingEnable`: whether a pull waits as long as its consumer requests."""
    short_polling_time_mills: int = defaults.SHORT_POLLING_TIME_MILLS
    """`shortPollingTimeMills`, ms that a pull waits if long polling is off."""
    max_held_pulls: int = defaults.MAX_HELD_PULLS
    """Not in RocketMQ: pulls that may wait for messages at a time."""
    file_reserved_time: int = _RETENTION.file_reserved_time
    """`fileReservedTime`, hours for which a message is kept."""
    delete_when: str = _RETENTION.delete_when
    """`deleteWhen`, hours of the day, 00 to 23, at which expired files are deleted, separated by `;`."""
    time_zone: str = _RETENTION.time_zone
    """Not in RocketMQ: the IANA time zone of `delete_when`; empty means the zone of the machine."""
    delete_commit_log_files_interval: int = _RETENTION.delete_commit_log_files_interval
    """`deleteCommitLogFilesInterval`, ms between two deletions of log files."""
    destroy_maped_file_interval_forcibly: int = _RETENTION.destroy_maped_file_interval_forcibly
    """`destroyMapedFileIntervalForcibly`, ms that a reader may hold a file that is to be deleted."""
    redelete_hanged_file_interval: int = _RETENTION.redelete_hanged_file_interval
    """`redeleteHangedFileInterval`, ms between two attempts to delete a file that a reader holds."""
    delete_consume_queue_files_interval: int = _RETENTION.delete_consume_queue_files_interval
    """`deleteConsumeQueueFilesInterval`, ms of pause after a queue whose files were deleted."""
    clean_file_forcibly_enable: bool = _RETENTION.clean_file_forcibly_enable
    """`cleanFileForciblyEnable`: whether files that have not expired are deleted from a full disk."""
    disk_max_used_space_ratio: int = _RETENTION.disk_max_used_space_ratio
    """`diskMaxUsedSpaceRatio`, percent of the disk: on a fuller one expired files are deleted at any hour."""
    flush_consumer_offset_interval: int = defaults.FLUSH_CONSUMER_OFFSET_INTERVAL
    """`flushConsumerOffsetInterval`, ms between two saves of consumer offsets."""

    def __post_init__(self) -> None:
        require_possible(self)

    def flush_policy(self) -> FlushPolicy:
        """Return the policy for flushes of the commit log."""
        return FlushPolicy(
            self.flush_disk_type,
            flush_interval_commit_log=self.flush_interval_commit_log,
            flush_commit_log_least_pages=self.flush_commit_log_least_pages,
            flush_commit_log_thorough_interval=self.flush_commit_log_thorough_interval,
            flush_commit_log_timed=self.flush_commit_log_timed,
            sync_flush_timeout=self.sync_flush_timeout,
        )

    def commit_policy(self) -> CommitPolicy:
        """Return the policy for commits of the buffer pool."""
        return CommitPolicy(
            commit_interval_commit_log=self.commit_interval_commit_log,
            commit_commit_log_least_pages=self.commit_commit_log_least_pages,
            commit_commit_log_thorough_interval=self.commit_commit_log_thorough_interval,
        )

    def queue_flush_policy(self) -> QueueFlushPolicy:
        """Return the policy for flushes of consume queues and checkpoint."""
        return QueueFlushPolicy(
            flush_interval_consume_queue=self.flush_interval_consume_queue,
            flush_consume_queue_least_pages=self.flush_consume_queue_least_pages,
            flush_consume_queue_thorough_interval=self.flush_consume_queue_thorough_interval,
        )

    def allocation_policy(self) -> AllocationPolicy:
        """Return the policy for creating log files before they are needed."""
        return AllocationPolicy(
            files_ahead=self.mapped_files_ahead,
            warm_up=self.warm_up,
            flush_least_pages_when_warm_mapped_file=self.flush_least_pages_when_warm_mapped_file,
        )

    @property
    def pool_buffers(self) -> int:
        """The number of buffers in the transient store pool.

        It is 0 under SYNC_FLUSH and on a SLAVE, as in RocketMQ.
        """
        asynchronous = self.flush_disk_type is FlushDiskType.ASYNC_FLUSH and self.broker_role is not BrokerRole.SLAVE
        return self.transient_store_pool_size if self.transient_store_pool_enable and asynchronous else 0

    def delay_levels(self) -> DelayLevels:
        """Return the parsed table of delay levels."""
        return DelayLevels.parse(self.message_delay_level)

    def retention_policy(self) -> RetentionPolicy:
        """Return the policy for the expiry of messages and for full disks."""
        return RetentionPolicy(
            file_reserved_time=self.file_reserved_time,
            delete_when=self.delete_when,
            time_zone=self.time_zone,
            clean_resource_interval=self.clean_resource_interval,
            delete_commit_log_files_interval=self.delete_commit_log_files_interval,
            destroy_maped_file_interval_forcibly=self.destroy_maped_file_interval_forcibly,
            redelete_hanged_file_interval=self.redelete_hanged_file_interval,
            delete_consume_queue_files_interval=self.delete_consume_queue_files_interval,
            clean_file_forcibly_enable=self.clean_file_forcibly_enable,
            disk_max_used_space_ratio=self.disk_max_used_space_ratio,
            disk_space_clean_forcibly_ratio=self.disk_space_clean_forcibly_ratio,
            disk_space_warning_level_ratio=self.disk_space_warning_level_ratio,
        )

    def derived_settings(self) -> dict[str, object]:
        """Return the settings on which the bytes of queues and index depend, besides the log."""
        return {
            "queue_file_bytes": self.consume_queue_file_bytes,
            "queue_ext": self.enable_consume_queue_ext,
            "index": [self.max_hash_slot_num, self.max_index_num] if self.message_index_enable else None,
            "delay_levels": self.message_delay_level,
            "multi_dispatch": self.enable_multi_dispatch,
            "light_queues": self.enable_lmq,
            **({"properties": "split"} if parser_of(self.rocketmq_version) is parse_split_pairs else {}),
        }

    @property
    def consume_queue_file_bytes(self) -> int:
        """Bytes of one consume queue file, a multiple of 20.

        Source: `getMappedFileSizeConsumeQueue`.
        """
        return -(-self.mapped_file_size_consume_queue // UNIT_BYTES) * UNIT_BYTES

    @property
    def record_room_bytes(self) -> int:
        """Bytes of the longest record or batch that fits an empty log file with a blank after it."""
        return self.mapped_file_size_commit_log - BLANK_BYTES

    @property
    def put_lock_kind(self) -> PutLockKind:
        """The kind of the put lock, chosen when the store opens."""
        return PutLockKind.REENTRANT if self.use_reentrant_lock_when_put_message else PutLockKind.SPIN
