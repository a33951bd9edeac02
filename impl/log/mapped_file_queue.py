"""The commit log's files in order: roll, lookup, commit and flush in order of offsets.

The files are contiguous: each begins where the one before it ends.
`min_offset <= flushed_where <= committed_where <= max_offset`, all physical offsets. None of them decreases while the
log is open. Source: `MappedFileQueue`.
"""

import errno
import threading
from collections import deque
from collections.abc import Callable

from tornpage.impl.config.policy import CommitPolicy, FlushPolicy
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.log.verified_records import VerifiedRecords

__all__ = ["MappedFileQueue"]


class MappedFileQueue:
    """Owns the list of mapped files, the flushed offset, and the files with pool buffers.

    In an open store the list is replaced and never changed in place, so a reader sees contiguous files (in RMQ-B24 an
    index is used after the first files were removed from the list).

    With `fast_fail` a new file of a log with a pool must get a buffer. `guard` creates the locks that serialise commits
    and flushes. `want_pages` is called when pages are to be populated ahead of the records. At least
    `populate_ahead_bytes` are populated; 0 disables that. `verified` says which records a read has to verify; None
    means all of them.
    """

    def __init__(
        self,
        maker: LogFileMaker,
        allocation: AllocateMappedFiles,
        *,
        fast_fail: bool = False,
        populate_ahead_bytes: int = 0,
        verified: VerifiedRecords | None = None,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self.verified = VerifiedRecords("always") if verified is None else verified
        self._maker = maker
        self._allocation = allocation
        self._pool: TransientStorePool | None = None
        self._fast_fail = fast_fail
        self.populate_ahead_bytes = populate_ahead_bytes
        self.want_pages: Callable[[], object] | None = None
        self._flush_lock = guard()
        self._commit_lock = guard()
        self._list_lock = guard()
        self._buffered: deque[MappedFile] = deque()  # puts append, commits remove the first one
        self.directories = maker.directories
        self.file_bytes = maker.file_bytes
        self.mapped: list[MappedFile] = []
        self.flushed_where = 0

    @property
    def min_offset(self) -> int:
        """Physical offset of the first retained byte, 0 for an empty log."""
        mapped = self.mapped
        return mapped[0].base_offset if mapped else 0

    @property
    def max_offset(self) -> int:
        """Physical offset after the last record."""
        mapped = self.mapped
        if not mapped:
            return 0
        last = mapped[-1]  # read once: a new file may be added meanwhile
        return last.base_offset + last.written_position

    @property
    def committed_where(self) -> int:
        """Physical offset up to which the log is in the page cache; bytes in a buffer are not."""
        mapped = self.mapped
        # read first: a file is in `_buffered` before its first write
        end_offset = mapped[-1].base_offset + mapped[-1].written_position if mapped else 0
        if not self._buffered:  # avoids an exception for a log without a pool
            return end_offset
        try:
            first = self._buffered[0]
        except IndexError:
            return end_offset
        return first.base_offset + first.committed_position

    @property
    def readable_end(self) -> int:
        """Physical offset up to which readers may read; `flushed_where` after a failed sync."""
        for file in self.mapped:
            if file.failure is not None:
                return self.flushed_where
        return self.committed_where

    @property
    def failed_path(self) -> str | None:
        """The path of a file whose sync has failed, or None."""
        return next((file.path for file in self.mapped if file.failure is not None), None)

    def adopt(self, path: str, *, writable: bool) -> None:
        """Map a file found at load and append it to the list. Raises OSError."""
        self.mapped.append(self._maker.open(path, writable=writable))

    def next_file(self, first_offset: int = 0) -> MappedFile:
        """Return a new file after the last one, durable in size and name.

        The first file of a log begins at `first_offset`. It has a buffer if one is free. It is part of the log only
        after `add`, so that the previous file can be ended first. Raises OSError if no file can be created.
        """
        base_offset = self.mapped[-1].end_offset if self.mapped else first_offset
        buffer = self._borrow(base_offset)
        try:
            mapped = self._allocation.take(base_offset)
        except BaseException:
            self.verified.note_failure()
            self._return(buffer)
            raise
        if buffer is not None:
            mapped.use_buffer(buffer)
        return mapped

    def _borrow(self, base_offset: int) -> memoryview | None:
        buffer = None if self._pool is None else self._pool.borrow()
        if buffer is None and self._pool is not None and self._fast_fail:
            path = self._maker.path_of(base_offset)
            raise OSError(errno.ENOBUFS, "no buffer of the transient store pool is free", path)
        return buffer

    # planted: buffer-kept
    def _return(self, buffer: memoryview | None) -> None:
        if self._pool is not None and buffer is not None:
            self._pool.give_back(buffer)

    def add(self, mapped: MappedFile) -> None:
        """Append a new file to the log. The previous file must be full.

        The first file of a replica may begin at a later offset than 0. Nothing before it is left to flush.
        """
        self.verified.begin(mapped)
        if mapped.has_buffer:
            self._buffered.append(mapped)
        with self._list_lock:
            self.mapped = [*self.mapped, mapped]
            if len(self.mapped) == 1:
                self.flushed_where = mapped.base_offset
        self.populate_last()

    def give_back(self, mapped: MappedFile) -> None:
        """Keep a new file, neither added nor written to, for later use."""
        self._return(mapped.take_buffer())
        self._allocation.give_back(mapped)

    def use_pool(self, pool: TransientStorePool) -> None:
        """Give new files a buffer of a pool from here on."""
        self._pool = pool

    def populate_last(self) -> None:
        """Make the next record of the newest file request the pages after it.

        Does nothing if no pages are populated ahead.
        """
        if self.populate_ahead_bytes and self.mapped:
            self.mapped[-1].ask_for_pages(self._want_pages, beyond=self.mapped[-1].written_position)

    def _want_pages(self) -> None:
        if self.want_pages is not None:
            self.want_pages()

    def drop_after(self, index: int) -> None:
        """Remove all files after the one at `index`, last first, each durably before the next.

        A crash may lose any of several unlinks. If an earlier file were removed while a later one stays, the log would
        have a gap. Raises OSError.
        """
        while len(self.mapped) > index + 1:
            self._maker.remove(self.mapped.pop())

    def end_at(self, offset: int) -> None:
        """End the log at `offset` in memory: close the files past it, and keep the first file.

        Use it for a log that must not be changed, before it has a reader.
        """
        while len(self.mapped) > 1 and self.mapped[-1].base_offset >= offset:
            self.mapped.pop().close()
        if self.mapped:
            last = self.mapped[-1]
            last.written_position = min(max(0, offset - last.base_offset), last.size_bytes)

    def drop_first(self) -> MappedFile:
        """Take the first of several files out of the log and begin to close it.

        The caller removes it. Readers that hold the file continue to read; no new reader can hold it.
        """
        with self._list_lock:
            assert len(self.mapped) > 1, "the last file of a log stays"
            first, self.mapped = self.mapped[0], self.mapped[1:]
        first.close()
        return first

    def remove(self, mapped: MappedFile) -> None:
        """Remove a file that was taken out of the log, durably.

        Raises OSError; call it again then.
        """
        self._maker.remove(mapped)

    def find(self, offset: int) -> MappedFile | None:
        """Return the file that holds a physical offset, or None."""
        files = self.mapped  # a snapshot: close() replaces the list
        number = (offset - files[0].base_offset) // self.file_bytes if files else -1
        if 0 <= number < len(files):
            file = files[number]
            if file.base_offset <= offset < file.base_offset + file.size_bytes:
                return file
        # a damaged log has gaps, and files that are too long
        return next((mapped for mapped in reversed(files) if mapped.holds(offset)), None)

    def commit(self, least_pages: int = 0) -> bool:
        """Write buffers to their files by a page rule, oldest first; return whether bytes moved.

        A full file returns its buffer. Raises OSError if a write fails; earlier writes stay committed.
        """
        try:
            return self._commit(least_pages)
        except OSError:
            self.verified.note_failure()
            raise

    def _commit(self, least_pages: int) -> bool:
        moved = False
        with self._commit_lock:
            while self._buffered:
                mapped = self._buffered[0]
                if CommitPolicy.is_due(
                    written_position=mapped.written_position,
                    committed_position=mapped.committed_position,
                    least_pages=least_pages,
                    file_is_full=mapped.is_full,
                ):
                    mapped.commit()
                    moved = True
                if mapped.committed_position < mapped.size_bytes:
                    break
                self._buffered.popleft()
                self._return(mapped.take_buffer())
        return moved

    def flush(self, least_pages: int = 0) -> int:
        """Flush committed bytes by a page rule, oldest file first; return the flushed offset.

        A file is flushed only after the previous one is durable to its end: a put that rolls over has created the next
        file before it writes the blank. Raises OSError if a sync fails; `flushed_where` then covers the files before
        it.
        """
        try:
            return self._flush(least_pages)
        except OSError:
            self.verified.note_failure()
            raise

    def _flush(self, least_pages: int) -> int:
        with self._flush_lock:
            start, files = self.find(self.flushed_where), self.mapped
            for mapped in files[files.index(start) :] if start is not None else []:
                if FlushPolicy.is_due(
                    written_position=mapped.committed_position,
                    flushed_position=mapped.flushed_position,
                    least_pages=least_pages,
                    file_is_full=mapped.is_full,
                ):
                    mapped.flush()
                    self.flushed_where = mapped.base_offset + mapped.flushed_position
                if mapped.flushed_position < mapped.size_bytes:
                    break
            return self.flushed_where

    def close(self) -> None:
        """Close all mappings without a write or sync. Waits for a running flush or commit."""
        with self._commit_lock, self._flush_lock:
            given_up, self.mapped = self.mapped, []
            self._buffered.clear()
            for mapped in given_up:
                self._return(mapped.take_buffer())
                mapped.close()

    def check(self) -> None:
        """Assert the invariants of the class."""
        assert self.min_offset <= self.flushed_where <= self.committed_where <= self.max_offset
        for before, after in zip(self.mapped, self.mapped[1:], strict=False):
            assert before.end_offset == after.base_offset
            assert before.written_position == before.size_bytes
        for mapped in self.mapped:
            mapped.check()
