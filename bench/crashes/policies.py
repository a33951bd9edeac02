"""The simulator's policies as settings of the real store, and the message of both."""

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import WarmUp
from tornpage.impl.message.message import Message
from tornpage.sim.experiments.policies import RECORD_BYTES, StorePolicy

__all__ = ["MESSAGE", "store_config"]

QUEUE_FILE_BYTES = 20_000
_FRAME_BYTES = 112
"""The bytes of a record besides its body, with checksum trailer and a topic of one letter."""
MESSAGE = Message("T", bytes(range(256)) * ((RECORD_BYTES - _FRAME_BYTES) // 256 + 1))
MESSAGE = Message("T", (MESSAGE.body or b"")[: RECORD_BYTES - _FRAME_BYTES])


def store_config(policy: StorePolicy, *, file_bytes: int) -> MessageStoreConfig:
    """Return the settings of a policy for the real store, with small queues and a small index."""
    flush, pool = policy.flush, policy.pool
    pooled = (
        {}
        if pool is None
        else {
            "transient_store_pool_enable": True,
            "transient_store_pool_size": pool.buffers,
            "fast_fail_if_no_buffer_in_store_pool": pool.fast_fail,
            "commit_interval_commit_log": pool.commit.commit_interval_commit_log,
            "commit_commit_log_least_pages": pool.commit.commit_commit_log_least_pages,
            "commit_commit_log_thorough_interval": pool.commit.commit_commit_log_thorough_interval,
        }
    )
    return MessageStoreConfig(
        mapped_file_size_commit_log=file_bytes,
        mapped_file_size_consume_queue=QUEUE_FILE_BYTES,
        max_hash_slot_num=64,
        max_index_num=256,
        flush_disk_type=flush.flush_disk_type,
        flush_interval_commit_log=flush.flush_interval_commit_log,
        flush_commit_log_least_pages=flush.flush_commit_log_least_pages,
        flush_commit_log_thorough_interval=flush.flush_commit_log_thorough_interval,
        flush_commit_log_timed=flush.flush_commit_log_timed,
        mapped_files_ahead=policy.allocation.files_ahead,
        warm_up=WarmUp.NONE,
        **pooled,  # type: ignore[arg-type]
    )
