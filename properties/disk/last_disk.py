"""A disk without further crashes: it has durable and visible content, and no history.

Most disks of a campaign are such disks: a crash image is recovered on them, judged and discarded. Without a history
there are no versions to look for. A sync makes the visible content durable, as on any other disk (tests/contracts run
on both). Unchanged content stays the same object, so that images share it.
"""

import mmap
from typing import Self

from tornpage.impl.io.files import FileStat, Mapping, OpenFile
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.inodes import Inode, RecordedFile, RecordedMapping, recorded, writable
from tornpage.properties.disk.journal import (
    DirectorySynced,
    Entry,
    FileCreated,
    FileMade,
    FileSynced,
    PagesDropped,
    Resized,
)
from tornpage.properties.disk.recording_files import is_unfinished
from tornpage.properties.disk.tracking import Tracked
from tornpage.properties.program.case import Disk

__all__ = ["LastDisk"]


class LastDisk(FailingDisk):
    """Starts as `FailingDisk` does; `disk` is the rule by which `state` makes names durable.

    A sync makes all visible content durable. That is wrong after pages were dropped, because only versions show which
    of them are dirty again, and such a disk needs a history. Raises ValueError for a journal with dropped pages.
    """

    def __init__(
        self, base: Image, *, disk: Disk, journal: tuple[Entry, ...] = (), budget_bytes: int = 1 << 40
    ) -> None:
        if any(isinstance(entry, PagesDropped) for entry in journal):
            raise _needs_history()
        self._inodes: dict[int, Inode] = {}
        self._state = DiskState(base, disk=disk)
        self._state.apply_all(journal)
        super().__init__(base, tracker=_NO_TRACKER, journal=journal, budget_bytes=budget_bytes, state=self._state)

    def _load(self, number: int, content: bytearray) -> Inode:
        inode = self._inodes[number] = Inode(number, _Unwatched(content))
        return inode

    # ---- names: the answers of `RecordingFiles`, without a look for versions ----------------------------------------

    def create(self, path: str) -> OpenFile:
        """Create an empty file."""
        self._names.require_free_name(path)
        inode = self._load(self._next_inode, bytearray())
        self._names.add(path, inode)
        self._next_inode += 1
        self._state.apply(FileMade(inode.number) if is_unfinished(path) else FileCreated(inode.number, path))
        inode.opens = 1
        return RecordedFile(path, inode, writable=True)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open an existing file."""
        inode = self._names.files.get(path) or self._names.find(path)
        inode.opens += 1
        return RecordedFile(path, inode, writable=writable)

    def close(self, file: OpenFile) -> None:
        """Close without a sync.

        A file without a name stays in memory until the whole disk is discarded.
        """
        closed = recorded(file)
        closed.is_closed = True
        closed.inode.opens -= 1
        if closed.holds_lock:
            closed.inode.locked = closed.holds_lock = False

    def stat(self, path: str) -> FileStat | None:
        """Return the stat of a path."""
        return self._names.stat(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return self._names.below(path)

    def sync_directory(self, path: str) -> None:
        """Sync a directory, which is the barrier for names."""
        self._names.require_directory(path)
        if self._state.pending:
            self._state.apply(DirectorySynced(path))

    # ---- content -----------------------------------------------------------------------------------------------------

    def map(self, file: OpenFile) -> Mapping:
        """Map the live content."""
        opened = recorded(file)
        opened.inode.mappings += 1
        view = memoryview(opened.inode.tracked.buffer)
        return RecordedMapping(opened.inode, view if opened.writable else view.toreadonly())

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read live content."""
        buffer = recorded(file).inode.tracked.buffer
        return bytes(buffer[offset : offset + size_bytes] if offset or size_bytes < len(buffer) else buffer)

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write, or fail if that is requested.

        There is only one thread, so it is no yield point.
        """
        if self.failing_writes:
            super().pwrite(file, data, offset)
        else:
            self._write(writable(file).inode, data, offset)

    def _write(self, inode: Inode, data: bytes | memoryview, offset: int) -> None:
        end = offset + len(data)
        if data and end > len(inode.tracked.buffer):
            self._resize(inode, end)
        inode.tracked.buffer[offset:end] = data

    def _resize(self, inode: Inode, size_bytes: int) -> None:
        if inode.mappings:
            super()._resize(inode, size_bytes)  # raises EBUSY
        content = bytearray(size_bytes)
        content[: len(inode.tracked.buffer)] = inode.tracked.buffer
        inode.tracked = _Unwatched(content)

    def sync(self, file: OpenFile) -> None:
        """Sync a file, which is the barrier for content and size; or raise EIO."""
        if self.failing_syncs:
            super().sync(file)
        else:
            number = recorded(file).inode.number
            self._state.synced(number, self._content(number), data_only=True)

    # ---- versions ----------------------------------------------------------------------------------------------------

    def mark(self, label: str) -> None:
        """Take no version here."""

    def _look(self) -> None:
        """Take no versions."""

    def _take_versions(self, inode: Inode) -> None:
        """Take no versions."""

    def _event(self) -> None:
        """Record no crash point."""

    def _note(self, *entries: Entry) -> None:
        """Apply entries to the durable state and to pending names."""
        for entry in entries:
            match entry:
                case FileSynced(number, True, data_only, None):
                    self._state.synced(number, self._content(number), data_only=data_only)
                case Resized():
                    pass  # durable content includes its size
                case PagesDropped():
                    raise _needs_history()
                case _:
                    self._state.apply(entry)

    def _content(self, number: int) -> bytes:
        """Return the visible content of a file, as the durable object if it is equal."""
        durable, seen = self._state.inodes[number].durable, self._inodes[number].tracked.buffer
        assert isinstance(seen, bytearray)  # compared at once and not item by item, as anything else would be
        return durable if seen == durable else bytes(seen)

    def state(self, disk: Disk) -> DiskState:
        """Return what is durable now.

        After a process kill that is all that the process has seen.
        """
        assert disk == self._state.disk
        if disk == "kill":
            for number in self._state.visible()[0].values():
                self._state.synced(number, self._content(number))
        return self._state


def _needs_history() -> ValueError:
    return ValueError("pages that a failed sync has dropped need a disk with a history")


class _Unwatched:
    """A buffer that no tracker watches."""

    small: tuple[list[bytearray], memoryview] | None = None
    leaked_exports = 0

    def __init__(self, content: bytes | bytearray) -> None:
        self.buffer: bytearray | mmap.mmap = content if isinstance(content, bytearray) else bytearray(content)

    def changed(self) -> list[int]:
        """Return no pages."""
        return []

    def close(self) -> None:
        """Do nothing; only memory is held."""


class _NoTracker:
    """A tracker that watches nothing and uses a given buffer as it is."""

    name = "nobody"
    leaked_exports = 0

    def watch(self, content: bytes | bytearray) -> Tracked:
        """Return a buffer."""
        return _Unwatched(content)

    def close(self) -> None:
        """Do nothing; nothing is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing; nothing is held."""


_NO_TRACKER = _NoTracker()
