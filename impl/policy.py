"""Decisions the store takes from a value: when an answer has to wait for the disk.

The simulator uses the same values, so this module knows neither files nor clocks.
"""

from dataclasses import dataclass
from enum import Enum

__all__ = ["FlushDiskType", "FlushPolicy"]


class FlushDiskType(Enum):
    """RocketMQ's `flushDiskType`."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When a put is answered.

    SYNC_FLUSH answers after the record is on disk, unless the producer said WAIT=false (property `WAIT`);
    ASYNC_FLUSH answers from the page cache, and `flush()` or `close()` make it durable.
    """

    flush_disk_type: FlushDiskType

    def answers_after_flush(self, *, wait_store_msg_ok: bool) -> bool:
        """Return whether the answer to a put promises the disk. Source: `CommitLog.submitFlushRequest`."""
        return wait_store_msg_ok and self.flush_disk_type is FlushDiskType.SYNC_FLUSH
