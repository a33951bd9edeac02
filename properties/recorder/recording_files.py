"""A disk in memory that remembers: `impl.files.Files` for the crash lab.

Every seam call looks for pages the store changed through its mappings, so that each content a page had between two
barriers becomes a version in the journal. Closing syncs nothing. A moment between two seam calls at which a crash may
fall is an *event*: the length of the journal there.

What it leaves out: the kernel writing a page while the store changes it (tears below 512 bytes), and blocks that were
not allocated (SIGBUS), which only a real file system shows.
"""

import errno
import os

from impl.files import DiskUsage, FileStat, Mapping, OpenFile
from properties.recorder.dirty import DirtyTracker, Tracked
from properties.recorder.disk import DiskState, Image, parent_of
from properties.recorder.journal import (
    PAGE_BYTES,
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageWritten,
    Resized,
)

__all__ = ["EMPTY_DISK", "RecordingFiles"]

EMPTY_DISK = Image(directories=frozenset({"/"}), files={})


class _Inode:
    """Live content of one file."""

    __slots__ = ("allocated_bytes", "links", "locked", "mappings", "number", "opens", "tracked")

    def __init__(self, number: int, tracked: Tracked) -> None:
        self.number = number
        self.tracked = tracked
        self.allocated_bytes = len(tracked.buffer)
        self.links = 1
        self.opens = 0
        self.mappings = 0
        self.locked = False


class _RecordedFile:
    __slots__ = ("holds_lock", "inode", "path", "writable")

    def __init__(self, path: str, inode: _Inode, *, writable: bool) -> None:
        self.path = path
        self.inode = inode
        self.writable = writable
        self.holds_lock = False


class _RecordedMapping:
    __slots__ = ("inode", "view")

    def __init__(self, inode: _Inode, view: memoryview) -> None:
        self.inode = inode
        self.view = view


def _recorded(file: OpenFile) -> _RecordedFile:
    assert isinstance(file, _RecordedFile)
    return file


def _writable(file: OpenFile) -> _RecordedFile:
    recorded = _recorded(file)
    if not recorded.writable:
        raise _refusal(errno.EBADF, file.path)
    return recorded


def _refusal(code: int, path: str) -> OSError:
    """Return the error a real disk answers with; OSError picks the class that belongs to the number."""
    return OSError(code, os.strerror(code), path)


