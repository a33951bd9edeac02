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
    "CommitPolicy",
    "FlushDiskType",
    "FlushPolicy",
    "ImpossiblePolicy",
    "PutLockKind",
    "QueueFlushPolicy",
    "WarmUp",
]

PAGE_BYTES = 4096
"""`MappedFile.OS_PAGE_SIZE`: the unit of the page rules, whatever pages the machine has."""


class ImpossiblePolicy(ValueError):
    """A policy was given a value that no store could follow."""

    def __init__(self, field: str, value: int, allowed: str) -> None:
        super().__init__(f"{field} is {value}; it has to be {allowed}")
        self.field = field
        self.value = value
        self.allowed = allowed


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


class WarmUp(Enum):
    """How the pages of a new log file are made ready; RocketMQ's `warmMapedFileEnable` is NONE or TOUCH_AND_FORCE."""

    NONE = "NONE"
    """Not at all: the first record of each page waits for it."""
    TOUCH = "TOUCH"
    """Store a byte into each page and leave the pages dirty for the first flush."""
    TOUCH_AND_FORCE = "TOUCH_AND_FORCE"
    """The same, and under SYNC_FLUSH sync them too, so that no flush has blocks to convert."""
    POPULATE = "POPULATE"
    """Ask the kernel for the pages, which costs a third of storing into them. Nothing where it cannot (Linux 5.14)."""


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When a put is answered, and when what is written goes to the disk.

    SYNC_FLUSH answers after the record is on disk, unless the producer said WAIT=false (property `WAIT`); one flush
    serves all who wait (group commit). ASYNC_FLUSH answers from the page cache; a timer flushes behind it, and
    `flush()` or `close()` make everything durable. Interval, pages and thorough interval rule the timer only.
    """

    flush_disk_type: FlushDiskType
    flush_interval_commit_log: int = 500
    """`flushIntervalCommitLog`, ms: how long the timed flush sleeps before each round."""
    flush_commit_log_least_pages: int = 4
    """`flushCommitLogLeastPages`: a round leaves a file alone that has fewer new pages; 0 means any byte will do."""
    flush_commit_log_thorough_interval: int = 10_000
    """`flushCommitLogThoroughInterval`, ms: when this has passed, one round ignores the page rule."""
    flush_commit_log_timed: bool = True
    """`flushCommitLogTimed`: rounds come by the clock alone; else a put that fills the pages of the rule wakes one."""
    sync_flush_timeout: int = 5_000
    """`syncFlushTimeout`, ms: how long a synchronous put waits for the disk."""

    def __post_init__(self) -> None:
        _at_least("flush_interval_commit_log", self.flush_interval_commit_log, 1)
        _at_least("flush_commit_log_least_pages", self.flush_commit_log_least_pages, 0)
        _at_least("flush_commit_log_thorough_interval", self.flush_commit_log_thorough_interval, 0)
        _at_least("sync_flush_timeout", self.sync_flush_timeout, 1)

    def answers_after_flush(self, *, wait_store_msg_ok: bool) -> bool:
        """Return whether the answer to a put promises the disk. Source: `CommitLog.submitFlushRequest`."""
        return wait_store_msg_ok and self.flush_disk_type is FlushDiskType.SYNC_FLUSH

    def least_pages(self, *, since_thorough_ms: int) -> int:
        """Return the page rule of the round that begins now; 0 makes it a thorough one.

        RocketMQ asks before it sleeps, so that a thorough flush comes one interval after it was due.
        Source: `CommitLog.FlushRealTimeService`.
        """
        thorough = since_thorough_ms >= self.flush_commit_log_thorough_interval
        return 0 if thorough else self.flush_commit_log_least_pages

    @staticmethod
    def is_due(*, written_position: int, flushed_position: int, least_pages: int, file_is_full: bool) -> bool:
        """Return whether a file is worth a sync in this round. Positions are bytes from its start.

        The last bytes of a full file never wait, and group commit asks with `least_pages=0`.
        Source: `MappedFile.isAbleToFlush`, which also says yes to a full file that has nothing left to flush.
        """
        return _is_due(written_position, flushed_position, least_pages, file_is_full)


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """When what lies in the buffers of the transient store pool goes to the page cache."""

    commit_interval_commit_log: int = 200
    """`commitIntervalCommitLog`, ms: the longest pause between two rounds."""
    commit_commit_log_least_pages: int = 4
    """`commitCommitLogLeastPages`: a round leaves a buffer alone that has fewer new pages; 0 means any byte will do."""
    commit_commit_log_thorough_interval: int = 200
    """`commitCommitLogThoroughInterval`, ms: when so long nothing was committed, a round ignores the page rule."""

    def __post_init__(self) -> None:
        _at_least("commit_interval_commit_log", self.commit_interval_commit_log, 1)
        _at_least("commit_commit_log_least_pages", self.commit_commit_log_least_pages, 0)
        _at_least("commit_commit_log_thorough_interval", self.commit_commit_log_thorough_interval, 0)

    def least_pages(self, *, since_commit_ms: int) -> int:
        """Return the page rule of a round; 0 makes it a thorough one. Source: `CommitLog.CommitRealTimeService`."""
        thorough = since_commit_ms >= self.commit_commit_log_thorough_interval
        return 0 if thorough else self.commit_commit_log_least_pages

    @staticmethod
    def is_due(*, written_position: int, committed_position: int, least_pages: int, file_is_full: bool) -> bool:
        """Return whether a buffer is worth a write in this round. Source: `MappedFile.isAbleToCommit`."""
        return _is_due(written_position, committed_position, least_pages, file_is_full)


@dataclass(frozen=True, slots=True)
class QueueFlushPolicy:
    """When consume queues go to the disk, and the checkpoint after them."""

    flush_interval_consume_queue: int = 1_000
    """`flushIntervalConsumeQueue`, ms."""
    flush_consume_queue_least_pages: int = 2
    """`flushConsumeQueueLeastPages`."""
    flush_consume_queue_thorough_interval: int = 60_000
    """`flushConsumeQueueThoroughInterval`, ms: when this has passed, a round ignores the page rule and ends with the
    checkpoint."""

    def __post_init__(self) -> None:
        _at_least("flush_interval_consume_queue", self.flush_interval_consume_queue, 1)
        _at_least("flush_consume_queue_least_pages", self.flush_consume_queue_least_pages, 0)
        _at_least("flush_consume_queue_thorough_interval", self.flush_consume_queue_thorough_interval, 0)

    def least_pages(self, *, since_thorough_ms: int) -> int:
        """Return the page rule of a round; 0 makes it a thorough one. Source: `FlushConsumeQueueService`."""
        thorough = since_thorough_ms >= self.flush_consume_queue_thorough_interval
        return 0 if thorough else self.flush_consume_queue_least_pages


@dataclass(frozen=True, slots=True)
class AllocationPolicy:
    """Which log files are prepared before they are needed, and how.

    `files_ahead=0` makes each file when a record does not fit the last one (on demand); 1 is RocketMQ's allocation
    service, which is asked for the next file and the one behind it, so that one is ready at each roll (one ahead).
    """

    files_ahead: int = 1
    warm_up: WarmUp = WarmUp.NONE
    """`warmMapedFileEnable`: what is done to the pages of a file before it is handed over."""
    flush_least_pages_when_warm_mapped_file: int = 4096
    """`flushLeastPagesWhenWarmMapedFile`: under SYNC_FLUSH, warming syncs each time so many pages were touched."""

    def __post_init__(self) -> None:
        _at_least("files_ahead", self.files_ahead, 0)
        _at_least("flush_least_pages_when_warm_mapped_file", self.flush_least_pages_when_warm_mapped_file, 1)

    @property
    def name(self) -> str:
        """The policy in a word: "on-demand", "one-ahead", "2-ahead"; behind it "+touch", "+warm" or "+populate"."""
        ahead = {0: "on-demand", 1: "one-ahead"}.get(self.files_ahead, f"{self.files_ahead}-ahead")
        return ahead + _WARM_UP_SUFFIXES[self.warm_up]

    def wanted(self, *, file_index: int) -> range:
        """Return the files to ask for, oldest first, when the writer turns to file `file_index`.

        Source: `MappedFileQueue.tryCreateMappedFile` (next and next-next).
        """
        return range(file_index, file_index + 1 + self.files_ahead)

    def warm_up_syncs(self, *, file_pages: int, flush_disk_type: FlushDiskType) -> tuple[int, ...]:
        """Return the pages that each sync during the warm-up of a file has to write; empty if it syncs nothing.

        ASYNC_FLUSH leaves the touched pages dirty for the first flush. Source: `MappedFile.warmMappedFile`.
        """
        if self.warm_up is not WarmUp.TOUCH_AND_FORCE or flush_disk_type is FlushDiskType.ASYNC_FLUSH:
            return ()
        step = self.flush_least_pages_when_warm_mapped_file
        return tuple(min(step, file_pages - done) for done in range(0, file_pages, step))


_WARM_UP_SUFFIXES = {
    WarmUp.NONE: "",
    WarmUp.TOUCH: "+touch",
    WarmUp.TOUCH_AND_FORCE: "+warm",
    WarmUp.POPULATE: "+populate",
}


def _is_due(end: int, done: int, least_pages: int, file_is_full: bool) -> bool:
    if end <= done:
        return False
    return file_is_full or least_pages == 0 or end // PAGE_BYTES - done // PAGE_BYTES >= least_pages


def _at_least(field: str, value: int, smallest: int) -> None:
    if value < smallest:
        raise ImpossiblePolicy(field, value, f"{smallest} or more")
