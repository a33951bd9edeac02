"""Policies as pure functions of values: put answers, flushes, commits, allocation.

The simulator uses the same values, so this module uses neither files nor clocks. Callers pass positions, pages and
elapsed milliseconds. Names and defaults are those of `MessageStoreConfig` 4.9.3, in snake case. Times are milliseconds,
pages have 4,096 bytes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

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
    "VerifyReads",
    "WarmUp",
]

PAGE_BYTES = 4096
"""`MappedFile.OS_PAGE_SIZE`: bytes in the page rules, whatever the page size of the machine."""


VerifyReads = Literal["always", "once", "never"]
"""When reads verify the checksums of a record."""


class ImpossiblePolicy(ValueError):
    """A policy was given an invalid value."""

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
    """RocketMQ's `brokerRole`: whether puts are accepted, and whether they wait for a replica."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


class PutLockKind(Enum):
    """RocketMQ's `useReentrantLockWhenPutMessage`: REENTRANT is true, SPIN false."""

    REENTRANT = "REENTRANT"
    SPIN = "SPIN"


class WarmUp(Enum):
    """How the pages of a new log file are populated.

    RocketMQ's `warmMapedFileEnable` is NONE or TOUCH_AND_FORCE.
    """

    NONE = "NONE"
    """Not at all: the first record in each page causes a page fault."""
    TOUCH = "TOUCH"
    """Store a byte in each page. The pages stay dirty until the first flush."""
    TOUCH_AND_FORCE = "TOUCH_AND_FORCE"
    """As TOUCH, and under SYNC_FLUSH sync the pages too, so that no flush has extents to convert."""
    POPULATE = "POPULATE"
    """Ask the kernel to populate the pages, at a third of the cost of storing. No effect before Linux 5.14."""


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When a put is answered, and when written records are flushed.

    SYNC_FLUSH answers after the record is on disk, unless the message has the property `WAIT=false`. One flush serves
    all waiting puts (group commit). ASYNC_FLUSH answers once the record is in the page cache; a timer flushes later,
    and `flush()` or `close()` make everything durable. Interval, pages and thorough interval apply to the timer only.
    """

    flush_disk_type: FlushDiskType
    flush_interval_commit_log: int = 500
    """`flushIntervalCommitLog`, ms that the timed flush sleeps before each round."""
    flush_commit_log_least_pages: int = 4
    """`flushCommitLogLeastPages`: a round skips a file with fewer unflushed pages; 0 flushes any byte."""
    flush_commit_log_thorough_interval: int = 10_000
    """`flushCommitLogThoroughInterval`, ms after which one round ignores the page rule."""
    flush_commit_log_timed: bool = True
    """`flushCommitLogTimed`: rounds are started by the clock only; else a put that fulfils the page rule starts one."""
    sync_flush_timeout: int = 5_000
    """`syncFlushTimeout`, ms that a synchronous put waits for the flush."""

    def __post_init__(self) -> None:
        _at_least("flush_interval_commit_log", self.flush_interval_commit_log, 1)
        _at_least("flush_commit_log_least_pages", self.flush_commit_log_least_pages, 0)
        _at_least("flush_commit_log_thorough_interval", self.flush_commit_log_thorough_interval, 0)
        _at_least("sync_flush_timeout", self.sync_flush_timeout, 1)

    def answers_after_flush(self, *, wait_store_msg_ok: bool) -> bool:
        """Return whether the answer to a put waits for the flush.

        Source: `CommitLog.submitFlushRequest`.
        """
        return wait_store_msg_ok and self.flush_disk_type is FlushDiskType.SYNC_FLUSH

    def least_pages(self, *, since_thorough_ms: int) -> int:
        """Return the page rule of the round that begins now; 0 flushes everything.

        `since_thorough_ms` is the time since the last thorough round. RocketMQ decides before it sleeps, so its
        thorough flush is one interval late. Source: `CommitLog.FlushRealTimeService`.
        """
        thorough = since_thorough_ms >= self.flush_commit_log_thorough_interval
        return 0 if thorough else self.flush_commit_log_least_pages

    @staticmethod
    def is_due(*, written_position: int, flushed_position: int, least_pages: int, file_is_full: bool) -> bool:
        """Return whether a file is flushed in this round. Positions are bytes from its start.

        The last bytes of a full file never wait. Group commit passes `least_pages=0`. Source:
        `MappedFile.isAbleToFlush`, which is also true for a full file with nothing left to flush.
        """
        return _is_due(written_position, flushed_position, least_pages, file_is_full)


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """When the buffers of the transient store pool are written to the page cache."""

    commit_interval_commit_log: int = 200
    """`commitIntervalCommitLog`, ms: the longest pause between two rounds."""
    commit_commit_log_least_pages: int = 4
    """`commitCommitLogLeastPages`: a round skips a buffer with fewer uncommitted pages; 0 commits any byte."""
    commit_commit_log_thorough_interval: int = 200
    """`commitCommitLogThoroughInterval`, ms without a commit after which a round ignores the page rule."""

    def __post_init__(self) -> None:
        _at_least("commit_interval_commit_log", self.commit_interval_commit_log, 1)
        _at_least("commit_commit_log_least_pages", self.commit_commit_log_least_pages, 0)
        _at_least("commit_commit_log_thorough_interval", self.commit_commit_log_thorough_interval, 0)

    def least_pages(self, *, since_commit_ms: int) -> int:
        """Return the page rule of a round; 0 commits everything.

        Source: `CommitLog.CommitRealTimeService`.
        """
        thorough = since_commit_ms >= self.commit_commit_log_thorough_interval
        return 0 if thorough else self.commit_commit_log_least_pages

    @staticmethod
    def is_due(*, written_position: int, committed_position: int, least_pages: int, file_is_full: bool) -> bool:
        """Return whether a buffer is committed in this round. Source: `MappedFile.isAbleToCommit`."""
        return _is_due(written_position, committed_position, least_pages, file_is_full)


@dataclass(frozen=True, slots=True)
class QueueFlushPolicy:
    """When consume queues are flushed, and the checkpoint after them."""

    flush_interval_consume_queue: int = 1_000
    """`flushIntervalConsumeQueue`, ms between two rounds."""
    flush_consume_queue_least_pages: int = 2
    """`flushConsumeQueueLeastPages`: a round skips a queue with fewer unflushed pages."""
    flush_consume_queue_thorough_interval: int = 60_000
    """`flushConsumeQueueThoroughInterval`, ms after which a round ignores the page rule and writes the checkpoint."""

    def __post_init__(self) -> None:
        _at_least("flush_interval_consume_queue", self.flush_interval_consume_queue, 1)
        _at_least("flush_consume_queue_least_pages", self.flush_consume_queue_least_pages, 0)
        _at_least("flush_consume_queue_thorough_interval", self.flush_consume_queue_thorough_interval, 0)

    def least_pages(self, *, since_thorough_ms: int) -> int:
        """Return the page rule of a round; 0 flushes everything.

        Source: `FlushConsumeQueueService`.
        """
        thorough = since_thorough_ms >= self.flush_consume_queue_thorough_interval
        return 0 if thorough else self.flush_consume_queue_least_pages


@dataclass(frozen=True, slots=True)
class AllocationPolicy:
    """Which log files are prepared before they are needed, and how.

    `files_ahead=0` creates each file when a record does not fit the last one (on demand). 1 is RocketMQ's allocation
    service: it creates the next file and the one after it, so that one is ready at each roll (one ahead).
    """

    files_ahead: int = 1
    warm_up: WarmUp = WarmUp.NONE
    """`warmMapedFileEnable`: how the pages of a file are populated before its first use."""
    flush_least_pages_when_warm_mapped_file: int = 4096
    """`flushLeastPagesWhenWarmMapedFile`: under SYNC_FLUSH, pages touched between two syncs of a warm-up."""

    def __post_init__(self) -> None:
        _at_least("files_ahead", self.files_ahead, 0)
        _at_least("flush_least_pages_when_warm_mapped_file", self.flush_least_pages_when_warm_mapped_file, 1)

    @property
    def name(self) -> str:
        """The policy as a name: "on-demand", "one-ahead" or "2-ahead", and a suffix.

        The suffix is "+touch", "+warm", "+populate" or empty.
        """
        ahead = {0: "on-demand", 1: "one-ahead"}.get(self.files_ahead, f"{self.files_ahead}-ahead")
        return ahead + _WARM_UP_SUFFIXES[self.warm_up]

    def wanted(self, *, file_index: int) -> range:
        """Return the indexes of the files to create, oldest first.

        The writer has just turned to file `file_index`. Source: `MappedFileQueue.tryCreateMappedFile` (next and
        next-next).
        """
        return range(file_index, file_index + 1 + self.files_ahead)

    def warm_up_syncs(self, *, file_pages: int, flush_disk_type: FlushDiskType) -> tuple[int, ...]:
        """Return the pages written by each sync during the warm-up of a file; empty without syncs.

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
