"""A disk that nobody crashes on any more: it knows what is durable, and what the process sees, and keeps no history.

Most disks of a campaign are such: a crash image is recovered on them, judged, and given up. Without a history there
are no versions to look for: a sync makes durable what the process sees at that moment, as it does on any other disk
(tests/contracts run on both). Content that is what it was before stays the same object, so that images share it.
"""

import mmap
from typing import Self

from tornpage.impl.io.files import FileStat, Mapping, OpenFile
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.inodes import Inode, RecordedFile, RecordedMapping, recorded, writable
from tornpage.properties.disk.journal import DirectorySynced, Entry, FileCreated, FileSynced, PagesDropped, Resized
from tornpage.properties.disk.tracking import Tracked
from tornpage.properties.program.case import Disk

__all__ = ["LastDisk"]


class LastDisk(FailingDisk):
    """Start as `FailingDisk` does; `disk` is the rule for names by which `state` says what is durable.

    A sync makes all durable that the process sees. Where pages were dropped that is not so, and it takes versions to
    know which of them are dirty again: such a disk needs a history. Raises ValueError for a journal that has any.
    """

    def __init__(
        self, base: Image, *, disk: Disk, journal: tuple[Entry, ...] = (), budget_bytes: int = 1 << 40
    ) -> None:
        if any(isinstance(entry, PagesDropped) for entry in journal):
            raise _needs_history()
        self._inodes: dict[int, Inode] = {}
        self._state = DiskState(base, disk=disk)
        self._state.apply_all(journal)
        super().__init__(base, tracker=_NOBODY, journal=journal, budget_bytes=budget_bytes, state=self._state)

    def _load(self, number: int, content: bytearray) -> Inode:
        inode = self._inodes[number] = Inode(number, _Unwatched(content))
        return inode

    # ---- names: what `RecordingFiles` answers, without a look for versions ------------------------------------------

    def create(self, path: str) -> OpenFile:
        """Create an empty file."""
        self._names.require_free_name(path)
        inode = self._load(self._next_inode, bytearray())
        self._names.add(path, inode)
        self._next_inode += 1
        self._state.apply(FileCreated(inode.number, path))
        inode.opens = 1
        return RecordedFile(path, inode, writable=True)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open an existing file."""
        inode = self._names.files.get(path) or self._names.find(path)
        inode.opens += 1
        return RecordedFile(path, inode, writable=writable)

    def close(self, file: OpenFile) -> None:
        """Close; nothing is synced. What has no name any more stays until the whole disk is given up."""
        closed = recorded(file)
        closed.inode.opens -= 1
        if closed.holds_lock:
            closed.inode.locked = closed.holds_lock = False

    def stat(self, path: str) -> FileStat | None:
        """Return what a path names."""
        return self._names.stat(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return self._names.below(path)

    def sync_directory(self, path: str) -> None:
        """The barrier for names."""
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
        """Write, or fail as it is ordered. There is one thread, to which nobody comes in between."""
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
            super()._resize(inode, size_bytes)  # refused
        content = bytearray(size_bytes)
        content[: len(inode.tracked.buffer)] = inode.tracked.buffer
        inode.tracked = _Unwatched(content)

    def sync(self, file: OpenFile) -> None:
        """The barrier for content and size, or EIO."""
        if self.failing_syncs:
            super().sync(file)
        else:
            number = recorded(file).inode.number
            self._state.synced(number, self._content(number))

    # ---- versions ----------------------------------------------------------------------------------------------------

    def mark(self, label: str) -> None:
        """Let the place go by."""

    def _look(self) -> None:
        """Nobody looks for versions."""

    def _take_versions(self, inode: Inode) -> None:
        """Nobody asks for them."""

    def _event(self) -> None:
        """No crash falls anywhere."""

    def _note(self, *entries: Entry) -> None:
        """Keep what is durable, and names that may be."""
        for entry in entries:
            match entry:
                case FileSynced(number, True):
                    self._state.synced(number, self._content(number))
                case Resized():
                    pass  # what is durable has its size with it
                case PagesDropped():
                    raise _needs_history()
                case _:
                    self._state.apply(entry)

    def _content(self, number: int) -> bytes:
        """Return what the process sees of a file: the durable object itself where that is the same."""
        durable, seen = self._state.inodes[number].durable, self._inodes[number].tracked.buffer
        assert isinstance(seen, bytearray)  # compared at once and not item by item, as anything else would be
        return durable if seen == durable else bytes(seen)

    def state(self, disk: Disk) -> DiskState:
        """Return what is durable now; when only the process dies that is all it has seen."""
        assert disk == self._state.disk
        if disk == "kill":
            for number in self._state.visible()[0].values():
                self._state.synced(number, self._content(number))
        return self._state


def _needs_history() -> ValueError:
    return ValueError("pages that a failed sync has dropped need a disk with a history")


class _Unwatched:
    """A buffer that nobody watches."""

    small: tuple[list[bytearray], memoryview] | None = None
    leaked_exports = 0

    def __init__(self, content: bytes | bytearray) -> None:
        self.buffer: bytearray | mmap.mmap = content if isinstance(content, bytearray) else bytearray(content)

    def changed(self) -> list[int]:
        """Nothing is known to have changed."""
        return []

    def close(self) -> None:
        """Nothing is held but memory."""


class _Nobody:
    """Watches nothing; a buffer handed over is used as it is."""

    name = "nobody"
    leaked_exports = 0

    def watch(self, content: bytes | bytearray) -> Tracked:
        """Take a buffer."""
        return _Unwatched(content)

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""


_NOBODY = _Nobody()
