"""What actors tell about their waits, and the collector of it."""

from typing import Protocol

__all__ = ["AllocationRow", "CommitRow", "FlushRow", "Probe", "RollRow", "Rows", "WritebackRow"]

FlushRow = tuple[int, int, int, int, int, int, int, int]
"""round, start_ns, end_ns, file_index, from_offset, to_offset, messages, device_bytes: one sync of one file."""
RollRow = tuple[int, int, int, int]
"""file_index, row, asked_ns, ready_ns: record `row` did not fit, and waited for file `file_index`."""
AllocationRow = tuple[int, int, int, int]
"""file_index, requested_ns, start_ns, ready_ns: one file made."""
CommitRow = tuple[int, int, int, int, int, int, int]
"""start_ns, end_ns, file_index, from_offset, to_offset, messages, buffers_home: one write from a pool buffer."""

WritebackRow = tuple[int, int, int, int]
"""start_ns, end_ns, from_offset, to_offset: what the kernel wrote by itself."""


class Probe(Protocol):
    """Told of everything that happens at a wait, when it has happened."""

    def flushed(self, row: FlushRow) -> None:
        """A sync has returned."""

    def rolled(self, row: RollRow) -> None:
        """The writer has turned to the next file."""

    def allocated(self, row: AllocationRow) -> None:
        """A file is ready."""

    def committed(self, row: CommitRow) -> None:
        """A piece of a pool buffer has come to the page cache."""

    def written_back(self, row: WritebackRow) -> None:
        """The kernel has written pages by itself."""


class Rows:
    """The probe that keeps everything."""

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
