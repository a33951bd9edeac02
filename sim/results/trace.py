"""The events of a run."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tornpage.sim.distributions import Int64s
from tornpage.sim.scenario import Scenario

__all__ = ["ALLOCATION_DTYPE", "COMMIT_DTYPE", "FLUSH_DTYPE", "ROLL_DTYPE", "WRITEBACK_DTYPE", "Trace"]


def _columns(names: str) -> np.dtype[Any]:
    return np.dtype([(name, np.int64) for name in names.split()])


FLUSH_DTYPE = _columns("round start_ns end_ns file_index from_offset to_offset messages device_bytes")
"""One row per sync of one file, in time order; a round of several files has several rows."""
ROLL_DTYPE = _columns("file_index row asked_ns ready_ns")
"""One row per begin of a new file.

The record `row` waited ready_ns - asked_ns for it, which may be 0.
"""
ALLOCATION_DTYPE = _columns("file_index requested_ns start_ns ready_ns")
"""One row per file that became ready during the run."""

COMMIT_DTYPE = _columns("start_ns end_ns file_index from_offset to_offset messages buffers_home")
"""One row per write from a pool buffer to the page cache.

It has the number of free buffers after the write.
"""

WRITEBACK_DTYPE = _columns("start_ns end_ns from_offset to_offset")
"""One row per piece that the kernel wrote by itself."""


COLUMNS = ("arrival_ns", "start_ns", "written_ns", "committed_ns", "durable_ns", "put_ns", "offset", "size", "producer")


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The events of a run.

    Row i of the columns is the i-th message to arrive. All times are ns since the start.
    """

    scenario: Scenario
    seed: int
    arrival_ns: Int64s
    start_ns: Int64s
    """When its put got the lock."""
    written_ns: Int64s
    """When it was stored in page cache or buffer, and the lock was released."""
    committed_ns: Int64s
    """When it and everything before it was in the page cache."""
    put_ns: Int64s
    """When its producer had the answer."""
    durable_ns: Int64s
    """When the sync that covers it returned."""
    offset: Int64s
    size: Int64s
    """Bytes stored; 0 for a put that was refused because the pool was empty."""
    producer: Int64s
    """Number of the producer in a closed loop, else 0."""
    flushes: NDArray[np.void] = field(repr=False)
    """Rows of FLUSH_DTYPE."""
    rolls: NDArray[np.void] = field(repr=False)
    """Rows of ROLL_DTYPE."""
    allocations: NDArray[np.void] = field(repr=False)
    """Rows of ALLOCATION_DTYPE."""
    commits: NDArray[np.void] = field(repr=False)
    """Rows of COMMIT_DTYPE."""
    writebacks: NDArray[np.void] = field(repr=False)
    """Rows of WRITEBACK_DTYPE."""

    @property
    def messages(self) -> int:
        """The number of messages sent, all of them answered and durable."""
        return len(self.size)

    @property
    def load_ns(self) -> int:
        """The time until the last message was written."""
        return int(self.written_ns[-1]) if self.messages else 0

    @property
    def files_without_buffer(self) -> int:
        """Files that were written directly because the pool had no buffer left for them."""
        files = np.unique(self.offset[self.size > 0] // self.scenario.file_bytes)
        return 0 if self.scenario.pool is None else len(np.setdiff1d(files, self.commits["file_index"]))

    def digest(self) -> str:
        """Return the SHA-256 of all columns and rows."""
        hasher = hashlib.sha256()
        for name in (*COLUMNS, "flushes", "rolls", "allocations", "commits", "writebacks"):
            hasher.update(getattr(self, name).tobytes())
        return hasher.hexdigest()
