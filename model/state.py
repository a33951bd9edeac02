"""The values of the commit log: what it was opened with, what surrounds it, and what it holds.

1. A record knows its place, its number in its queue, and the message as stored.
2. `0 <= flushed_offset <= end_offset`; readers see no further than `readable_end`.
3. Running flags 2, 4, 8 and 16 forbid writing; they live as long as the process.

Source: docs/statuses.md, "every put".
"""

from dataclasses import dataclass
from typing import Literal

from model.message import Message

__all__ = ["BLANK_BYTES", "CommitLog", "Conditions", "Layout", "Record"]

BLANK_BYTES = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes and promises a store was opened with. `files_max` is how many files the disk has room for;
    `delay_levels` is the highest delay level."""

    file_bytes: int
    record_bytes_max: int
    trailer: bool
    sync_flush: bool
    files_max: int
    multi_dispatch: bool = False
    light_queues: bool = False
    light_queues_max: int = 20_000
    delay_levels: int = 18
    role: Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"] = "ASYNC_MASTER"
    page_cache_busy_ms: int = 1000


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the surroundings will do to one put.

    `sync_fails`: the next file sync of the disk, if this put needs one, fails: that of a new file (which is then
    refused) or that of a flush. `append_fails`: the mapped file refuses the bytes. `replica`: what the best replica of
    a `SYNC_MASTER` does: it confirms in time, says nothing, is too far behind, or is not there. `lock_held_ms`: for
    how long the put lock has been held when this put arrives.
    """

    sync_fails: bool = False
    append_fails: bool = False
    replica: Literal["confirms", "silent", "behind", "none"] = "none"
    lock_held_ms: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One appended message at its physical offset, `size_bytes` long; `message` is what is stored of it."""

    offset: int
    size_bytes: int
    queue_offset: int
    store_timestamp: int
    message: Message

    @property
    def end_offset(self) -> int:
        """Physical offset just behind the record."""
        return self.offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class CommitLog:
    """`end_offset` is where the next record goes unless it needs a new file; `poisoned` says a sync has failed;
    `flags` are the running flags (`RunningFlags`)."""

    records: tuple[Record, ...] = ()
    end_offset: int = 0
    flushed_offset: int = 0
    files: int = 0
    poisoned: bool = False
    flags: int = 0

    @property
    def readable_end(self) -> int:
        """Physical offset up to which readers see records."""
        return self.flushed_offset if self.poisoned else self.end_offset
