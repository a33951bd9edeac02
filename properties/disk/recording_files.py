"""A recorded disk in memory: `impl.io.files.Files` for the crash lab.

Every call takes versions of pages that the store changed through its mappings (properties/disk/recording.py), and is a
point at which a crash may happen. Closing syncs nothing. Only one thread may call at a time, because the order is
recorded.

Not simulated: the kernel writing a page while the store changes it (tears below 512 bytes), and unallocated blocks
(SIGBUS), which only a real file system shows.
"""

import errno

from tornpage.impl.io.files import DiskUsage, FileStat, Mapping, OpenFile
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState, Image, parent_of
from tornpage.properties.disk.inodes import Inode, RecordedFile, RecordedMapping, recorded, refusal, writable
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileLinked,
    FileMade,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    Resized,
)
from tornpage.properties.disk.recording import Recording

__all__ = ["EMPTY_DISK", "RecordingFiles", "is_unfinished"]

_UNFINISHED = ".unfinished"

EMPTY_DISK = Image(directories=frozenset({"/"}), files={})


def is_unfinished(path: str) -> bool:
    """Whether a file lies in a folder in which the store makes files whole.

    It counts as a file without a name until it is renamed into its place. No recovery reads such a file, so that no
    crash state needs it.
    """
    return parent_of(path).endswith(_UNFINISHED)


