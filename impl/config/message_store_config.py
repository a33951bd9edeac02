"""The configuration of a store: RocketMQ's names in snake case, RocketMQ's units."""

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
    WarmUp,
)
from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.message.codec import BLANK_BYTES
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.dispatching import UNIT_BYTES

__all__ = ["MessageStoreConfig", "RecordChecksum"]

RecordChecksum = Literal["record", "body"]

_FLUSH = FlushPolicy(FlushDiskType.ASYNC_FLUSH)
_COMMIT = CommitPolicy()
_QUEUE_FLUSH = QueueFlushPolicy()
_ALLOCATION = AllocationPolicy()
_RETENTION = RetentionPolicy()


@dataclass(frozen=True, slots=True)
class MessageStoreConfig:
    """What a store is opened with. Raises BadConfig for a value that cannot work.

    `mapped_file_size_commit_log` and `max_message_size` are bytes. `record_checksum="record"` ends each record with
    the checksum trailer of RocketMQ 5; `"body"` writes the pure records of 4.9.3. `populate_ahead_bytes` (ours) is for
    asynchronous stores: how far ahead of the records the pages of the log are made ready at least, by a thread of the
    store; 0 leaves that to page faults.

    `store_path_commit_log` has the directories that the log is spread over, each of one store only; relative paths are
    below the store directory, and empty means `commitlog` there. Those of `read_only_commit_log_store_paths` get no
    new file; the files they have are written and removed like others.

    Sizes of consume queue files are bytes, rounded up to whole units; an index file has `max_hash_slot_num` slots and
    room for `max_index_num` - 1 entries. All of them may change between two opens: what was made with another size is
    made anew from the log.

    `check_whole_log_on_recover` (ours) has every record verified when the store opens. Without it an open begins where
    the log, the queues and the index were last known to be durable, and damage in front shows when it is read.

    With `deliver_delayed_messages` (ours; RocketMQ's masters always do) a master puts delayed messages again when they
    are due; without, they wait. `enable_schedule_async_deliver` has their copies wait for disk and replica, and no
    message wait for them: at most `schedule_async_deliver_max_pending_limit` of a level are not answered at a time.

    `max_held_pulls` (ours) is how many pulls may wait for messages at a time.
    """

    mapped_file_size_commit_log: int = defaults.MAPPED_FILE_SIZE_COMMIT_LOG
    max_message_size: int = defaults.MAX_MESSAGE_SIZE
    store_path_commit_log: tuple[str, ...] = ()
    read_only_commit_log_store_paths: tuple[str, ...] = ()
    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    record_checksum: RecordChecksum = "record"
    store_host: tuple[str, int] = defaults.STORE_HOST
    broker_role: BrokerRole = BrokerRole.ASYNC_MASTER
    use_reentrant_lock_when_put_message: bool = True
    os_page_cache_busy_time_out_mills: int = defaults.OS_PAGE_CACHE_BUSY_TIME_OUT_MILLS
    message_delay_level: str = defaults.MESSAGE_DELAY_LEVEL
    enable_multi_dispatch: bool = False
    enable_lmq: bool = False
    max_lmq_consume_queue_num: int = defaults.MAX_LMQ_CONSUME_QUEUE_NUM
    ha_slave_fallbehind_max: int = defaults.HA_SLAVE_FALLBEHIND_MAX
    slave_timeout: int = defaults.SLAVE_TIMEOUT
    clean_resource_interval: int = defaults.CLEAN_RESOURCE_INTERVAL
    disk_space_warning_level_ratio: float = defaults.DISK_SPACE_WARNING_LEVEL_RATIO
    disk_space_clean_forcibly_ratio: float = defaults.DISK_SPACE_CLEAN_FORCIBLY_RATIO
    populate_ahead_bytes: int = defaults.POPULATE_AHEAD_BYTES
    sync_flush_timeout: int = _FLUSH.sync_flush_timeout
    flush_interval_commit_log: int = _FLUSH.flush_interval_commit_log
    flush_commit_log_least_pages: int = _FLUSH.flush_commit_log_least_pages
    flush_commit_log_thorough_interval: int = _FLUSH.flush_commit_log_thorough_interval
    flush_commit_log_timed: bool = _FLUSH.flush_commit_log_timed
    commit_interval_commit_log: int = _COMMIT.commit_interval_commit_log
    commit_commit_log_least_pages: int = _COMMIT.commit_commit_log_least_pages
    commit_commit_log_thorough_interval: int = _COMMIT.commit_commit_log_thorough_interval
    flush_interval_consume_queue: int = _QUEUE_FLUSH.flush_interval_consume_queue
    flush_consume_queue_least_pages: int = _QUEUE_FLUSH.flush_consume_queue_least_pages
    flush_consume_queue_thorough_interval: int = _QUEUE_FLUSH.flush_consume_queue_thorough_interval
    transient_store_pool_enable: bool = False
    transient_store_pool_size: int = defaults.TRANSIENT_STORE_POOL_SIZE
    fast_fail_if_no_buffer_in_store_pool: bool = False
    mapped_files_ahead: int = _ALLOCATION.files_ahead
    warm_up: WarmUp = WarmUp.NONE
    flush_least_pages_when_warm_mapped_file: int = _ALLOCATION.flush_least_pages_when_warm_mapped_file
    mapped_file_size_consume_queue: int = defaults.MAPPED_FILE_SIZE_CONSUME_QUEUE
    enable_consume_queue_ext: bool = False
    mapped_file_size_consume_queue_ext: int = defaults.MAPPED_FILE_SIZE_CONSUME_QUEUE_EXT
    message_index_enable: bool = True
    max_hash_slot_num: int = defaults.MAX_HASH_SLOT_NUM
    max_index_num: int = defaults.MAX_INDEX_NUM
    max_msgs_num_batch: int = defaults.MAX_MSGS_NUM_BATCH
    max_transfer_bytes_on_message_in_memory: int = defaults.MAX_TRANSFER_BYTES_ON_MESSAGE_IN_MEMORY
    max_transfer_count_on_message_in_memory: int = defaults.MAX_TRANSFER_COUNT_ON_MESSAGE_IN_MEMORY
    max_transfer_bytes_on_message_in_disk: int = defaults.MAX_TRANSFER_BYTES_ON_MESSAGE_IN_DISK
    max_transfer_count_on_message_in_disk: int = defaults.MAX_TRANSFER_COUNT_ON_MESSAGE_IN_DISK
    access_message_in_memory_max_ratio: int = defaults.ACCESS_MESSAGE_IN_MEMORY_MAX_RATIO
    disk_fall_recorded: bool = True
    offset_check_in_slave: bool = False
    check_whole_log_on_recover: bool = False
    deliver_delayed_messages: bool = True
    enable_schedule_async_deliver: bool = False
    schedule_async_deliver_max_pending_limit: int = defaults.SCHEDULE_ASYNC_DELIVER_MAX_PENDING_LIMIT
    flush_delay_offset_interval: int = defaults.FLUSH_DELAY_OFFSET_INTERVAL
    long_polling_enable: bool = True
    short_polling_time_mills: int = defaults.SHORT_POLLING_TIME_MILLS
    max_held_pulls: int = defaults.MAX_HELD_PULLS
    file_reserved_time: int = _RETENTION.file_reserved_time
    delete_when: str = _RETENTION.delete_when
    time_zone: str = _RETENTION.time_zone
    delete_commit_log_files_interval: int = _RETENTION.delete_commit_log_files_interval
    destroy_maped_file_interval_forcibly: int = _RETENTION.destroy_maped_file_interval_forcibly
    redelete_hanged_file_interval: int = _RETENTION.redelete_hanged_file_interval
    delete_consume_queue_files_interval: int = _RETENTION.delete_consume_queue_files_interval
    clean_file_forcibly_enable: bool = _RETENTION.clean_file_forcibly_enable
    disk_max_used_space_ratio: int = _RETENTION.disk_max_used_space_ratio
    flush_consumer_offset_interval: int = defaults.FLUSH_CONSUMER_OFFSET_INTERVAL

    def __post_init__(self) -> None:
        require_possible(self)

    def flush_policy(self) -> FlushPolicy:
        """Return when the commit log is flushed."""
        return FlushPolicy(
            self.flush_disk_type,
            flush_interval_commit_log=self.flush_interval_commit_log,
            flush_commit_log_least_pages=self.flush_commit_log_least_pages,
            flush_commit_log_thorough_interval=self.flush_commit_log_thorough_interval,
            flush_commit_log_timed=self.flush_commit_log_timed,
            sync_flush_timeout=self.sync_flush_timeout,
        )

    def commit_policy(self) -> CommitPolicy:
        """Return when the buffers of the pool are committed."""
        return CommitPolicy(
            commit_interval_commit_log=self.commit_interval_commit_log,
            commit_commit_log_least_pages=self.commit_commit_log_least_pages,
            commit_commit_log_thorough_interval=self.commit_commit_log_thorough_interval,
        )

    def queue_flush_policy(self) -> QueueFlushPolicy:
        """Return when consume queues and checkpoint are flushed."""
        return QueueFlushPolicy(
            flush_interval_consume_queue=self.flush_interval_consume_queue,
            flush_consume_queue_least_pages=self.flush_consume_queue_least_pages,
            flush_consume_queue_thorough_interval=self.flush_consume_queue_thorough_interval,
        )

    def allocation_policy(self) -> AllocationPolicy:
        """Return which log files are made before they are needed, and how."""
        return AllocationPolicy(
            files_ahead=self.mapped_files_ahead,
            warm_up=self.warm_up,
            flush_least_pages_when_warm_mapped_file=self.flush_least_pages_when_warm_mapped_file,
        )

    @property
    def pool_buffers(self) -> int:
        """How many buffers the transient store pool has; 0 where RocketMQ has no pool: SYNC_FLUSH, and SLAVE."""
        asynchronous = self.flush_disk_type is FlushDiskType.ASYNC_FLUSH and self.broker_role is not BrokerRole.SLAVE
        return self.transient_store_pool_size if self.transient_store_pool_enable and asynchronous else 0

    def delay_levels(self) -> DelayLevels:
        """Return the parsed table of delay levels."""
        return DelayLevels.parse(self.message_delay_level)

    def retention_policy(self) -> RetentionPolicy:
        """Return when messages expire, and how full disks may be."""
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
        """Return what the bytes of queues and index depend on besides the log."""
        return {
            "queue_file_bytes": self.consume_queue_file_bytes,
            "queue_ext": self.enable_consume_queue_ext,
            "index": [self.max_hash_slot_num, self.max_index_num] if self.message_index_enable else None,
            "delay_levels": self.message_delay_level,
            "multi_dispatch": self.enable_multi_dispatch,
            "light_queues": self.enable_lmq,
        }

    @property
    def consume_queue_file_bytes(self) -> int:
        """The bytes of one consume queue file: whole units. Source: `getMappedFileSizeConsumeQueue`."""
        return -(-self.mapped_file_size_consume_queue // UNIT_BYTES) * UNIT_BYTES

    @property
    def record_room_bytes(self) -> int:
        """The longest record, or batch of records, that an empty log file takes: a blank has to follow it."""
        return self.mapped_file_size_commit_log - BLANK_BYTES

    @property
    def put_lock_kind(self) -> PutLockKind:
        """Which put lock the store takes, once, when it is opened."""
        return PutLockKind.REENTRANT if self.use_reentrant_lock_when_put_message else PutLockKind.SPIN
