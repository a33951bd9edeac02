"""The index of a store: the physical offsets at which a key may be.

Its files form a sequence in one directory, each of fixed size and named by its creation time; all but the last are
full. Entries are put in log order into the last file until it is full. Everything put is durable after the next
`flush`, file names included.

The index is derived from the log. `load` trusts sizes and names only; between `begin_reconcile` and `end_reconcile`
the puts required by the log decide what stays. A read-only store shows the files as they are. One thread at a time
calls `put`, reconciliation and `load`; any thread calls `candidates` and `flush`. Source: `IndexService`.
"""

import contextlib
import itertools
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from tornpage.impl.guards import MakeGuard
from tornpage.impl.index.index_entries import PLAIN_ENTRIES, IndexEntries
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import IndexFileProof, IndexHeader, IndexLayout, is_index_name, name_after
from tornpage.impl.index.index_reconcile import IndexReconcile
from tornpage.impl.io.files import Clock, Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.whole_files import WholeFiles
from tornpage.impl.log.loading import NO_OFFSET, Finding
from tornpage.impl.log.log_directories import directory_of
from tornpage.impl.message.dispatching import IndexPuts

__all__ = ["IndexService"]

_NO_HEADER = IndexHeader()


class IndexService:
    """Owns the directory and its files.

    `slots` and `entries_max` (entry 0 counted) fix the size of every file.
    """

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
        whole_files: WholeFiles | None = None,
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
        self._whole_files = WholeFiles(files) if whole_files is None else whole_files
        self._mapped_file = mapped_file
        self._index_files: tuple[IndexFile, ...] = ()
        self._last_name = ""
        self._has_unsynced_names = False
        self._incomplete: str | None = None
        self._flush_guard = guard()
        self._reconcile: IndexReconcile | None = None
        self._durable_timestamp = 0
        self._left_guard = guard()  # not `_flush_guard`: dispatch must not wait for a sync

    @property
    def index_files(self) -> tuple[IndexFile, ...]:
        """The files, oldest first; a snapshot."""
        return self._index_files

    @property
    def last_offset(self) -> int | None:
        """Physical offset of the record indexed last, None if there is none."""
        return self.last_update[1]

    @property
    def last_update(self) -> tuple[int | None, int | None]:
        """Store time (ms) and physical offset of the record indexed last; None without one."""
        index_files = self._index_files
        if not index_files:
            return None, None
        header = index_files[-1].header  # read once, since a put replaces it
        return (None, None) if header == _NO_HEADER else (header.end_timestamp, header.end_offset)

    # ---- opening -------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Map the existing files. One of another size is removed, or skipped in a read-only store.

        Raises OSError.
        """
        if self._files.stat(self._directory) is None:
            return
        for name in self._files.list_directory(self._directory):
            path = f"{self._directory}/{name}"
            stat = self._files.stat(path)
            if stat is None:
                continue
            if stat.kind != "file" or not is_index_name(name):
                self.findings.append(
                    Finding("note", "stray_file", path, NO_OFFSET, f"{path} is not an index file: ignored")
                )
            elif stat.size_bytes == self.layout.file_bytes:
                self._index_files += (self._open(path),)
                self._last_name = name
            else:
                self._last_name = name
                self._pass_over(path, stat.size_bytes)
        self._has_unsynced_names = self._writable  # a killed process may not have synced them

    def _pass_over(self, path: str, size_bytes: int) -> None:
        """Remove or skip a file of another size; an empty one gives no finding."""
        if size_bytes:
            fate = "removed" if self._writable else "not read"
            message = f"{path} has {size_bytes} bytes instead of {self.layout.file_bytes}: {fate}"
            self.findings.append(Finding("note", "index_rebuilt", path, NO_OFFSET, message))
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
        """Map a file of full size; the index file owns it from then on."""
        return self._index_file(
            self._files, file, layout=self.layout, entries=self._entries, mapped_file=self._mapped_file
        )

    # ---- making and removing -------------------------------------------------------------------------------------

    def _writable_file(self) -> IndexFile:
        """Return the file for the next put, creating one if needed. Raises OSError."""
        if not self._index_files or self._index_files[-1].is_full:
            inherited = self._index_files[-1].header.inherited() if self._index_files else IndexHeader()
            self._index_files += (self._make(inherited),)
        return self._index_files[-1]

    def _make(self, header: IndexHeader) -> IndexFile:
        """Create the next file.

        Raises OSError if that fails. Its remains are removed before the next creation or with the next flush.
        """
        self._remove_incomplete()
        if self._files.stat(self._directory) is None:
            self._files.make_directory(self._directory)
        self._last_name = name_after(self._last_name, self._clock())
        path = f"{self._directory}/{self._last_name}"
        self._has_unsynced_names = True
        file = self._whole_files.make(path, top=self._directory, fill=self._set_size)
        try:
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

    def _set_size(self, file: OpenFile) -> None:
        self._files.pwrite(file, b"\0", self.layout.file_bytes - 1)

    def _give_up(self, path: str) -> None:
        """Remove a file whose creation failed, now or later."""
        self._incomplete = path
        with contextlib.suppress(OSError):
            self._remove_incomplete()

    def _remove_incomplete(self) -> None:
        """Remove the remains of a file whose creation failed, unless they are gone.

        Raises OSError.
        """
        with self._left_guard:
            if self._incomplete is not None:
                with contextlib.suppress(FileNotFoundError):
                    self._files.unlink(self._incomplete)
                self._incomplete = None

    def _remove(self, index_file: IndexFile) -> None:
        """Remove the last file."""
        self._files.unlink(index_file.path)
        self._index_files = self._index_files[:-1]
        index_file.close()

    def drop_expired(self, log_min: int) -> int:
        """Remove the first files whose last record has expired; return how many. Raises OSError.

        The last file stays. Each removal is durable before the next, since a sequence with a gap would be rebuilt. No
        put may run meanwhile. Source: `IndexService.deleteExpiredFile`.
        """
        dropped = 0
        while len(self._index_files) > 1 and self._index_files[0].header.end_offset < log_min:
            with self._flush_guard:
                first = self._index_files[0]
                self._files.unlink(first.path)  # first, so that a failed removal is tried again
                self._index_files = self._index_files[1:]
                first.close()
                try:
                    self._files.sync_directory(self._directory)
                except OSError:
                    self._has_unsynced_names = True  # the next flush makes the removal durable
                    raise
            dropped += 1
        return dropped

    # ---- reconciling ---------------------------------------------------------------------------------------------

    def begin_reconcile(
        self, from_offset: int, *, durable_timestamp: int = 0, proofs: Sequence[IndexFileProof] | None = None
    ) -> None:
        """Begin to compare with the log from an offset on; consistent entries before it stay.

        `durable_timestamp` is the store time in milliseconds up to which the checkpoint says the index is durable: a
        missing put before it gives a finding. With `proofs`, exactly the entries that these count come before the
        offset.
        """
        self._durable_timestamp = durable_timestamp
        proven = None
        if proofs is not None:
            proven = {f"{directory_of(self._directory)}/{proof.path}": proof for proof in proofs}
        self._reconcile = IndexReconcile(
            self._index_files, entries=self._entries, from_offset=from_offset, proven=proven, remove=self._remove
        )

    def reconcile(self, puts: IndexPuts) -> None:
        """Make the index hold the next puts of the log, in log order.

        Raises OSError if the disk has no room.
        """
        assert self._reconcile is not None
        start = self._reconcile.match(puts)
        if start < len(puts.hashes):
            self._note_missing(puts, start)
            self._append(puts, start)

    def end_reconcile(self) -> bool:
        """Erase what the log does not require; return whether anything that counted was rebuilt.

        Raises OSError.
        """
        assert self._reconcile is not None
        self._reconcile.settle()
        findings, self._reconcile = self._reconcile.findings, None
        self.findings += findings
        return bool(findings)

    def _note_missing(self, puts: IndexPuts, start: int) -> None:
        """Note once that an entry that should be durable is missing."""
        assert self._reconcile is not None
        if not self._durable_timestamp or self._reconcile.findings:
            return
        if min(puts.store_timestamps[start:]) >= self._durable_timestamp:
            return
        message = f"{self._directory} had no entry for a durable record at {puts.offsets[start]}: rebuilt"
        self._reconcile.findings.append(
            Finding("note", "index_rebuilt", self._directory, int(puts.offsets[start]), message)
        )

    # ---- putting -------------------------------------------------------------------------------------------------

    def put(self, puts: IndexPuts) -> None:
        """Put entries in log order.

        The same puts may then be repeated, with more after them: entries that exist are not doubled. Raises OSError if
        the disk has no room for another file or entry.
        """
        self._append(puts, self._present(puts))

    def _append(self, puts: IndexPuts, start: int) -> None:
        while start < len(puts.hashes):
            start = self._writable_file().put(puts, start)

    def _present(self, puts: IndexPuts) -> int:
        """Return how many of the puts exist already.

        They are of earlier records, or at the end of the index.
        """
        last_offset = self.last_offset
        if last_offset is None or not len(puts.offsets) or puts.offsets[0] > last_offset:
            return 0
        start = bisect_left(puts.offsets, last_offset)
        for code in self._hashes_at(last_offset):
            if start == len(puts.offsets) or (puts.hashes[start], puts.offsets[start]) != (code, last_offset):
                break
            start += 1
        return start

    def _hashes_at(self, offset: int) -> list[int]:
        """Return the hashes of the last entries of the record at an offset, in put order."""
        hashes: list[int] = []
        for index_file in reversed(self._index_files):
            for number in range(index_file.header.next_number - 1, 0, -1):
                code, found, _, _ = index_file.entry(number)
                if found != offset:
                    return hashes[::-1]
                hashes.append(code)
        return hashes[::-1]

    # ---- reading -------------------------------------------------------------------------------------------------

    def candidates(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Yield the physical offsets of a hash, newest first.

        No record stored in [begin_ms, end_ms] is missing. Others may be among them (another key of the same hash, a
        time just outside, an expired record), so the caller must check the record. Consecutive equal offsets are
        yielded once. Cost: the slot's chain in every file whose times overlap the window.
        """
        last = None
        for index_file in reversed(self._index_files):
            for offset in index_file.offsets_of(code, begin_ms, end_ms):
                if offset != last:
                    last = offset
                    yield offset

    # ---- life ----------------------------------------------------------------------------------------------------

    def flush(self, least_pages: int = 0) -> int:
        """Flush files by a page rule, oldest first, then the names of new ones.

        With 0 pages everything is flushed. Returns the number of entries that are not durable yet. Raises OSError;
        after a failed sync of a file, at every call.
        """
        with self._flush_guard:
            self._remove_incomplete()
            flushed = [index_file.flush(least_pages) for index_file in self._index_files]
            if self._has_unsynced_names and (any(flushed) or least_pages == 0):
                self._sync_names()
            return sum(index_file.waiting for index_file in self._index_files)

    def _sync_names(self) -> None:
        self._has_unsynced_names = False  # before the sync, so that a file created meanwhile sets it again
        try:
            self._files.sync_directory(self._directory)
            self._files.sync_directory(directory_of(self._directory))
        except BaseException:
            self._has_unsynced_names = True
            raise

    def close(self) -> None:
        """Unmap and close all files without a sync."""
        index_files, self._index_files = self._index_files, ()
        for index_file in index_files:
            index_file.close()

    def check(self) -> None:
        """Assert the invariants.

        Names ascend, only the last file has room, offsets do not decrease.
        """
        index_files = self._index_files
        for index_file in index_files:
            index_file.check()
        for before, after in itertools.pairwise(index_files):
            assert before.path < after.path
            assert before.is_full
            assert before.header.end_offset <= after.header.begin_offset
