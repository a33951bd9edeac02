"""The one seam under the store: every touch of a disk goes through `Files`.

`OsFiles` (impl/io/os_files.py) is the real disk; the crash lab puts a recorder in its place. Both run the same contract
tests. Paths are absolute texts. Every method may raise OSError as the system call does; a barrier that returns is a
success. Versions of pages may reach the disk at any moment between two barriers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["Clock", "DiskUsage", "FileStat", "Files", "Mapping", "OpenFile"]

Clock = Callable[[], int]
"""The wall clock in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """What a path names, and its size in bytes (0 for a directory)."""

    kind: Literal["file", "directory", "other"]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """What is in use on a disk and what an unprivileged process may still allocate, together, and the latter alone.

    What the system keeps back, as a reserve or by a quota, is in neither: nobody has it, and nobody can get it.
    """

    total_bytes: int
    free_bytes: int

    @property
    def used_ratio(self) -> float:
        """The share that is in use, of a disk that has a size, rounded up to a whole per cent as RocketMQ does."""
        return -(-(self.total_bytes - self.free_bytes) * 100 // self.total_bytes) / 100


class OpenFile(Protocol):
    """An open file; the seam that opened it is the only one who looks inside."""

    @property
    def path(self) -> str:
        """The path it was opened under."""


class Mapping(Protocol):
    """A shared mapping of a whole file."""

    @property
    def view(self) -> memoryview:
        """The bytes, writable when the file was opened for writing."""


class Files(Protocol):
    """What the store asks of a disk."""

    def create(self, path: str) -> OpenFile:
        """Create an empty file and open it for writing. Raises FileExistsError when the name is taken."""

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open an existing file."""

    def close(self, file: OpenFile) -> None:
        """Close it; mappings stay valid. Closing syncs nothing."""

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Reserve the blocks of [0, size_bytes) and grow the file to that size, filled with zeros."""

    def map(self, file: OpenFile) -> Mapping:
        """Map the whole file, shared; writable if the file is."""

    def unmap(self, mapping: Mapping) -> None:
        """Release the mapping. The caller holds no view of it any more.

        While somebody else does, the bytes stay where they are; it may raise BufferError then, and be called again.
        """

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Have pages of a writable mapping ready before they are written; `position` is a multiple of 4,096.

        No byte changes, and nothing fails: where the kernel knows no such advice, the first write of each page waits.
        """

    def advise_will_need(self, mapping: Mapping) -> None:
        """Say that the whole mapping is needed soon. Advice: no byte changes, and nothing fails."""

    def lock_memory(self, mapping: Mapping) -> bool:
        """Keep the pages of a writable mapping in memory until it is unlocked or unmapped; return whether they are.

        A limit or a system that refuses is False and a warning in the log, never an error. No byte changes.
        """

    def unlock_memory(self, mapping: Mapping) -> None:
        """Let the pages of a writable mapping go again, whether they were locked or not."""

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read up to `size_bytes` at `offset`; shorter at the end of the file."""

    def next_data(self, file: OpenFile, position: int) -> tuple[int, int] | None:
        """Return the next stretch [start, end) from a position on that may hold something, None if there is none.

        Between the position and the stretch there are zeros. Cost: nothing is read.
        """

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write all of `data`, which holds bytes, at `offset`, growing the file if need be.

        After an error a part of it may have been written, from its begin on.
        """

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Overwrite a range inside the file with zeros; its blocks stay reserved."""

    def sync(self, file: OpenFile) -> None:
        """Make content and size of the file durable (fdatasync)."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target."""

    def unlink(self, path: str) -> None:
        """Remove a file's name."""

    def make_directory(self, path: str) -> None:
        """Create one directory. Raises FileExistsError when the name is taken."""

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def stat(self, path: str) -> FileStat | None:
        """Return what the path names, or None."""

    def lock(self, file: OpenFile) -> bool:
        """Try to take the exclusive lock on byte 0; it lives until the file is closed."""

    def disk_usage(self, path: str) -> DiskUsage:
        """Return size and free bytes of the disk that holds `path`."""

    def mark(self, label: str) -> None:
        """Say that a record, unit, entry or header was just written; the crash lab takes page versions here."""
