"""The commit log's files in order: rolling to a new one, finding one, committing and flushing them front to back.

The files are contiguous: each begins where the one before it ends.
`min_offset <= flushed_where <= committed_where <= max_offset`, all physical offsets, none going down while the log is
open. Source: `MappedFileQueue`.
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

__all__ = ["MappedFileQueue"]


class MappedFileQueue:
    """Owns the list of mapped files, the flushed watermark, and which files have a buffer of the pool.

    In an open store the list is replaced and never changed, so that whoever has it sees files that follow each other
    (RMQ-B24 is an index into a list that has lost its head meanwhile).

    With `fast_fail` a new file of a log with a pool has to have a buffer. `guard` makes what has commits come one
    after the other, and flushes. `want_pages` is called when pages are to be populated ahead of the records, of which
    `populate_ahead_bytes` is the least, 0 for never.
    """

    def __init__(
        self,
        maker: LogFileMaker,
        allocation: AllocateMappedFiles,
        *,
        fast_fail: bool = False,
        populate_ahead_bytes: int = 0,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._maker = maker
        self._allocation = allocation
        self._pool: TransientStorePool | None = None
        self._fast_fail = fast_fail
        self.populate_ahead_bytes = populate_ahead_bytes
        self.want_pages: Callable[[], object] | None = None
        self._flush_lock = guard()
        self._commit_lock = guard()
        self._list_lock = guard()
        self._buffered: deque[MappedFile] = deque()  # puts add to the end, commits take from the front
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
        """Physical offset just behind the last record."""
        mapped = self.mapped
        if not mapped:
            return 0
        last = mapped[-1]  # once: the next file may be there at the second look
        return last.base_offset + last.written_position

    @property
    def committed_where(self) -> int:
        """Physical offset up to which the log is in the page cache; what a buffer holds is not."""
        mapped = self.mapped
        # before the look: a file with a buffer is there before it is written to
        end_offset = mapped[-1].base_offset + mapped[-1].written_position if mapped else 0
        if not self._buffered:  # spares what has no pool an error for each look
            return end_offset
        try:
            first = self._buffered[0]
        except IndexError:
            return end_offset
        return first.base_offset + first.committed_position

    @property
    def readable_end(self) -> int:
        """Physical offset up to which readers may see: below the flushed end once a sync has failed."""
        for file in self.mapped:
            if file.failure is not None:
                return self.flushed_where
        return self.committed_where

    @property
    def failed_path(self) -> str | None:
        """The path of a file whose sync has failed, or None."""
        return next((file.path for file in self.mapped if file.failure is not None), None)

    def adopt(self, path: str, *, writable: bool) -> None:
        """Map a file found at load behind those already there."""
        self.mapped.append(self._maker.open(path, writable=writable))

    def next_file(self) -> MappedFile:
        """Return the file behind the last one, durable in size and name, with a buffer if one is free.

        It is not part of the log before `add`, so that the file in front can be closed first. Raises OSError when
        there is none to be had.
        """
        base_offset = self.mapped[-1].end_offset if self.mapped else 0
        buffer = self._borrow(base_offset)
        try:
            mapped = self._allocation.take(base_offset)
        except BaseException:
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
        """Go on in a new file, the one in front being full."""
        if mapped.has_buffer:
            self._buffered.append(mapped)
        with self._list_lock:
            self.mapped = [*self.mapped, mapped]
        self.populate_last()

    def give_back(self, mapped: MappedFile) -> None:
        """Keep a new file, which was not added and not written to, for the next time."""
        self._return(mapped.take_buffer())
        self._allocation.give_back(mapped)

    def use_pool(self, pool: TransientStorePool) -> None:
        """Have new files borrow a buffer from here on."""
        self._pool = pool

    def populate_last(self) -> None:
        """Have the next record of the newest file ask for the pages behind it, if that is wanted."""
        if self.populate_ahead_bytes and self.mapped:
            self.mapped[-1].ask_for_pages(self._want_pages, beyond=self.mapped[-1].written_position)

    def _want_pages(self) -> None:
        if self.want_pages is not None:
            self.want_pages()

    def drop_behind(self, index: int) -> None:
        """Remove all files behind the one at `index`, last first, each durably before the next.

        A directory may lose any of several unlinks: an earlier file that goes while a later one stays is a gap.
        """
        while len(self.mapped) > index + 1:
            self._maker.remove(self.mapped.pop())

    def drop_first(self) -> MappedFile:
        """Take the first of several files out of the log and begin to close it; to remove it is the caller's.

        Who holds it goes on reading; nobody takes hold of it any more.
        """
        with self._list_lock:
            assert len(self.mapped) > 1, "the last file of a log stays"
            first, self.mapped = self.mapped[0], self.mapped[1:]
        first.close()
        return first

    def remove(self, mapped: MappedFile) -> None:
        """Remove a file that was taken out, durably. Raises OSError; it may be called again then."""
        self._maker.remove(mapped)

    def find(self, offset: int) -> MappedFile | None:
        """Return the file that holds a physical offset."""
        files = self.mapped  # close() takes the list away; it never empties this one
        number = (offset - files[0].base_offset) // self.file_bytes if files else -1
        if 0 <= number < len(files):
            file = files[number]
            if file.base_offset <= offset < file.base_offset + file.size_bytes:
                return file
        # a damaged log has gaps, and files that are too long
        return next((mapped for mapped in reversed(files) if mapped.holds(offset)), None)

    def commit(self, least_pages: int = 0) -> bool:
        """Write the buffers that are worth it to their files, oldest first; return whether anything moved.

        A full file gives its buffer back. Raises the OSError of a failed write; what was written before it counts.
        """
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
        """Make the committed bytes that are worth it durable, oldest file first; return the flushed offset.

        It never goes into a file before the one in front is durable to its end: a put that is rolling over has made
        the next file already and writes the blank any moment now. Raises the OSError of a failed sync; `flushed_where`
        then covers the files before it.
        """
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
        """Give up all mappings; nothing is written or synced here. A flush or commit under way ends first."""
        with self._commit_lock, self._flush_lock:
            given_up, self.mapped = self.mapped, []
            self._buffered.clear()
            for mapped in given_up:
                self._return(mapped.take_buffer())
                mapped.close()

    def check(self) -> None:
        """Assert what the class promises."""
        assert self.min_offset <= self.flushed_where <= self.committed_where <= self.max_offset
        for before, after in zip(self.mapped, self.mapped[1:], strict=False):
            assert before.end_offset == after.base_offset
            assert before.written_position == before.size_bytes
        for mapped in self.mapped:
            mapped.check()
