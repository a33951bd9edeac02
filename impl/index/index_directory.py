"""The files of the index: a row in one directory, each with its fixed size, named by the time it was made.

All but the last are full. `load` believes sizes and names only; a store that may not write shows the files as they are.
Files are made, removed and loaded by one thread at a time; `flush` comes from any. Source: `IndexService`.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable

from tornpage.impl.guards import MakeGuard
from tornpage.impl.index.index_entries import PLAIN_ENTRIES, IndexEntries
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import IndexHeader, IndexLayout, is_index_name, name_after
from tornpage.impl.io.files import Clock, Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_directories import directory_of

__all__ = ["IndexDirectory"]


class IndexDirectory:
    """Owns the directory. `slots` and `entries_max` (entry 0 counted) fix the size of every file."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        slots: int,
        entries_max: int,
        clock: Clock,
        writable: bool,
        entries: IndexEntries = PLAIN_ENTRIES,
        index_file: Callable[..., IndexFile] = IndexFile,
        mapped_file: Callable[..., MappedFile] = MappedFile,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self.findings: list[Finding] = []
        self.layout = IndexLayout(slots, entries_max)
        self._files = files
        self._directory = directory
        self._clock = clock
        self._writable = writable
        self._entries = entries
        self._index_file = index_file
        self._mapped_file = mapped_file
        self._index_files: tuple[IndexFile, ...] = ()
        self._last_name = ""
        self._has_unsynced_names = False
        self._half_made: str | None = None
        self._flush_guard = guard()
        self._left_guard = guard()  # not the one above: dispatch waits for no sync

    @property
    def index_files(self) -> tuple[IndexFile, ...]:
        """The files, oldest first; a snapshot."""
        return self._index_files

    # ---- opening -------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Map the files there are. One of another size goes, or is passed over where nothing may be written."""
        if self._files.stat(self._directory) is None:
            return
        for name in self._files.list_directory(self._directory):
            path = f"{self._directory}/{name}"
            stat = self._files.stat(path)
            if stat is None:
                continue
            if stat.kind != "file" or not is_index_name(name):
                self.findings.append(Finding("note", "stray_file", path, -1, f"{path} is no index file: ignored"))
            elif stat.size_bytes == self.layout.file_bytes:
                self._index_files += (self._open(path),)
                self._last_name = name
            else:
                self._last_name = name
                self._pass_over(path, stat.size_bytes)
        self._has_unsynced_names = self._writable  # a killed process may have left them so

    def _pass_over(self, path: str, size_bytes: int) -> None:
        """Remove a file that was made for other limits or never finished; an empty one never held anything."""
        if size_bytes:
            fate = "removed" if self._writable else "not read"
            message = f"{path} has {size_bytes} bytes instead of {self.layout.file_bytes}: {fate}"
            self.findings.append(Finding("note", "index_rebuilt", path, -1, message))
        if self._writable:
            self._files.unlink(path)

    def _open(self, path: str) -> IndexFile:
        file = self._files.open(path, writable=self._writable)
        try:
            return self._mapped(file)
        except BaseException:
            self._files.close(file)
            raise

    def _mapped(self, file: OpenFile) -> IndexFile:
        """Map a file of full size, which belongs to the index file from then on."""
        return self._index_file(
            self._files, file, layout=self.layout, entries=self._entries, mapped_file=self._mapped_file
        )

    # ---- making and removing -------------------------------------------------------------------------------------

    def _writable_file(self) -> IndexFile:
        """Return the file that takes the next put, a new one if need be."""
        if not self._index_files or self._index_files[-1].is_full:
            inherited = self._index_files[-1].header.inherited() if self._index_files else IndexHeader()
            self._index_files += (self._make(inherited),)
        return self._index_files[-1]

    def _make(self, header: IndexHeader) -> IndexFile:
        """Make the next file. Raises OSError when the disk refuses; what remains of it then is removed before another
        one is made, or with the next flush.
        """
        self._remove_half_made()
        if self._files.stat(self._directory) is None:
            self._files.make_directory(self._directory)
        self._last_name = name_after(self._last_name, self._clock())
        path = f"{self._directory}/{self._last_name}"
        self._has_unsynced_names = True
        file = self._files.create(path)
        try:
            self._files.pwrite(file, b"\0", self.layout.file_bytes - 1)
            index_file = self._mapped(file)
        except BaseException:
            self._files.close(file)
            self._give_up(path)
            raise
        try:
            index_file.begin(header)
        except BaseException:
            index_file.close()
            self._give_up(path)
            raise
        return index_file

    def _give_up(self, path: str) -> None:
        """Remove a file that could not be made, or have it removed later."""
        self._half_made = path
        with contextlib.suppress(OSError):
            self._remove_half_made()

    def _remove_half_made(self) -> None:
        """Remove what is left of a file that could not be made, unless somebody has. Raises OSError."""
        with self._left_guard:
            if self._half_made is not None:
                with contextlib.suppress(FileNotFoundError):
                    self._files.unlink(self._half_made)
                self._half_made = None

    def _remove(self, index_file: IndexFile) -> None:
        """Take the last file away."""
        self._files.unlink(index_file.path)
        self._index_files = self._index_files[:-1]
        index_file.close()

    def drop_expired(self, log_min: int) -> int:
        """Remove the files in front whose last record lies in front of the log; return how many. Raises OSError.

        The last file stays. Each is gone durably before the next: a row with a gap would be made anew. Nobody puts
        meanwhile. Source: `IndexService.deleteExpiredFile`.
        """
        dropped = 0
        while len(self._index_files) > 1 and self._index_files[0].header.end_offset < log_min:
            with self._flush_guard:
                first = self._index_files[0]
                self._files.unlink(first.path)  # first: one that cannot be removed is asked for again
                self._index_files = self._index_files[1:]
                first.close()
                self._files.sync_directory(self._directory)
            dropped += 1
        return dropped

    # ---- life ----------------------------------------------------------------------------------------------------

    def flush(self, least_pages: int = 0) -> int:
        """Make what is worth it durable: files, oldest first, then the names of new ones. 0 pages means everything.

        Returns how many entries still wait. Raises OSError, of a failed sync of a file ever after.
        """
        with self._flush_guard:
            self._remove_half_made()
            flushed = [index_file.flush(least_pages) for index_file in self._index_files]
            if self._has_unsynced_names and (any(flushed) or least_pages == 0):
                self._sync_names()
            return sum(index_file.waiting for index_file in self._index_files)

    def _sync_names(self) -> None:
        self._has_unsynced_names = False  # before the call: a name that arrives meanwhile is for the next one
        try:
            self._files.sync_directory(self._directory)
            self._files.sync_directory(directory_of(self._directory))
        except OSError:
            self._has_unsynced_names = True
            raise

    def close(self) -> None:
        """Unmap and close all files; nothing is synced."""
        index_files, self._index_files = self._index_files, ()
        for index_file in index_files:
            index_file.close()

    def check(self) -> None:
        """Assert what holds between calls: names ascend, only the last file has room, offsets do not go back."""
        index_files = self._index_files
        for index_file in index_files:
            index_file.check()
        for before, behind in itertools.pairwise(index_files):
            assert before.path < behind.path
            assert before.is_full
            assert before.header.end_offset <= behind.header.begin_offset