class RecordingFiles(Recording):
    """A recorded disk: starts from a durable image and, optionally, a journal.

    The journal is that of a process that was killed on the image.

    `budget_bytes` is the total that `allocate` may reserve. Requested faults count down: `failing_syncs` of files;
    `failing_writes` to mapped files, which write the first half of the bytes and raise EIO; `failing_allocations`,
    which reserve nothing and raise `allocation_code`. `scripted_usage` replaces the size and free space of the disk.
    `full_directory` is on another disk, which is nearly full.

    A failed write ends at a multiple of `cut_bytes` in its file. Records without a trailer need whole sectors. No
    checksum covers their first fields, and a torn sector could hold half of such a field in a valid record.
    """

    def __init__(
        self,
        base: Image,
        *,
        tracker: DirtyTracker,
        journal: tuple[Entry, ...] = (),
        budget_bytes: int = 1 << 40,
        state: DiskState | None = None,
    ) -> None:
        super().__init__(base, tracker=tracker, journal=journal, state=state)
        self.failing_syncs = 0
        self.failing_writes = 0
        self.failing_allocations = 0
        self.allocation_code = errno.EIO
        self.scripted_usage: DiskUsage | None = None
        self.full_directory = ""
        self.cut_bytes = 1
        self._budget_bytes = budget_bytes

    # ---- names ---------------------------------------------------------------------------------------------------

    def create(self, path: str) -> OpenFile:
        """Create an empty file."""
        self._names.require_free_name(path)
        inode = self._load(self._next_inode, bytearray())
        self._names.add(path, inode)
        self._next_inode += 1
        self._note(FileMade(inode.number) if is_unfinished(path) else FileCreated(inode.number, path))
        inode.opens += 1
        return RecordedFile(path, inode, writable=True)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open an existing file."""
        self.mark("open")
        inode = self._names.find(path)
        inode.opens += 1
        return RecordedFile(path, inode, writable=writable)

    def close(self, file: OpenFile) -> None:
        """Close without a sync."""
        self.mark("close")
        closed = recorded(file)
        closed.is_closed = True
        closed.inode.opens -= 1
        if closed.holds_lock:
            closed.inode.locked = closed.holds_lock = False
        self._forget(closed.inode)

    def _forget(self, inode: Inode) -> None:
        if not (inode.links or inode.opens or inode.mappings):
            inode.allocated_bytes = 0
            inode.tracked.close()

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target; only an unfinished one changes its directory."""
        inode = self._names.find(source)
        if target in self._names.directories:
            raise refusal(errno.EISDIR, target)
        if is_unfinished(source):
            self._names.require_directory(parent_of(target))
        elif parent_of(source) != parent_of(target):
            raise OSError(errno.EXDEV, "the recorder renames within one directory", source)
        if source == target:
            return
        self._note(
            FileLinked(inode.number, target) if is_unfinished(source) else FileRenamed(inode.number, source, target)
        )
        replaced = self._names.files.get(target)
        self._names.add(target, self._names.remove(source))
        if replaced is not None:
            replaced.links = 0
            self._forget(replaced)

    def unlink(self, path: str) -> None:
        """Remove a name; an open file stays without it."""
        inode = self._names.find(path)
        if is_unfinished(path):
            self._event()
        else:
            self._note(FileUnlinked(inode.number, path))
        self._names.remove(path)
        inode.links = 0
        self._forget(inode)

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        self._names.require_free_name(path)
        self._note(DirectoryMade(path))
        self._names.add_directory(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        self.mark("list")
        return self._names.below(path)

    def stat(self, path: str) -> FileStat | None:
        """Return the stat of a path."""
        self.mark("stat")
        return self._names.stat(path)

    # ---- content -------------------------------------------------------------------------------------------------

    def _resize(self, inode: Inode, size_bytes: int) -> None:
        if inode.mappings:
            raise OSError(errno.EBUSY, "the recorder does not resize a mapped file")
        content = bytes(inode.tracked.buffer[:size_bytes]).ljust(size_bytes, b"\0")
        inode.tracked.close()
        inode.tracked = self._tracker.watch(content)
        self._note(Resized(inode.number, size_bytes))

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Reserve and grow, or fail as a full disk does."""
        inode = writable(file).inode
        if self.failing_allocations:
            self.failing_allocations -= 1
            raise refusal(self.allocation_code, file.path)
        if self._names.allocated_bytes() - inode.allocated_bytes + size_bytes > self._budget_bytes:
            raise refusal(errno.ENOSPC, file.path)
        if size_bytes > len(inode.tracked.buffer):
            self._resize(inode, size_bytes)
        inode.allocated_bytes = max(inode.allocated_bytes, size_bytes)

    def map(self, file: OpenFile) -> Mapping:
        """Map the live content."""
        self.mark("map")
        opened = recorded(file)
        opened.inode.mappings += 1
        self._mapped[opened.inode.number] = opened.inode
        view = memoryview(opened.inode.tracked.buffer)
        return RecordedMapping(opened.inode, view if opened.writable else view.toreadonly())

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Do nothing: the memory is populated, and no byte changes."""
        assert isinstance(mapping, RecordedMapping)
        assert position % PAGE_BYTES == 0

    def advise_will_need(self, mapping: Mapping) -> None:
        """Do nothing but add a crash point."""
        self.mark("advise")

    def lock_memory(self, mapping: Mapping) -> bool:
        """Do nothing but add a crash point; the disk is memory already."""
        self.mark("lock memory")
        return True

    def unlock_memory(self, mapping: Mapping) -> None:
        """Do nothing but add a crash point."""
        self.mark("unlock memory")

    def unmap(self, mapping: Mapping) -> None:
        """Take the last versions, and release the view."""
        self.mark("unmap")
        assert isinstance(mapping, RecordedMapping)
        mapping.view.release()
        inode = mapping.inode
        inode.mappings -= 1
        if not inode.mappings:
            self._mapped.pop(inode.number, None)
        self._forget(inode)

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read live content."""
        self.mark("read")
        return bytes(recorded(file).inode.tracked.buffer[offset : offset + size_bytes])

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write into the page cache and grow the file if needed; or write half of it and fail."""
        inode = writable(file).inode
        if inode.mappings and self.failing_writes:
            self.failing_writes -= 1
            self._write(inode, data[: self._half_of(data, offset)], offset)
            raise refusal(errno.EIO, file.path)
        self._write(inode, data, offset)

    def _half_of(self, data: bytes | memoryview, offset: int) -> int:
        """Return how many bytes of a write reach the page cache before it fails."""
        end = offset + len(data) // 2
        return max(0, end - end % self.cut_bytes - offset)

    def _write(self, inode: Inode, data: bytes | memoryview, offset: int) -> None:
        end = offset + len(data) if data else 0
        if end > len(inode.tracked.buffer):
            self._resize(inode, end)
        self._look()
        inode.tracked.buffer[offset : offset + len(data)] = data
        self._take_versions(inode)
        self._event()

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Write zeros inside the file."""
        self._write(writable(file).inode, bytes(size_bytes), offset)

    def sync(self, file: OpenFile) -> None:
        """Sync a file: the barrier for content and size; or raise EIO and leave every page dirty."""
        inode = recorded(file).inode
        if self.failing_syncs:
            self.failing_syncs -= 1
            self._note(FileSynced(inode.number, succeeded=False))
            raise refusal(errno.EIO, file.path)
        self._note(FileSynced(inode.number, succeeded=True, data_only=True))

    def sync_directory(self, path: str) -> None:
        """Sync a directory: the barrier for names."""
        self._names.require_directory(path)
        self._note(DirectorySynced(path))

    def lock(self, file: OpenFile) -> bool:
        """Take the lock unless another open file has it."""
        self.mark("lock")
        opened = writable(file)
        if opened.inode.locked and not opened.holds_lock:
            return False
        opened.inode.locked = opened.holds_lock = True
        return True

    def next_data(self, file: OpenFile, position: int) -> tuple[int, int] | None:
        """Return the rest of the file, all of which may have data."""
        size_bytes = len(recorded(file).inode.tracked.buffer)
        return (position, size_bytes) if position < size_bytes else None

    def disk_usage(self, path: str) -> DiskUsage:
        """Return the budget and what is left of it, or the scripted values."""
        if path not in self._names.directories:
            self._names.find(path)
        if self.full_directory and path.startswith(self.full_directory):
            return DiskUsage(100 << 20, 3 << 20)
        if self.scripted_usage is not None:
            return self.scripted_usage
        return DiskUsage(self._budget_bytes, self._budget_bytes - self._names.allocated_bytes())
