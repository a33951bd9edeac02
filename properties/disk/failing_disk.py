"""A recorded disk on which a commit of the transient store pool may fail half way.

Queue and index files, which are built from the log, take no space, so that a run knows how many log files fit. Their
creation can be made to fail separately. Other optional files, as progress files, take no space either.
"""

import errno
import os

from tornpage.impl.io.files import OpenFile
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.inodes import Inode, recorded
from tornpage.properties.disk.journal import PAGE_BYTES, Entry, FileSynced, PagesDropped, PageWritten
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.disk.tracking import DirtyTracker
from tornpage.properties.program.log_places import ROOT, log_files
from tornpage.properties.scheduler import yield_point

__all__ = ["FailingDisk", "UnmarkedDisk"]


_FOLDERS = ("consumequeue", "consumequeue_ext", "index")
_DERIVED = (
    *(f"{ROOT}/{name}{ending}/" for name in _FOLDERS for ending in ("", ".unfinished")),
    f"{ROOT}/config/derivedFloor",
)
_WITH_ROOM = frozenset(f"{ROOT}/{name}" for name in ("checkpoint", "config/durableFloor", "lock"))
"""Files besides the log that take space; every store has one of each."""


class FailingDisk(RecordingFiles):
    """A disk with failing writes, syncs and file creations.

    `failing_writes` is the number of next writes to log files that fail, except those through a mapping; each stores
    half of its bytes and raises EIO. `half_written_end` is the physical offset at the end of the last half. For the
    next `refused_files` queue and index files the disk is full.
    """

    failing_writes = 0
    half_written_end = 0
    refused_files = 0

    def __init__(
        self,
        base: Image,
        *,
        tracker: DirtyTracker,
        journal: tuple[Entry, ...] = (),
        budget_bytes: int = 1 << 40,
        state: DiskState | None = None,
    ) -> None:
        super().__init__(base, tracker=tracker, journal=journal, budget_bytes=budget_bytes, state=state)
        self._dropped = {entry.inode for entry in journal if isinstance(entry, PagesDropped)}
        for path, inode in self._names.files.items():
            if path not in _WITH_ROOM and not log_files([path]):
                inode.allocated_bytes = 0

    def mend(self) -> None:
        """Let all calls succeed again.

        The next reader of the files handles half writes.
        """
        self.failing_syncs = self.failing_writes = self.half_written_end = self.refused_files = 0

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Reserve and grow.

        A queue or index file takes no space, or its creation fails.
        """
        if not file.path.startswith(_DERIVED):
            super().allocate(file, size_bytes)
            return
        if self.refused_files:
            self.refused_files -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
        inode = recorded(file).inode
        if size_bytes > len(inode.tracked.buffer):
            self._resize(inode, size_bytes)

    def sync(self, file: OpenFile) -> None:
        """Sync, or fail if that is requested.

        A queue or index file does not use up the requested failure.
        """
        ordered = self.failing_syncs
        if file.path.startswith(_DERIVED):
            self.failing_syncs = 0
        try:
            super().sync(file)
        finally:
            if file.path.startswith(_DERIVED):
                self.failing_syncs = ordered

    def drop_pages(self, file: OpenFile) -> None:
        """Record a failed sync, after which the file's dirty pages count as clean.

        They may be on the disk or not.
        """
        inode = recorded(file).inode
        self._dropped.add(inode.number)
        self._note(FileSynced(inode.number, succeeded=False), PagesDropped(inode.number))

    def _write(self, inode: Inode, data: bytes | memoryview, offset: int) -> None:
        """Write; a page that was dropped is dirty again even if it is not changed.

        Through a mapping only a change is visible.
        """
        super()._write(inode, data, offset)
        if data and inode.number in self._dropped:
            for page in range(offset // PAGE_BYTES, (offset + len(data) - 1) // PAGE_BYTES + 1):
                content = bytes(inode.tracked.buffer[page * PAGE_BYTES : (page + 1) * PAGE_BYTES])
                self.journal.append(PageWritten(inode.number, page, content))
            self._event()

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write, or fail half way.

        A write to a log file is a yield point, at which other tasks may run.
        """
        if log_files([file.path]):
            yield_point(f"write to {file.path}")
        if not self.failing_writes or not log_files([file.path]):
            super().pwrite(file, bytes(data), offset)
            return
        self.failing_writes -= 1
        half_bytes = self._half_of(data, offset)
        super().pwrite(file, bytes(data[:half_bytes]), offset)
        self.half_written_end = int(file.path.rpartition("/")[2]) + offset + half_bytes
        raise OSError(errno.EIO, os.strerror(errno.EIO), file.path)


class UnmarkedDisk(FailingDisk):
    """A disk that takes versions of pages only at its barriers, and where `look` says so."""

    def look(self) -> int:
        """Take a version of every changed page now; return the length of the journal."""
        self._look()
        return len(self.journal)

    def mark(self, label: str) -> None:
        """Take no version here."""
