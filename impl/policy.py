"""Decisions the store takes from values: when an answer waits for the disk, when to flush, which files to prepare.

The simulator uses the same values, so this module knows neither files nor clocks: whoever asks brings positions, pages
and the milliseconds that have passed. Names and defaults are those of `MessageStoreConfig` 4.9.3, in snake case; times
are milliseconds, pages have 4,096 bytes.
"""

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "PAGE_BYTES",
    "AllocationPolicy",
    "BrokerRole",
    "FlushDiskType",
    "FlushPolicy",
    "ImpossiblePolicy",
    "PutLockKind",
]

PAGE_BYTES = 4096
"""`MappedFile.OS_PAGE_SIZE`: the unit of the page rules, whatever pages the machine has."""


class ImpossiblePolicy(ValueError):
    """A policy was given a value that no store could follow."""

    def __init__(self, field: str, value: int, allowed: str) -> None:
        super().__init__(f"{field} is {value}; it has to be {allowed}")
        self.field = field
        self.value = value


class FlushDiskType(Enum):
    """RocketMQ's `flushDiskType`."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


class BrokerRole(Enum):
    """RocketMQ's `brokerRole`: who takes puts, and whether a put waits for a replica."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


class PutLockKind(Enum):
    """RocketMQ's `useReentrantLockWhenPutMessage`: REENTRANT stands for true, its default; SPIN for false."""

    REENTRANT = "REENTRANT"
    SPIN = "SPIN"


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When a put is answered, and when what is written goes to the disk.

    SYNC_FLUSH answers after the record is on disk, unless the producer said WAIT=false (property `WAIT`); one flush
    serves all who wait (group commit). ASYNC_FLUSH answers from the page cache; a timer flushes behind it, and
    `flush()` or `close()` make everything durable. The three numbers rule the timer only.
    """

    flush_disk_type: FlushDiskType
    flush_interval_commit_log: int = 500
    """`flushIntervalCommitLog`, ms: how long the timed flush sleeps before each round."""
    flush_commit_log_least_pages: int = 4
    """`flushCommitLogLeastPages`: a round leaves a file alone that has fewer new pages; 0 means any byte will do."""
    flush_commit_log_thorough_interval: int = 10_000
    """`flushCommitLogThoroughInterval`, ms: when this has passed, one round ignores the page rule."""

    def __post_init__(self) -> None:
        _at_least("flush_interval_commit_log", self.flush_interval_commit_log, 1)
        _at_least("flush_commit_log_least_pages", self.flush_commit_log_least_pages, 0)
        _at_least("flush_commit_log_thorough_interval", self.flush_commit_log_thorough_interval, 0)

    def answers_after_flush(self, *, wait_store_msg_ok: bool) -> bool:
        """Return whether the answer to a put promises the disk. Source: `CommitLog.submitFlushRequest`."""
        return wait_store_msg_ok and self.flush_disk_type is FlushDiskType.SYNC_FLUSH

    def least_pages(self, *, since_thorough_ms: int) -> int:
        """Return the page rule of the next timed round; 0 makes it a thorough one.

        RocketMQ asks before it sleeps, so that a thorough flush comes one interval after it was due, and its first
        round is thorough. Source: `CommitLog.FlushRealTimeService`.
        """
        thorough = since_thorough_ms >= self.flush_commit_log_thorough_interval
        return 0 if thorough else self.flush_commit_log_least_pages

    @staticmethod
    def is_due(*, written_position: int, flushed_position: int, least_pages: int, file_is_full: bool) -> bool:
        """Return whether a file is worth a sync in this round. Positions are bytes from its start.

        The last bytes of a full file never wait, and group commit asks with `least_pages=0`.
        Source: `MappedFile.isAbleToFlush`, which also says yes to a full file that has nothing left to flush.
        """
        if written_position <= flushed_position:
            return False
        if file_is_full or least_pages == 0:
            return True
        return written_position // PAGE_BYTES - flushed_position // PAGE_BYTES >= least_pages


@dataclass(frozen=True, slots=True)
class AllocationPolicy:
    """Which log files are prepared before they are needed, and how.

    `files_ahead=0` makes each file when a record does not fit the last one (on demand); 1 is RocketMQ's allocation
    service, which is asked for the next file and the one behind it, so that one is ready at each roll (one ahead).
    """

    files_ahead: int = 1
    warm_mapped_file_enable: bool = False
    """`warmMapedFileEnable`: store a byte into each page before the file is handed over."""
    flush_least_pages_when_warm_mapped_file: int = 4096
    """`flushLeastPagesWhenWarmMapedFile`: under SYNC_FLUSH, warming syncs each time so many pages were touched."""

    def __post_init__(self) -> None:
        _at_least("files_ahead", self.files_ahead, 0)
        _at_least("flush_least_pages_when_warm_mapped_file", self.flush_least_pages_when_warm_mapped_file, 1)

    @property
    def name(self) -> str:
        """The policy in a word: "on-demand", "one-ahead", "2-ahead"; "+warm" behind it where files are warmed."""
        ahead = {0: "on-demand", 1: "one-ahead"}.get(self.files_ahead, f"{self.files_ahead}-ahead")
        return ahead + ("+warm" if self.warm_mapped_file_enable else "")

    def wanted(self, *, file_index: int) -> range:
        """Return the files to ask for, oldest first, when the writer turns to file `file_index`.

        Source: `MappedFileQueue.tryCreateMappedFile` (next and next-next).
        """
        return range(file_index, file_index + 1 + self.files_ahead)

    def warm_up_syncs(self, *, file_pages: int, flush_disk_type: FlushDiskType) -> tuple[int, ...]:
        """Return the pages that each sync during the warm-up of a file has to write; empty if it syncs nothing.

        ASYNC_FLUSH leaves the touched pages dirty for the first flush. Source: `MappedFile.warmMappedFile`.
        """
        if not self.warm_mapped_file_enable or flush_disk_type is FlushDiskType.ASYNC_FLUSH:
            return ()
        step = self.flush_least_pages_when_warm_mapped_file
        return tuple(min(step, file_pages - done) for done in range(0, file_pages, step))


def _at_least(field: str, value: int, smallest: int) -> None:
    if value < smallest:
        raise ImpossiblePolicy(field, value, f"{smallest} or more")
