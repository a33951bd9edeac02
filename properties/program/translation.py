"""Translate settings and messages of a case into those of the store and the model."""

from dataclasses import fields

from tornpage.impl.config.defaults import ROCKETMQ_VERSION
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.message.message import Message as StoreMessage
from tornpage.impl.message.message import MessageBatch
from tornpage.model.message import Batch, Message
from tornpage.model.state import Layout
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import log_directories

__all__ = [
    "CLEAN_RESOURCE_INTERVAL_MS",
    "HELD_PULLS_MAX",
    "layout_of",
    "store_batch",
    "store_config",
    "store_message",
]

CLEAN_RESOURCE_INTERVAL_MS = 10_000
HELD_PULLS_MAX = 5
UNIT_BYTES = 20
EXT_FILE_BYTES = 256
_MEMORY_BYTES = 1 << 40
"""The memory of a machine that has every record of a case in memory."""
_DROPS_JOINED = "4.9.0"
"""A release that drops properties with two separators."""


def store_config(settings: Settings) -> MessageStoreConfig:
    """Return the configuration of the store in a case."""
    return MessageStoreConfig(
        mapped_file_size_commit_log=settings.file_bytes,
        max_message_size=settings.record_bytes_max,
        store_path_commit_log=log_directories(settings.log_paths),
        flush_disk_type=FlushDiskType.SYNC_FLUSH if settings.sync_flush else FlushDiskType.ASYNC_FLUSH,
        record_checksum="record" if settings.trailer else "body",
        broker_role=BrokerRole(settings.role),
        message_delay_level=" ".join(f"{level}s" for level in range(1, settings.delay_levels + 1)),
        enable_multi_dispatch=settings.multi_dispatch,
        enable_lmq=settings.light_queues,
        max_lmq_consume_queue_num=settings.light_queues_max,
        ha_slave_fallbehind_max=1,
        clean_resource_interval=CLEAN_RESOURCE_INTERVAL_MS,
        transient_store_pool_enable=settings.pool_buffers > 0,
        transient_store_pool_size=max(1, settings.pool_buffers),
        fast_fail_if_no_buffer_in_store_pool=settings.fast_fail,
        mapped_files_ahead=settings.files_ahead,
        flush_commit_log_least_pages=settings.least_pages,
        commit_commit_log_least_pages=settings.least_pages,
        mapped_file_size_consume_queue=settings.queue_units * UNIT_BYTES,
        enable_consume_queue_ext=settings.queue_ext,
        mapped_file_size_consume_queue_ext=EXT_FILE_BYTES,
        message_index_enable=settings.index,
        max_hash_slot_num=settings.index_slots,
        max_index_num=settings.index_entries,
        enable_schedule_async_deliver=settings.pending_copies > 0,
        schedule_async_deliver_max_pending_limit=max(1, settings.pending_copies),
        verify_reads=settings.verify_reads,
        rocketmq_version=_DROPS_JOINED if settings.drops_joined else ROCKETMQ_VERSION,
        time_zone="UTC",
        max_held_pulls=HELD_PULLS_MAX,
        max_transfer_count_on_message_in_memory=settings.pull_count,
        max_transfer_bytes_on_message_in_memory=settings.pull_bytes,
        max_transfer_count_on_message_in_disk=settings.far_count,
        max_transfer_bytes_on_message_in_disk=settings.far_bytes,
    )


def layout_of(settings: Settings) -> Layout:
    """Return the model's layout of a case."""
    return Layout(
        file_bytes=settings.file_bytes,
        record_bytes_max=settings.record_bytes_max,
        trailer=settings.trailer,
        sync_flush=settings.sync_flush,
        files_max=settings.files_max,
        multi_dispatch=settings.multi_dispatch,
        light_queues=settings.light_queues,
        light_queues_max=settings.light_queues_max,
        delay_levels=settings.delay_levels,
        role=settings.role,
        pool_buffers=settings.pool_buffers,
        fast_fail=settings.fast_fail,
        files_ahead=settings.files_ahead,
        least_pages=settings.least_pages,
        delays_ms=tuple(1000 * level for level in range(1, settings.delay_levels + 1)),
        queue_file_bytes=settings.queue_units * UNIT_BYTES,
        index=settings.index,
        java_delays=settings.java_delays,
        pending_copies=settings.pending_copies,
        held_pulls_max=HELD_PULLS_MAX,
        verify_reads=settings.verify_reads,
        clean_interval_ms=CLEAN_RESOURCE_INTERVAL_MS,
        drops_joined=settings.drops_joined,
        transfer_count_in_memory=settings.pull_count,
        transfer_bytes_in_memory=settings.pull_bytes,
        transfer_count_in_disk=settings.far_count,
        transfer_bytes_in_disk=settings.far_bytes,
        memory_bytes=settings.memory_bytes or _MEMORY_BYTES,
    )


def store_message(message: Message) -> StoreMessage:
    """Return the store's message with every field of the model's."""
    return StoreMessage(**{field.name: getattr(message, field.name) for field in fields(message)})


def store_batch(batch: Batch) -> MessageBatch:
    """Return the store's batch with every field of the model's."""
    return MessageBatch(**{field.name: getattr(batch, field.name) for field in fields(batch)})
