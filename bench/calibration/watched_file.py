"""A log file that records the times of its flushes and commits, as a part of a store."""

from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tornpage.impl.io.mapped_file import MappedFile

__all__ = ["COMMIT_DTYPE", "FLUSH_DTYPE", "Watch", "WatchedFile"]

FLUSH_DTYPE = np.dtype([(name, np.int64) for name in ("start_ns", "end_ns", "from_offset", "to_offset")])
"""One flush of the log file: from reading what is written until its watermark has moved."""
COMMIT_DTYPE = FLUSH_DTYPE
"""One write of a pool buffer to the page cache, with the same columns."""


class Watch:
    """The recorded flushes and commits of log files."""

    def __init__(self) -> None:
        self.flushes: list[tuple[int, int, int, int]] = []
        self.commits: list[tuple[int, int, int, int]] = []

    def clear(self) -> None:
        self.flushes.clear()
        self.commits.clear()

    def rows(self, start_ns: int, end_ns: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Return the rows from `start_ns` to `end_ns` that moved something.

        Times count from `start_ns`.
        """
        return _table(self.flushes, start_ns, end_ns), _table(self.commits, start_ns, end_ns)


def _table(rows: list[tuple[int, int, int, int]], start_ns: int, end_ns: int) -> NDArray[np.void]:
    seen = [row for row in list(rows) if start_ns <= row[0] <= end_ns and row[3] > row[2]]
    table = np.array(seen, FLUSH_DTYPE)
    for name in ("start_ns", "end_ns"):
        table[name] -= start_ns
    return table


class WatchedFile(MappedFile):
    """A log file that records the times of its flushes and commits."""

    def __init__(self, watch: Watch, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watch = watch

    def flush(self) -> None:
        before, start_ns = self.base_offset + self.flushed_position, perf_counter_ns()
        super().flush()
        self._watch.flushes.append((start_ns, perf_counter_ns(), before, self.base_offset + self.flushed_position))

    def commit(self) -> None:
        before, start_ns = self.base_offset + self.committed_position, perf_counter_ns()
        super().commit()
        self._watch.commits.append((start_ns, perf_counter_ns(), before, self.base_offset + self.committed_position))