class RecordingFiles:
    """Start from a durable image, optionally with the journal of a process that was killed on it.

    `budget_bytes` is how much `allocate` may reserve in all; `failing_syncs` makes that many file syncs fail next;
    `scripted_usage` is what the disk then says about its size and room, whatever the budget allows.
    """

    def __init__(
        self, base: Image, *, tracker: DirtyTracker, journal: tuple[Entry, ...] = (), budget_bytes: int = 1 << 40
    ) -> None:
        self.base = base
        self.journal: list[Entry] = list(journal)
        self.events: list[int] = []
        self.failing_syncs = 0
        self.scripted_usage: DiskUsage | None = None
        self._tracker = tracker
        self._budget_bytes = budget_bytes
        state = DiskState(base, disk="kill")
        state.apply_all(journal)
        names, self._directories = state.visible()
        self._inodes = {path: self._load(number, state.inodes[number].latest()) for path, number in names.items()}
        self._next_inode = max(state.inodes, default=-1) + 1
        self._mapped: dict[int, _Inode] = {}

    def _load(self, number: int, content: bytearray) -> _Inode:
        return _Inode(number, self._tracker.watch(content))

    # ---- looking -------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take a version of every page that changed through a mapping."""
        for inode in self._mapped.values():
            self._take_versions(inode)

    def _take_versions(self, inode: _Inode) -> None:
        tracked = inode.tracked
        for page in tracked.changed():
            content = bytes(tracked.buffer[page * PAGE_BYTES : (page + 1) * PAGE_BYTES])
            self.journal.append(PageWritten(inode.number, page, content))

    def _event(self) -> None:
        """Let a crash fall here, unless nothing happened since the last place."""
        if not self.events or self.events[-1] != len(self.journal):
            self.events.append(len(self.journal))

    def _note(self, *entries: Entry) -> None:
        """Look, let a crash fall before the entries, then after them."""
        self._look()
        self._event()
        self.journal.extend(entries)
        self._event()

    def mark(self, label: str) -> None:
        """Take versions at a place the store names."""
        self._look()
        self._event()

    # ---- names ---------------------------------------------------------------------------------------------------

    def _find(self, path: str) -> _Inode:
        if path in self._directories:
            raise _refusal(errno.EISDIR, path)
        inode = self._inodes.get(path)
        if inode is None:
            raise self._missing(path)
        return inode

    def _missing(self, path: str) -> OSError:
        """Return why a path names nothing: a file stands where a directory should, or there is nothing."""
        above = parent_of(path)
        while above not in self._directories and above not in self._inodes:
            above = parent_of(above)
        return _refusal(errno.ENOTDIR if above in self._inodes else errno.ENOENT, path)

    def _require_directory(self, path: str) -> None:
        if path in self._inodes:
            raise _refusal(errno.ENOTDIR, path)
        if path not in self._directories:
            raise self._missing(path)

    def _require_free_name(self, path: str) -> None:
        if path in self._inodes or path in self._directories:
            raise _refusal(errno.EEXIST, path)
        if parent_of(path) not in self._directories:
            raise self._missing(path)

    def create(self, path: str) -> OpenFile:
        """Create an empty file."""
        self._require_free_name(path)
        inode = self._inodes[path] = self._load(self._next_inode, bytearray())
        self._next_inode += 1
        self._note(FileCreated(inode.number, path))
        inode.opens += 1
        return _RecordedFile(path, inode, writable=True)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open an existing file."""
        self.mark("open")
        inode = self._find(path)
        inode.opens += 1
        return _RecordedFile(path, inode, writable=writable)

    def close(self, file: OpenFile) -> None:
        """Close; nothing is synced."""
        self.mark("close")
        recorded = _recorded(file)
        recorded.inode.opens -= 1
        if recorded.holds_lock:
            recorded.inode.locked = recorded.holds_lock = False
        self._forget(recorded.inode)

    def _forget(self, inode: _Inode) -> None:
        if not (inode.links or inode.opens or inode.mappings):
            inode.allocated_bytes = 0
            inode.tracked.close()

    def rename(self, source: str, target: str) -> None:
        """Rename within one directory, replacing the target."""
        inode = self._find(source)
        if target in self._directories:
            raise _refusal(errno.EISDIR, target)
        if parent_of(source) != parent_of(target):
            raise OSError(errno.EXDEV, "the recorder renames within one directory", source)
        if source == target:
            return
        self._note(FileRenamed(inode.number, source, target))
        replaced = self._inodes.get(target)
        self._inodes[target] = self._inodes.pop(source)
        if replaced is not None:
            replaced.links = 0
            self._forget(replaced)

    def unlink(self, path: str) -> None:
        """Remove a name; an open file lives on without it."""
        inode = self._find(path)
        self._note(FileUnlinked(inode.number, path))
        del self._inodes[path]
        inode.links = 0
        self._forget(inode)

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        self._require_free_name(path)
        self._note(DirectoryMade(path))
        self._directories.add(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        self.mark("list")
        self._require_directory(path)
        prefix = path.rstrip("/") + "/"
        below = [name[len(prefix) :] for name in (*self._inodes, *self._directories) if name.startswith(prefix)]
        return sorted(name for name in below if name and "/" not in name)

    def stat(self, path: str) -> FileStat | None:
        """Return what a path names."""
        self.mark("stat")
        if path in self._directories:
            return FileStat("directory", 0)
        inode = self._inodes.get(path)
        return None if inode is None else FileStat("file", len(inode.tracked.buffer))

    # ---- content -------------------------------------------------------------------------------------------------

    def _resize(self, inode: _Inode, size_bytes: int) -> None:
        if inode.mappings:
            raise OSError(errno.EBUSY, "the recorder does not resize a mapped file")
        content = bytes(inode.tracked.buffer[:size_bytes]).ljust(size_bytes, b"\0")
        inode.tracked.close()
        inode.tracked = self._tracker.watch(content)
        self._note(Resized(inode.number, size_bytes))

    def _allocated_bytes(self) -> int:
        return sum(inode.allocated_bytes for inode in self._inodes.values())

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Reserve and grow, or fail as a full disk does."""
        inode = _writable(file).inode
        if self._allocated_bytes() - inode.allocated_bytes + size_bytes > self._budget_bytes:
            raise _refusal(errno.ENOSPC, file.path)
        if size_bytes > len(inode.tracked.buffer):
            self._resize(inode, size_bytes)
        inode.allocated_bytes = max(inode.allocated_bytes, size_bytes)

    def map(self, file: OpenFile) -> Mapping:
        """Map the live content."""
        self.mark("map")
        recorded = _recorded(file)
        recorded.inode.mappings += 1
        self._mapped[recorded.inode.number] = recorded.inode
        view = memoryview(recorded.inode.tracked.buffer)
        return _RecordedMapping(recorded.inode, view if recorded.writable else view.toreadonly())

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Nothing: memory is ready, and no byte changes."""
        assert isinstance(mapping, _RecordedMapping)
        assert position % PAGE_BYTES == 0

    def unmap(self, mapping: Mapping) -> None:
        """Take last versions, release the view."""
        self.mark("unmap")
        assert isinstance(mapping, _RecordedMapping)
        mapping.view.release()
        inode = mapping.inode
        inode.mappings -= 1
        if not inode.mappings:
            self._mapped.pop(inode.number, None)
        self._forget(inode)

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read live content."""
        self.mark("read")
        return bytes(_recorded(file).inode.tracked.buffer[offset : offset + size_bytes])

    def pwrite(self, file: OpenFile, data: bytes, offset: int) -> None:
        """Write into the page cache, growing the file if need be."""
        inode = _writable(file).inode
        end = offset + len(data) if data else 0
        if end > len(inode.tracked.buffer):
            self._resize(inode, end)
        self._look()
        inode.tracked.buffer[offset : offset + len(data)] = data
        self._take_versions(inode)
        self._event()

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Write zeros inside the file."""
        self.pwrite(file, bytes(size_bytes), offset)

    def sync(self, file: OpenFile) -> None:
        """The barrier for content and size, or EIO that leaves every page dirty."""
        inode = _recorded(file).inode
        if self.failing_syncs:
            self.failing_syncs -= 1
            self._note(FileSynced(inode.number, succeeded=False))
            raise _refusal(errno.EIO, file.path)
        self._note(FileSynced(inode.number, succeeded=True))

    def sync_directory(self, path: str) -> None:
        """The barrier for names."""
        self._require_directory(path)
        self._note(DirectorySynced(path))

    def lock(self, file: OpenFile) -> bool:
        """Take the lock unless another open file holds it."""
        self.mark("lock")
        recorded = _writable(file)
        if recorded.inode.locked and not recorded.holds_lock:
            return False
        recorded.inode.locked = recorded.holds_lock = True
        return True

    def disk_usage(self, path: str) -> DiskUsage:
        """The budget and what is left of it, or what the test scripted."""
        if path not in self._directories:
            self._find(path)
        if self.scripted_usage is not None:
            return self.scripted_usage
        return DiskUsage(self._budget_bytes, self._budget_bytes - self._allocated_bytes())

    # ---- for the crash lab ---------------------------------------------------------------------------------------

    def peek(self, path: str, offset: int, size_bytes: int) -> bytes:
        """Return what the process sees of a file, taking no version."""
        return bytes(self._find(path).tracked.buffer[offset : offset + size_bytes])

    def paths(self) -> list[str]:
        """Return the names of all files the process sees, sorted."""
        return sorted(self._inodes)

    def leaks(self) -> list[str]:
        """Return what a closed store still holds: open files and mappings."""
        return [
            f"{path}: {inode.opens} open, {inode.mappings} mapped"
            for path, inode in sorted(self._inodes.items())
            if inode.opens or inode.mappings
        ]
