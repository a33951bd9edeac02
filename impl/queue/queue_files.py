"""One directory of equal files named by 20 digits, made when they are needed: consume queues and their extensions.

What counts at load are the newest files that follow each other. Behind a power loss a file may lie in front of a gap
for two reasons: a clean-up had removed it, or those behind the gap were new and one between them is lost. The log knows
which.

The files are contiguous and all but the last one are full. Positions are bytes from the begin of the first file that
the queue ever had. Bytes behind `end_position` are zero. Source: `MappedFileQueue`, as `ConsumeQueue` uses it.
"""

import contextlib
import threading
from collections.abc import Callable

from tornpage.impl.config.policy import FlushPolicy
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_files import file_name
from tornpage.impl.queue.directory_tree import DirectoryTree

__all__ = ["POSITION_MAX", "QueueFiles"]

POSITION_MAX = 1 << 62
"""No file begins behind it; the positions in it fit 64 bits."""


class QueueFiles:
    """Owns the files of one directory. One thread appends and cuts; reads and flushes come from any.

    The list of files is replaced and never changed, so a reader that has it sees files that belong together.
    `writable=False` looks at what is there and changes nothing.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        tree: DirectoryTree,
        file_bytes: int,
        writable: bool,
        mapped_file: Callable[..., MappedFile] = MappedFile,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._files = files
        self._tree = tree
        self._writable = writable
        self._mapped_file = mapped_file
        self._names_pending = False
        self.directory = directory
        self.file_bytes = file_bytes
        self.mapped: tuple[MappedFile, ...] = ()
        self._in_front: list[int] = []
        self._flush_lock = guard()
        self._half_made: str | None = None

    # ---- loading -----------------------------------------------------------------------------------------------------

    def load(self, *, durable: bool) -> list[Finding]:
        """Map the newest files that follow each other; all count as full until `cut`. Raises OSError.

        Files of another size are removed from a writable directory: what they held comes from the log. Those in front
        of a gap stay until `go_back` or `drop_in_front`. `durable` says that the last opener made everything durable.
        """
        names, findings = self._queue_file_names()
        for base, size_bytes in sorted(names.items()):
            if not self._is_possible(base, size_bytes):
                findings += self._remove(base, size_bytes)
        self._in_front = sorted(base for base in names if self._is_possible(base, names[base]))
        self._map_newest(durable=durable)
        findings += [self._alone(base) for base in self._in_front]
        if names or self._files.stat(self.directory) is not None:  # names may have gone that are not synced
            self._tree.note(self.directory, durable=durable)
            self._names_pending |= self._writable and not durable
        return findings

    def _map_newest(self, *, durable: bool) -> None:
        """Map the last files without a gap of those that are not mapped. Raises OSError."""
        run: list[int] = []
        while self._in_front and (not run or self._in_front[-1] + self.file_bytes == run[0]):
            run.insert(0, self._in_front.pop())
        mapped: list[MappedFile] = []
        try:
            for base in run:
                mapped.append(self._open(base, durable=durable))
        finally:
            self.mapped = tuple(mapped)

    def drop_in_front(self) -> None:
        """Remove the files in front of a gap. Raises OSError."""
        while self._in_front:
            self._remove(self._in_front[-1], self.file_bytes)
            self._in_front.pop()

    def _alone(self, base: int) -> Finding:
        path = f"{self.directory}/{file_name(base)}"
        return Finding("note", "queue_file_alone", path, base, f"{path} lies in front of a missing file")

    def _is_possible(self, base: int, size_bytes: int) -> bool:
        return size_bytes == self.file_bytes and not base % self.file_bytes and base <= POSITION_MAX

    def _queue_file_names(self) -> tuple[dict[int, int], list[Finding]]:
        """Return size by first position of what is named like a queue file, and a note for everything else."""
        names: dict[int, int] = {}
        findings = []
        for name in self._files.list_directory(self.directory) if self._files.stat(self.directory) else []:
            path = f"{self.directory}/{name}"
            stat = self._files.stat(path)
            if stat is not None and stat.kind == "file" and len(name) == 20 and name.isascii() and name.isdigit():
                names[int(name)] = stat.size_bytes
            else:
                findings.append(Finding("note", "stray_file", path, -1, f"{path} is no consume queue file: ignored"))
        return names, findings

    def _remove(self, base: int, size_bytes: int) -> list[Finding]:
        """Remove a file that cannot be used, and say so unless it never held anything."""
        path = f"{self.directory}/{file_name(base)}"
        if self._writable:
            self._files.unlink(path)
            self._names_pending = True
        if not size_bytes:
            return []
        message = f"{path} of {size_bytes} bytes is no file of a queue with files of {self.file_bytes} bytes: not used"
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
        """Where the first file begins, 0 without files."""
        mapped = self.mapped
        return mapped[0].base_offset if mapped else 0

    @property
    def end_position(self) -> int:
        """Where the next append goes, 0 without files."""
        mapped = self.mapped
        return mapped[-1].base_offset + mapped[-1].written_position if mapped else 0

    def at(self, position: int) -> tuple[MappedFile, int] | None:
        """Return the file that holds a position, and the position in that file."""
        mapped = self.mapped  # close() and cut() take the list away; they never change this one
        number, start = divmod(position - mapped[0].base_offset, self.file_bytes) if mapped else (-1, 0)
        return (mapped[number], start) if 0 <= number < len(mapped) else None

    def read(self, position: int, size_bytes: int) -> bytes:
        """Copy bytes, over the ends of files; fewer where there is no file (any more)."""
        pieces: list[bytes] = []
        while size_bytes > 0 and (place := self.at(position)) is not None:
            mapped, start = place
            piece = _held(mapped, start, size_bytes)
            if len(piece) == size_bytes and not pieces:
                return piece  # as nearly always
            if not piece:
                break
            pieces.append(piece)
            position, size_bytes = position + len(piece), size_bytes - len(piece)
        return b"".join(pieces)

    # ---- writing -------------------------------------------------------------------------------------------------

    def begin(self, position: int) -> None:
        """Make the first file: the one that holds a position. Raises OSError; there is no file then."""
        assert not self.mapped
        self._add(position // self.file_bytes * self.file_bytes)

    def append(self, data: bytes) -> None:
        """Copy bytes behind the end of a directory that has files, rolling over where a file is full.

        Raises OSError when a file cannot be made; what fitted before it is there then.
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
        """Append what ends the last file before its end; the file is full afterwards."""
        last = self.mapped[-1]
        last.append(bytearray(data))
        last.written_position = last.size_bytes

    def _add(self, base: int) -> None:
        """Make the next file, of zeros. Its name is durable after the first flush of what is in it."""
        self._tree.make(self.directory)
        self._names_pending = True  # of the directory, be it that the file is refused
        path = f"{self.directory}/{file_name(base)}"
        if self._files.stat(path) is not None:  # what is left of an attempt that failed
            self._files.unlink(path)
        self._half_made = None
        file = self._files.create(path)
        try:
            self._files.allocate(file, self.file_bytes)
            mapped = self._mapped(file, base, 0)
        except BaseException:
            self._files.close(file)
            self._half_made = path
            with contextlib.suppress(OSError):
                self._remove_half_made()
            raise
        self._names_pending = True  # again: a flush may have come meanwhile
        self.mapped = (*self.mapped, mapped)  # last: whoever flushes the file knows of its name

    def _remove_half_made(self) -> None:
        """Remove the file behind the last one that could not be made. Raises OSError."""
        if self._half_made is not None:
            self._files.unlink(self._half_made)
            self._half_made = None

    def cut(self, position: int) -> bool:
        """Keep what lies in front of a position; return whether anything but zeros was behind it. Raises OSError.

        Files behind it go, last first; the rest of the file is zeroed, durably with the next thorough flush. A
        directory that may not be changed keeps everything.
        """
        with self._flush_lock:
            self._remove_half_made()
            count = sum(mapped.base_offset < position for mapped in self.mapped)
            gone = self.mapped[count:]
            erased = any(mapped.first_nonzero(0) is not None for mapped in gone)
            for mapped in reversed(gone):
                self._unname(mapped)
                self.mapped = self.mapped[:-1]
                mapped.close()
            return (self._cut_file(self.mapped[count - 1], position) if count else False) or erased

    def _cut_file(self, mapped: MappedFile, position: int) -> bool:
        """Keep of one file what lies in front of a position."""
        end = min(position - mapped.base_offset, mapped.size_bytes)
        dirty = mapped.first_nonzero(end)
        if dirty is not None and self._writable:
            mapped.zero(dirty, mapped.size_bytes - dirty)
            mapped.flushed_position = 0  # the zeros are news
        mapped.written_position = end
        mapped.flushed_position = min(mapped.flushed_position, end)
        return dirty is not None

    def write_again(self, position: int) -> None:
        """Write what lies behind a position once more as it is (`MappedFile.rewrite`). Raises OSError."""
        for mapped in self.mapped:
            if mapped.end_offset > position:
                mapped.rewrite(max(0, position - mapped.base_offset), mapped.written_position)

    def go_back(self) -> bool:
        """Take the files in front of a gap in the place of those behind it, which go; return whether there are any.

        Raises OSError.
        """
        if not self._in_front:
            return False
        self.cut(0)
        self._map_newest(durable=False)
        return True

    def drop_before(self, position: int) -> None:
        """Remove the files that end at or before a position, first ones first; the last file stays. Raises OSError."""
        with self._flush_lock:
            while len(self.mapped) > 1 and self.mapped[0].end_offset <= position:
                first = self.mapped[0]
                self._unname(first)
                self.mapped = self.mapped[1:]
                first.close()

    def _unname(self, mapped: MappedFile) -> None:
        """Take a file's name away. Raises OSError: it is one of the files then as before."""
        if self._writable:
            self._files.unlink(mapped.path)
            self._names_pending = True

    # ---- durability ----------------------------------------------------------------------------------------------

    def flush(self, least_pages: int = 0) -> int:
        """Make what is worth it durable, front to back, then the names of new files; return where it ends.

        Raises the OSError of a failed sync; files in front of it are durable then. Cost without news: one look.
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
            unflushed = self._unflushed()
            return unflushed[0].base_offset + unflushed[0].flushed_position if unflushed else self.end_position

    def _unflushed(self) -> tuple[MappedFile, ...]:
        """Return the files from the first one on that is not durable to its end; all in front of it are."""
        mapped = self.mapped
        start = len(mapped)
        while start and mapped[start - 1].flushed_position < mapped[start - 1].size_bytes:
            start -= 1
        return mapped[start:]

    def _sync_names(self) -> None:
        self._names_pending = False  # first: a file that comes meanwhile is none of this sync's
        try:
            self._tree.sync(self.directory)
        except BaseException:
            self._names_pending = True
            raise

    def close(self) -> None:
        """Give up all mappings; nothing is written or synced here. A flush under way ends first."""
        with self._flush_lock:
            given_up, self.mapped = self.mapped, ()
            for mapped in given_up:
                mapped.close()

    def check(self) -> None:
        """Assert what the class promises."""
        for before, after in zip(self.mapped, self.mapped[1:], strict=False):
            assert before.end_offset == after.base_offset
            assert before.is_full
        for mapped in self.mapped:
            mapped.check()


def _held(mapped: MappedFile, start: int, size_bytes: int) -> bytes:
    """Copy bytes of one file, none of one that is being closed."""
    if not mapped.hold():
        return b""
    try:
        return bytes(mapped.view[start : start + size_bytes])
    finally:
        mapped.release()
