"""Specify which values of the settings of a store are valid (contract 8).

`LIMITS` has the least and the greatest value of each number. `cases` lists values at those limits and one past them,
and values of the wrong kind. Each of them comes with whether it is valid.

Source: `MessageStoreConfig` of RocketMQ 4.9.3, and the texts of the settings.
"""

from collections.abc import Iterator, Mapping

__all__ = ["LIMITS", "cases"]

_INT_MAX = (1 << 31) - 1

LIMITS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(
        (
            "os_page_cache_busy_time_out_mills", "max_lmq_consume_queue_num", "ha_slave_fallbehind_max",
            "slave_timeout", "clean_resource_interval", "flush_commit_log_least_pages",
            "flush_commit_log_thorough_interval", "commit_commit_log_least_pages",
            "commit_commit_log_thorough_interval", "flush_consume_queue_least_pages",
            "flush_consume_queue_thorough_interval", "mapped_files_ahead", "max_msgs_num_batch",
            "max_transfer_bytes_on_message_in_memory", "max_transfer_count_on_message_in_memory",
            "max_transfer_bytes_on_message_in_disk", "max_transfer_count_on_message_in_disk", "file_reserved_time",
            "delete_commit_log_files_interval", "destroy_maped_file_interval_forcibly", "redelete_hanged_file_interval",
            "delete_consume_queue_files_interval", "disk_max_used_space_ratio", "short_polling_time_mills",
            "flush_delay_offset_interval", "max_held_pulls",
        ),
        (0, _INT_MAX),
    ),
    **dict.fromkeys(
        (
            "sync_flush_timeout", "flush_interval_commit_log", "commit_interval_commit_log",
            "flush_interval_consume_queue", "flush_least_pages_when_warm_mapped_file", "max_message_size",
            "max_hash_slot_num", "flush_consumer_offset_interval", "schedule_async_deliver_max_pending_limit",
        ),
        (1, _INT_MAX),
    ),
    "mapped_file_size_commit_log": (256, 1 << 40),
    "mapped_file_size_consume_queue": (20, _INT_MAX),
    "mapped_file_size_consume_queue_ext": (64, _INT_MAX),
    "max_index_num": (2, _INT_MAX),
    "transient_store_pool_size": (1, 1_000),
    "access_message_in_memory_max_ratio": (0, 100),
}  # fmt: skip
"""The least and the greatest value of each number among the settings."""

_PAGE_BYTES = 4096
_WORDS: Mapping[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "populate_ahead_bytes": ((0, _PAGE_BYTES), (-_PAGE_BYTES, 1, _PAGE_BYTES - 1)),
    "record_checksum": (("record", "body"), ("", "Record", "none")),
    "verify_reads": (("always", "once", "never"), ("", "Always", True)),
    "rocketmq_version": (("4.9.3", "4.9.0", "4.8.0"), ("", "four")),
    "store_host": (
        (("127.0.0.1", 0), ("::1", _INT_MAX)),
        (("localhost", 1), ("fe80::1%eth0", 1), ("127.0.0.1", -1), ("127.0.0.1", _INT_MAX + 1)),
    ),
    "flush_disk_type": ((), ("SYNC_FLUSH", None)),
    "broker_role": ((), ("SLAVE", None)),
    "warm_up": ((), ("NONE", None)),
    "delete_when": (("00", "23", "4;16"), ("24", "-1", "x")),
    "time_zone": (("", "UTC"), ("Nowhere/Never",)),
    "message_delay_level": (("1s", "1s 2m 3h 4d"), ("1", "1w", "s1")),
    "disk_space_warning_level_ratio": ((0.01, 1.0), (0.0, 1.01)),
    "disk_space_clean_forcibly_ratio": ((0.01, 1.0), (0.0, 1.01)),
    "store_path_commit_log": (((), ("a",), ("a", "b")), (("a", "a"), ("a", "a/b"), ("config",), ("consumequeue/x",))),
    "read_only_commit_log_store_paths": ((), (("other",), ("commitlog",))),
}
"""The values of other settings: valid ones and invalid ones."""


def cases() -> Iterator[tuple[str, object, bool]]:
    """Yield setting, value, and whether a store with the defaults otherwise may have it."""
    for name, (least, most) in LIMITS.items():
        for number in (least - 1, least, most, most + 1):
            yield name, number, least <= number <= most
        yield name, str(least), False
    for name, (valid, invalid) in _WORDS.items():
        yield from ((name, value, True) for value in valid)
        yield from ((name, value, False) for value in invalid)
