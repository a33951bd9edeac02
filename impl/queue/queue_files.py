"""A directory of equal-sized files named by 20 digits, for queues and their extensions.

At load, only the newest run of contiguous files counts. After a power loss a file may lie before a gap for two reasons:
expiry removed the files in the gap, or the files after the gap were new and one of them is lost. Only the log can tell.

The files are contiguous, and all but the last one are full. Positions are bytes from the begin of the first file that
the queue ever had. Bytes past `end_position` are zero. Source: `MappedFileQueue`, as `ConsumeQueue` uses it.
"""

import contextlib
import threading
from collections.abc import Callable

from tornpage.impl.config.policy import FlushPolicy
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.whole_files import WholeFiles
from tornpage.impl.log.loading import NO_OFFSET, Finding
from tornpage.impl.log.log_files import file_name
from tornpage.impl.queue.directory_tree import DirectoryTree

__all__ = ["POSITION_MAX", "QueueFiles"]

POSITION_MAX = 1 << 62
"""The greatest position at which a file may begin; the positions in it fit 64 bits."""


class QueueFiles:
    """Owns the files of one directory.

    One thread appends and cuts; any thread reads and flushes. The list of files is replaced and never changed in place,
    so a reader sees a consistent list. With `writable=False` nothing is changed on disk. New files are made in the
    folder of `top`, a directory at or above `directory`.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        tree: DirectoryTree,
        file_bytes: int,
        writable: bool,
        top: str = "",
        whole_files: WholeFiles | None = None,
        mapped_file: Callable[..., MappedFile] = MappedFile,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._files = files
        self._top = top or directory
        self._whole_files = WholeFiles(files) if whole_files is None else whole_files
        self._tree = tree
        self._writable = writable
        self._mapped_file = mapped_file
        self._names_pending = False
        self.directory = directory
        self.file_bytes = file_bytes
        self.mapped: tuple[MappedFile, ...] = ()
        self._before_gap: list[int] = []
        self._flush_lock = guard()
        self._incomplete: str | None = None

    # ---- loading -----------------------------------------------------------------------------------------------------

    def load(self, *, durable: bool) -> list[Finding]:
        """Map the newest run of contiguous files; all count as full until `cut`.

        Return the findings. Files of another size are removed from a writable directory, since their content comes from
        the log again. Files before a gap stay until `map_before_gap` or `drop_before_gap`. `durable` says that the last
        exit made everything durable. Raises OSError.
        """
        names, findings = self._queue_file_names()
        for base, size_bytes in sorted(names.items()):
            if not self._is_possible(base, size_bytes):
                findings += self._remove(base, size_bytes)
        self._before_gap = sorted(base for base in names if self._is_possible(base, names[base]))
        self._map_newest(durable=durable)
        findings += [self._alone(base) for base in self._before_gap]
        if names or self._files.stat(self.directory) is not None:  # a removed name may not be synced
            self._tree.note(self.directory, durable=durable)
            self._names_pending |= self._writable and not durable
        return findings

    def _map_newest(self, *, durable: bool) -> None:
        """Map the last contiguous run of the unmapped files. Raises OSError."""
        run: list[int] = []
        while self._before_gap and (not run or self._before_gap[-1] + self.file_bytes == run[0]):
            run.insert(0, self._before_gap.pop())
        mapped: list[MappedFile] = []
        try:
            for base in run:
                mapped.append(self._open(base, durable=durable))
        finally:
            self.mapped = tuple(mapped)

    def drop_before_gap(self) -> None:
        """Remove the files before a gap. Raises OSError."""
        while self._before_gap:
            self._remove(self._before_gap[-1], self.file_bytes)
            self._before_gap.pop()

    def _alone(self, base: int) -> Finding:
        path = f"{self.directory}/{file_name(base)}"
        return Finding("note", "queue_file_alone", path, base, f"{path} lies before a missing file")

    def _is_possible(self, base: int, size_bytes: int) -> bool:
        return size_bytes == self.file_bytes and not base % self.file_bytes and base <= POSITION_MAX

    def _queue_file_names(self) -> tuple[dict[int, int], list[Finding]]:
        """Return the sizes of queue files by first position, and a note for other entries."""
        names: dict[int, int] = {}
        findings = []
        for name in self._files.list_directory(self.directory) if self._files.stat(self.directory) else []:
            path = f"{self.directory}/{name}"
            stat = self._files.stat(path)
            if stat is not None and stat.kind == "file" and len(name) == 20 and name.isascii() and name.isdigit():
                names[int(name)] = stat.size_bytes
            else:
                findings.append(
                    Finding("note", "stray_file", path, NO_OFFSET, f"{path} is no consume queue file: ignored")
                )
        return names, findings

    def _remove(self, base: int, size_bytes: int) -> list[Finding]:
        """Remove a file that cannot be used; return a finding unless it was empty. Raises OSError."""
        path = f"{self.directory}/{file_name(base)}"
        if self._writable:
            self._files.unlink(path)
            self._names_pending = True
        if not size_bytes:
            return []
        message = f"{path} of {size_bytes} bytes is not used: the files of this queue have {self.file_bytes} bytes"
        return [Finding("note", "queue_file_size", path, base, message)]

    def _open(self, base: int, *, durable: bool) -> MappedFile:
        path = f"{self.directory}/{file_name(base)}"
        file = self._files.open(path, writable=self._writable)
        try:
            mapped = self._mapped(file, base, self.file_bytes)
        except BaseException:
            self._files.close(file)
            raise
        mapped.flushed_position = self.file_bytes if durable or not self._writable else 0
        return mapped

    def _mapped(self, file: OpenFile, base: int, written_position: int) -> MappedFile:
        return self._mapped_file(
            self._files, file, base_offset=base, written_position=written_position, mark="unit", kept_open=False
        )

    # ---- positions and reading -----------------------------------------------------------------------------------

    @property
    def first_position(self) -> int:
        """The position of the first file, 0 without files."""
        mapped = self.mapped
        return mapped[0].base_offset if mapped else 0

    @property
    def end_position(self) -> int:
        """The position of the next append, 0 without files."""
        mapped = self.mapped
        return mapped[-1].base_offset + mapped[-1].written_position if mapped else 0

    def at(self, position: int) -> tuple[MappedFile, int] | None:
        """Return the file that holds a position, and the position in that file.

        Returns None for a position outside the files.
        """
        mapped = self.mapped  # a snapshot: close() and cut() replace the list
        number, start = divmod(position - mapped[0].base_offset, self.file_bytes) if mapped else (-1, 0)
        return (mapped[number], start) if 0 <= number < len(mapped) else None

    def read(self, position: int, size_bytes: int) -> bytes:
        """Copy bytes, across the ends of files; fewer where the files end or were removed."""
        pieces: list[bytes] = []
        while size_bytes > 0 and (place := self.at(position)) is not None:
            mapped, start = place
            piece = _held(mapped, start, size_bytes)
            if len(piece) == size_bytes and not pieces:
                return piece  # the common case
            if not piece:
                break
            pieces.append(piece)
            position, size_bytes = position + len(piece), size_bytes - len(piece)
        return b"".join(pieces)

    # ---- writing -------------------------------------------------------------------------------------------------

    def begin(self, position: int) -> None:
        """Create the first file, which holds `position`. Raises OSError; then no file exists."""
        assert not self.mapped
        self._add(position // self.file_bytes * self.file_bytes)

    def append(self, data: bytes) -> None:
        """Copy bytes to the end; a full file is followed by a new one.

        The directory must have a file. Raises OSError if a file cannot be created; the bytes that fitted before it are
        then stored.
        """
        last = self.mapped[-1]
        room = last.size_bytes - last.written_position
        while len(data) > room:
            if room:
                last.append(bytearray(data[:room]))
                data = data[room:]
            self._add(last.end_offset)
            last, room = self.mapped[-1], self.file_bytes
        last.append(bytearray(data))

    def end_file(self, data: bytes) -> None:
        """Append data that ends the last file early; the file counts as full afterwards."""
        last = self.mapped[-1]
        last.append(bytearray(data))
        last.written_position = last.size_bytes

    def _add(self, base: int) -> None:
        """Create the next file, filled with zeros.

        Its name becomes durable with the first flush of its data.
        """
        self._tree.make(self.directory)
        self._names_pending = True  # the directory is new even if creating the file fails
        path = f"{self.directory}/{file_name(base)}"
        self._remove_incomplete()
        file = self._whole_files.make(path, top=self._top, fill=self._allocate, replaces=True)
        try:
            mapped = self._mapped(file, base, 0)
        except BaseException:
            self._files.close(file)
            self._incomplete = path
            with contextlib.suppress(OSError):
                self._remove_incomplete()
            raise
        self._names_pending = True  # again: a flush may have cleared it meanwhile
        self.mapped = (*self.mapped, mapped)  # last, so that a flush of the file also syncs its name

    def _allocate(self, file: OpenFile) -> None:
        self._files.allocate(file, self.file_bytes)

    def _remove_incomplete(self) -> None:
        """Remove a file after the last one that could not be mapped. Raises OSError."""
        if self._incomplete is not None:
            self._files.unlink(self._incomplete)
            self._incomplete = None

    def cut(self, position: int) -> bool:
        """Erase everything from a position on; return whether anything but zeros was there.

        Later files are removed, last first. The rest of the file is zeroed; the next flush of everything makes that
        durable. A directory opened read-only keeps all bytes on disk. Raises OSError.
        """
        with self._flush_lock:
            self._remove_incomplete()
            count = sum(mapped.base_offset < position for mapped in self.mapped)
            gone = self.mapped[count:]
            erased = any(mapped.first_nonzero(0) is not None for mapped in gone)
            for mapped in reversed(gone):
                self._unname(mapped)
                self.mapped = self.mapped[:-1]
                mapped.close()
            return (self._cut_file(self.mapped[count - 1], position) if count else False) or erased

    def _cut_file(self, mapped: MappedFile, position: int) -> bool:
        """Erase one file from a position on."""
        end = min(position - mapped.base_offset, mapped.size_bytes)
        dirty = mapped.first_nonzero(end)
        if dirty is not None and self._writable:
            mapped.zero(dirty, mapped.size_bytes - dirty)
            mapped.flushed_position = 0  # the zeros have to be flushed
        mapped.written_position = end
        mapped.flushed_position = min(mapped.flushed_position, end)
        return dirty is not None

    def rewrite_from(self, position: int) -> None:
        """Rewrite everything from a position on with equal bytes (`MappedFile.rewrite`).

        Raises OSError.
        """
        for mapped in self.mapped:
            if mapped.end_offset > position:
                mapped.rewrite(max(0, position - mapped.base_offset), mapped.written_position)

    def map_before_gap(self) -> bool:
        """Replace the files after a gap by the run of files before it.

        Return whether there was one. Raises OSError.
        """
        if not self._before_gap:
            return False
        self.cut(0)
        self._map_newest(durable=False)
        return True

    def drop_before(self, position: int) -> None:
        """Remove the files that end at or before a position, first ones first.

        The last file stays. Raises OSError.
        """
        with self._flush_lock:
            while len(self.mapped) > 1 and self.mapped[0].end_offset <= position:
                first = self.mapped[0]
                self._unname(first)
                self.mapped = self.mapped[1:]
                first.close()

    def _unname(self, mapped: MappedFile) -> None:
        """Unlink a file. Raises OSError; the file then stays in use."""
        if self._writable:
            self._files.unlink(mapped.path)
            self._names_pending = True

    # ---- durability ----------------------------------------------------------------------------------------------

    def flush(self, least_pages: int = 0) -> int:
        """Flush files in order by a page rule, then the names of new files.

        Return the position reached. Raises OSError if a sync fails; the files before it are then durable. Cost without
        unflushed data: one check.
        """
        with self._flush_lock:
            flushed = False
            for mapped in self._unflushed():
                if FlushPolicy.is_due(
                    written_position=mapped.written_position,
                    flushed_position=mapped.flushed_position,
                    least_pages=least_pages,
                    file_is_full=mapped.is_full,
                ):
                    mapped.flush()
                    flushed = True
            if self._names_pending and (flushed or least_pages == 0):
                self._sync_names()
            end = self.end_position  # before the files, since an append may follow
            unflushed = self._unflushed()
            return unflushed[0].base_offset + unflushed[0].flushed_position if unflushed else end

    def _unflushed(self) -> tuple[MappedFile, ...]:
        """Return the files from the first one that is not flushed to its end.

        All earlier ones are.
        """
        mapped = self.mapped
        start = len(mapped)
        while start and mapped[start - 1].flushed_position < mapped[start - 1].size_bytes:
            start -= 1
        return mapped[start:]

    def _sync_names(self) -> None:
        self._names_pending = False  # first, so that a file created meanwhile sets it again
        try:
            self._tree.sync(self.directory)
        except BaseException:
            self._names_pending = True
            raise

    def close(self) -> None:
        """Close all mappings without a write or sync. Waits for a running flush."""
        with self._flush_lock:
            given_up, self.mapped = self.mapped, ()
            for mapped in given_up:
                mapped.close()

    def check(self) -> None:
        """Assert the invariants of the class."""
        for before, after in zip(self.mapped, self.mapped[1:], strict=False):
            assert before.end_offset == after.base_offset
            assert before.is_full
        for mapped in self.mapped:
            mapped.check()


def _held(mapped: MappedFile, start: int, size_bytes: int) -> bytes:
    """Copy bytes of one file; none if the file is being closed."""
    if not mapped.hold():
        return b""
    try:
        return bytes(mapped.view[start : start + size_bytes])
    finally:
        mapped.release()
