"""The configuration of a store: RocketMQ's names in snake case, RocketMQ's units."""

import ipaddress
from dataclasses import dataclass
from typing import Literal

from impl import defaults
from impl.codec import BLANK_BYTES
from impl.delay import DelayLevels
from impl.errors import BadConfig
from impl.policy import PAGE_BYTES, BrokerRole, FlushDiskType, PutLockKind

__all__ = ["MessageStoreConfig", "RecordChecksum"]

RecordChecksum = Literal["record", "body"]

_SMALLEST_FILE_BYTES = 256
_COUNTS = (
    "os_page_cache_busy_time_out_mills",
    "max_lmq_consume_queue_num",
    "ha_slave_fallbehind_max",
    "slave_timeout",
    "clean_resource_interval",
)


@dataclass(frozen=True, slots=True)
class MessageStoreConfig:
    """What a store is opened with. Raises BadConfig for a value that cannot work.

    `mapped_file_size_commit_log` and `max_message_size` are bytes. `record_checksum="record"` ends each record with
    the checksum trailer of RocketMQ 5; `"body"` writes the pure records of 4.9.3. `populate_ahead_bytes` (ours) is for
    asynchronous stores: how far ahead of the records the pages of the log are made ready; 0 leaves that to page faults.
    """

    mapped_file_size_commit_log: int = defaults.MAPPED_FILE_SIZE_COMMIT_LOG
    max_message_size: int = defaults.MAX_MESSAGE_SIZE
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
    populate_ahead_bytes: int = defaults.POPULATE_AHEAD_BYTES

    def __post_init__(self) -> None:
        if not _SMALLEST_FILE_BYTES <= self.mapped_file_size_commit_log <= 1 << 40:
            raise BadConfig("mapped_file_size_commit_log", self.mapped_file_size_commit_log, "use 256 bytes to 1 TiB")
        if not 1 <= self.max_message_size < 1 << 31:
            raise BadConfig("max_message_size", self.max_message_size, "use 1 byte to 2 GiB - 1")
        if self.record_checksum not in ("record", "body"):
            raise BadConfig("record_checksum", self.record_checksum, 'use "record" or "body"')
        if not _is_host(self.store_host):
            raise BadConfig("store_host", self.store_host, "use a numeric IPv4 or IPv6 address and a port")
        if not isinstance(self.flush_disk_type, FlushDiskType):
            raise BadConfig("flush_disk_type", self.flush_disk_type, "use FlushDiskType.SYNC_FLUSH or ASYNC_FLUSH")
        if not isinstance(self.broker_role, BrokerRole):
            raise BadConfig("broker_role", self.broker_role, "use BrokerRole.ASYNC_MASTER, SYNC_MASTER or SLAVE")
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < 1 << 31:
                raise BadConfig(name, value, "use a whole number, 0 to 2,147,483,647")
        if self.populate_ahead_bytes < 0 or self.populate_ahead_bytes % PAGE_BYTES:
            raise BadConfig("populate_ahead_bytes", self.populate_ahead_bytes, f"use a multiple of {PAGE_BYTES}, or 0")
        if not 0 < self.disk_space_warning_level_ratio <= 1:
            raise BadConfig("disk_space_warning_level_ratio", self.disk_space_warning_level_ratio, "use 0.01 to 1.0")
        try:
            self.delay_levels()
        except ValueError as error:
            raise BadConfig("message_delay_level", self.message_delay_level, str(error)) from error

    def delay_levels(self) -> DelayLevels:
        """Return the parsed table of delay levels."""
        return DelayLevels.parse(self.message_delay_level)

    @property
    def record_room_bytes(self) -> int:
        """The longest record, or batch of records, that an empty log file takes: a blank has to follow it."""
        return self.mapped_file_size_commit_log - BLANK_BYTES

    @property
    def put_lock_kind(self) -> PutLockKind:
        """Which put lock the store takes, once, when it is opened."""
        return PutLockKind.REENTRANT if self.use_reentrant_lock_when_put_message else PutLockKind.SPIN


def _is_host(host: tuple[str, int]) -> bool:
    address, port = host
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return "%" not in address and 0 <= port < 1 << 31
