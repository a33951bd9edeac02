"""The interface below the store: every disk access goes through `Files`.

`OsFiles` (impl/io/os_files.py) is the real disk; the crash lab replaces it by a recorder. Both pass the same contract
tests. Paths are absolute. Every method may raise OSError as the system call does. A sync that returns has succeeded.
Between two syncs any version of a page may reach the disk at any time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["Clock", "DiskUsage", "FileStat", "Files", "Mapping", "OpenFile"]

Clock = Callable[[], int]
"""The wall clock in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """The kind of the file at a path, and its size in bytes (0 for a directory)."""

    kind: Literal["file", "directory", "other"]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The total and free bytes of a disk, as seen by an unprivileged process.

    `free_bytes` is what it may still allocate. `total_bytes` is that plus the bytes in use. Space reserved by the
    system or a quota is in neither.
    """

    total_bytes: int
    free_bytes: int

    @property
    def used_ratio(self) -> float:
        """The used share, rounded up to a whole percent as in RocketMQ.

        `total_bytes` must not be 0.
        """
        return -(-(self.total_bytes - self.free_bytes) * 100 // self.total_bytes) / 100


class OpenFile(Protocol):
    """An open file; only the `Files` object that opened it looks inside."""

    @property
    def path(self) -> str:
        """The path under which it was opened."""


class Mapping(Protocol):
    """A shared mapping of a whole file."""

    @property
    def view(self) -> memoryview:
        """The bytes, writable if the file was opened for writing."""


class Files(Protocol):
    """The disk operations of the store. Each may raise OSError."""

    def create(self, path: str) -> OpenFile:
        """Create an empty file and open it for writing. Raises FileExistsError if the name exists."""

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open an existing file."""

    def close(self, file: OpenFile) -> None:
        """Close a file without a sync; its mappings stay valid."""

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Allocate the blocks of [0, size_bytes) and grow the file with zeros to that size."""

    def map(self, file: OpenFile) -> Mapping:
        """Map the whole file, shared; writable if the file is."""

    def unmap(self, mapping: Mapping) -> None:
        """Unmap a mapping. The caller must hold no view of it.

        While another thread holds a view, the bytes stay mapped. The call may then raise BufferError and may be
        repeated.
        """

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Populate pages of a writable mapping before they are written.

        `position` is a multiple of 4,096. No byte changes, and nothing fails. If the kernel has no such advice, the
        first write of each page faults.
        """

    def advise_will_need(self, mapping: Mapping) -> None:
        """Advise the kernel that the whole mapping is needed soon.

        No byte changes, and nothing fails.
        """

    def lock_memory(self, mapping: Mapping) -> bool:
        """Lock the pages of a writable mapping in memory until it is unlocked or unmapped.

        Return whether that succeeded. A refusal by a limit or the system returns False and logs a warning. No byte
        changes.
        """

    def unlock_memory(self, mapping: Mapping) -> None:
        """Unlock the pages of a writable mapping, whether they were locked or not."""

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read up to `size_bytes` at `offset`; fewer at the end of the file."""

    def next_data(self, file: OpenFile, position: int) -> tuple[int, int] | None:
        """Return the next range [start, end) from a position on that may hold data, or None.

        The bytes between the position and the range are zeros. Cost: nothing is read.
        """

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write all of `data` at `offset`, growing the file if needed.

        After an error a leading part of the data may have been written.
        """

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Overwrite a range inside the file with zeros; its blocks stay allocated."""

    def sync(self, file: OpenFile) -> None:
        """Make content and size of the file durable (fdatasync)."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target."""

    def unlink(self, path: str) -> None:
        """Remove a file's name."""

    def make_directory(self, path: str) -> None:
        """Create one directory. Raises FileExistsError if the name exists."""

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def stat(self, path: str) -> FileStat | None:
        """Return kind and size of a path, or None if it does not exist."""

    def lock(self, file: OpenFile) -> bool:
        """Try to take the exclusive lock on byte 0, held until the file is closed.

        Return whether that succeeded.
        """

    def disk_usage(self, path: str) -> DiskUsage:
        """Return total and free bytes of the disk that holds `path`."""

    def mark(self, label: str) -> None:
        """Mark the end of a write of a record, unit, entry or header.

        The crash lab records page versions here.
        """
