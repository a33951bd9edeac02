"""Checks of a configuration when it is created.

Each error names the field, the value and the remedy.
"""

import ipaddress
from typing import TYPE_CHECKING

from tornpage.impl.config.log_paths import require_log_paths
from tornpage.impl.config.policy import PAGE_BYTES, BrokerRole, FlushDiskType, ImpossiblePolicy, WarmUp
from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.errors import BadConfig
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.message.properties_text import parser_of

if TYPE_CHECKING:  # that module imports this one
    from tornpage.impl.config.message_store_config import MessageStoreConfig

__all__ = ["require_possible"]

_SMALLEST_FILE_BYTES = 256
_COUNTS = (
    "os_page_cache_busy_time_out_mills",
    "max_lmq_consume_queue_num",
    "ha_slave_fallbehind_max",
    "slave_timeout",
    "clean_resource_interval",
    "sync_flush_timeout",
    "flush_interval_commit_log",
    "flush_commit_log_least_pages",
    "flush_commit_log_thorough_interval",
    "commit_interval_commit_log",
    "commit_commit_log_least_pages",
    "commit_commit_log_thorough_interval",
    "flush_interval_consume_queue",
    "flush_consume_queue_least_pages",
    "flush_consume_queue_thorough_interval",
    "transient_store_pool_size",
    "mapped_files_ahead",
    "flush_least_pages_when_warm_mapped_file",
    "max_msgs_num_batch",
    "max_transfer_bytes_on_message_in_memory",
    "max_transfer_count_on_message_in_memory",
    "max_transfer_bytes_on_message_in_disk",
    "max_transfer_count_on_message_in_disk",
    "file_reserved_time",
    "delete_commit_log_files_interval",
    "destroy_maped_file_interval_forcibly",
    "redelete_hanged_file_interval",
    "delete_consume_queue_files_interval",
    "disk_max_used_space_ratio",
    "short_polling_time_mills",
    "flush_delay_offset_interval",
    "max_held_pulls",
)
_SIZES = {
    "mapped_file_size_consume_queue": UNIT_BYTES,
    "mapped_file_size_consume_queue_ext": 64,
    "max_hash_slot_num": 1,
    "max_index_num": 2,
    "flush_consumer_offset_interval": 1,
    "schedule_async_deliver_max_pending_limit": 1,
}
"""The smallest value of each setting; the greatest is 2 GiB - 1."""
_POOL_BUFFERS_MAX = 1_000
_BUFFERS_TO_ROLL = 2
_PERCENT_MAX = 100


def require_possible(config: "MessageStoreConfig") -> None:
    """Raise BadConfig for the first invalid setting."""
    _require_messages(config)
    _require_numbers(config)
    _require_pages(config)
    _require_policies(config)
    require_log_paths(config.store_path_commit_log, config.read_only_commit_log_store_paths)
    for name in ("disk_space_warning_level_ratio", "disk_space_clean_forcibly_ratio"):
        if not 0 < getattr(config, name) <= 1:
            raise BadConfig(name, getattr(config, name), "use 0.01 to 1.0")
    _require_retention(config)
    try:
        config.delay_levels()
    except ValueError as error:
        raise BadConfig("message_delay_level", config.message_delay_level, str(error)) from error


def _require_messages(config: "MessageStoreConfig") -> None:
    file_bytes = config.mapped_file_size_commit_log
    if not isinstance(file_bytes, int) or not _SMALLEST_FILE_BYTES <= file_bytes <= 1 << 40:
        raise BadConfig("mapped_file_size_commit_log", file_bytes, "use 256 bytes to 1 TiB")
    if not isinstance(config.max_message_size, int) or not 1 <= config.max_message_size < 1 << 31:
        raise BadConfig("max_message_size", config.max_message_size, "use 1 byte to 2 GiB - 1")
    if config.record_checksum not in ("record", "body"):
        raise BadConfig("record_checksum", config.record_checksum, 'use "record" or "body"')
    if config.verify_reads not in ("always", "once", "never"):
        raise BadConfig("verify_reads", config.verify_reads, 'use "always", "once" or "never"')
    try:
        parser_of(config.rocketmq_version)
    except ValueError as error:
        raise BadConfig("rocketmq_version", config.rocketmq_version, str(error)) from error
    if not _is_host(config.store_host):
        raise BadConfig("store_host", config.store_host, "use a numeric IPv4 or IPv6 address and a port")
    if not isinstance(config.flush_disk_type, FlushDiskType):
        raise BadConfig("flush_disk_type", config.flush_disk_type, "use FlushDiskType.SYNC_FLUSH or ASYNC_FLUSH")
    if not isinstance(config.broker_role, BrokerRole):
        raise BadConfig("broker_role", config.broker_role, "use BrokerRole.ASYNC_MASTER, SYNC_MASTER or SLAVE")


def _require_numbers(config: "MessageStoreConfig") -> None:
    for name in _COUNTS:
        value = getattr(config, name)
        if not isinstance(value, int) or not 0 <= value < 1 << 31:
            raise BadConfig(name, value, "use a whole number, 0 to 2,147,483,647")
    for name, least in _SIZES.items():
        value = getattr(config, name)
        if not isinstance(value, int) or not least <= value < 1 << 31:
            raise BadConfig(name, value, f"use a whole number, {least} to 2,147,483,647")
    ratio = config.access_message_in_memory_max_ratio
    if not isinstance(ratio, int) or not 0 <= ratio <= _PERCENT_MAX:
        raise BadConfig("access_message_in_memory_max_ratio", ratio, "use 0 to 100 percent")


def _require_pages(config: "MessageStoreConfig") -> None:
    if config.populate_ahead_bytes < 0 or config.populate_ahead_bytes % PAGE_BYTES:
        raise BadConfig("populate_ahead_bytes", config.populate_ahead_bytes, f"use a multiple of {PAGE_BYTES}, or 0")
    if not isinstance(config.warm_up, WarmUp):
        raise BadConfig("warm_up", config.warm_up, "use WarmUp.NONE, TOUCH, TOUCH_AND_FORCE or POPULATE")
    if not 1 <= config.transient_store_pool_size <= _POOL_BUFFERS_MAX:
        raise BadConfig("transient_store_pool_size", config.transient_store_pool_size, "use 1 to 1,000 buffers")
    if config.fast_fail_if_no_buffer_in_store_pool and 0 < config.pool_buffers < _BUFFERS_TO_ROLL:
        remedy = "use 2 or more: with fast fail the file in use keeps one, and the next needs another"
        raise BadConfig("transient_store_pool_size", config.transient_store_pool_size, remedy)


def _require_policies(config: "MessageStoreConfig") -> None:
    try:
        config.flush_policy()
        config.commit_policy()
        config.queue_flush_policy()
        config.allocation_policy()
    except ImpossiblePolicy as error:
        raise BadConfig(error.field, error.value, f"use {error.allowed}") from error


def _require_retention(config: "MessageStoreConfig") -> None:
    for name, allowed in (
        ("delete_when", 'hours from 0 to 23, as in "04;16"'),
        ("time_zone", 'an IANA name such as "Europe/Berlin", or "" for that of the machine'),
    ):
        try:
            RetentionPolicy(**{name: getattr(config, name)})
        except (ValueError, AttributeError, TypeError) as error:
            raise BadConfig(name, getattr(config, name), f"use {allowed}") from error


def _is_host(host: tuple[str, int]) -> bool:
    address, port = host
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return "%" not in address and 0 <= port < 1 << 31
