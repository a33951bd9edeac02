"""The observer of the actors' waits, and a collector of rows."""

from typing import Protocol

__all__ = ["AllocationRow", "CommitRow", "FlushRow", "Probe", "RollRow", "Rows", "WritebackRow"]

FlushRow = tuple[int, int, int, int, int, int, int, int]
"""round, start_ns, end_ns, file_index, from_offset, to_offset, messages, device_bytes.

One sync of one file.
"""
RollRow = tuple[int, int, int, int]
"""file_index, row, asked_ns, ready_ns.

Record `row` did not fit, and waited for file `file_index`.
"""
AllocationRow = tuple[int, int, int, int]
"""file_index, requested_ns, start_ns, ready_ns: one file made."""
CommitRow = tuple[int, int, int, int, int, int, int]
"""start_ns, end_ns, file_index, from_offset, to_offset, messages, buffers_home.

One write from a pool buffer.
"""

WritebackRow = tuple[int, int, int, int]
"""start_ns, end_ns, from_offset, to_offset: one write by the kernel itself."""


class Probe(Protocol):
    """An observer of everything that happened at a wait."""

    def flushed(self, row: FlushRow) -> None:
        """A sync has returned."""

    def rolled(self, row: RollRow) -> None:
        """The writer has begun the next file."""

    def allocated(self, row: AllocationRow) -> None:
        """A file is ready."""

    def committed(self, row: CommitRow) -> None:
        """A piece of a pool buffer has reached the page cache."""

    def written_back(self, row: WritebackRow) -> None:
        """The kernel has written pages by itself."""


class Rows:
    """The probe that keeps every row."""

    def __init__(self) -> None:
        self.flushes: list[FlushRow] = []
        self.rolls: list[RollRow] = []
        self.allocations: list[AllocationRow] = []
        self.commits: list[CommitRow] = []
        self.writebacks: list[WritebackRow] = []

    def flushed(self, row: FlushRow) -> None:
        self.flushes.append(row)

    def rolled(self, row: RollRow) -> None:
        self.rolls.append(row)

    def allocated(self, row: AllocationRow) -> None:
        self.allocations.append(row)

    def committed(self, row: CommitRow) -> None:
        self.commits.append(row)

    def written_back(self, row: WritebackRow) -> None:
        self.writebacks.append(row)
