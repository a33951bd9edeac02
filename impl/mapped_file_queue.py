"""The commit log's files in order: rolling to a new one, finding one, flushing them front to back.

The files are contiguous: each begins where the one before it ends. `min_offset <= flushed_where <= max_offset`, all
physical offsets, none going down while the log is open. Source: `MappedFileQueue`.
"""

import contextlib
import threading
from collections.abc import Callable

from impl.files import Files, OpenFile
from impl.mapped_file import MappedFile

__all__ = ["MappedFileFactory", "MappedFileQueue", "file_name"]

MappedFileFactory = Callable[..., MappedFile]


def file_name(base_offset: int) -> str:
    """Return the name of the file that begins at a physical offset: 20 digits. Source: `UtilAll.offset2FileName`."""
    return f"{base_offset:020d}"


class MappedFileQueue:
    """Owns the list of mapped files and the flushed watermark."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        file_bytes: int,
        mapped_file: MappedFileFactory,
        populate_ahead_bytes: int = 0,
    ) -> None:
        self._populate_ahead_bytes = populate_ahead_bytes
        self._files = files
        self._mapped_file = mapped_file
        self._flush_lock = threading.Lock()
        self.directory = directory
        self.file_bytes = file_bytes
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
        return mapped[-1].base_offset + mapped[-1].written_position if mapped else 0

    def adopt(self, base_offset: int, *, writable: bool) -> None:
        """Map a file found at load behind those already there."""
        file = self._files.open(f"{self.directory}/{file_name(base_offset)}", writable=writable)
        try:
            mapped = self._mapped_file(self._files, file, base_offset=base_offset, written_position=0)
        except BaseException:
            self._files.close(file)
            raise
        mapped.written_position = mapped.size_bytes  # until recovery says better, as in RocketMQ
        self.mapped.append(mapped)

    def append_file(self) -> MappedFile:
        """Create the next file, durable in size and name before anything is written to it.

        Raises OSError when the disk refuses; then the directory is as before.
        """
        base_offset = self.mapped[-1].end_offset if self.mapped else 0
        path = f"{self.directory}/{file_name(base_offset)}"
        file = self._files.create(path)
        try:
            self._files.allocate(file, self.file_bytes)
            self._make_durable(file)
            mapped = self._mapped_file(self._files, file, base_offset=base_offset, written_position=0)
        except BaseException:
            self._files.close(file)
            with contextlib.suppress(OSError):  # a name that stays is an empty newest file; the next open removes it
                self._files.unlink(path)
            raise
        self.mapped.append(mapped)
        self.populate_last()
        return mapped

    def populate_last(self) -> None:
        """Have the pages of the newest file ready ahead of the records, if that is wanted."""
        if self._populate_ahead_bytes and self.mapped:
            self.mapped[-1].populate_ahead(self._populate_ahead_bytes)

    def _make_durable(self, file: OpenFile) -> None:
        self._files.sync(file)
        self._files.sync_directory(self.directory)

    def drop_behind(self, index: int) -> None:
        """Remove all files behind the one at `index`, last first, each durably before the next.

        A directory may lose any of several unlinks: an earlier file that goes while a later one stays is a gap.
        """
        while len(self.mapped) > index + 1:
            mapped = self.mapped.pop()
            mapped.close()
            self._files.unlink(mapped.path)
            self._files.sync_directory(self.directory)

    def find(self, offset: int) -> MappedFile | None:
        """Return the file that holds a physical offset."""
        files = self.mapped  # close() takes the list away; it never empties this one
        number = (offset - files[0].base_offset) // self.file_bytes if files else -1
        if 0 <= number < len(files) and files[number].holds(offset):
            return files[number]
        return next((mapped for mapped in files if mapped.holds(offset)), None)  # a damaged log has gaps

    def flush(self) -> int:
        """Make everything written so far durable, oldest file first; return the flushed offset.

        It never goes into a file before the one in front is durable to its end: a put that is rolling over has made
        the next file already and writes the blank any moment now. Raises the OSError of a failed sync; `flushed_where`
        then covers the files before it.
        """
        with self._flush_lock:
            start = self.find(self.flushed_where)
            for mapped in self.mapped[self.mapped.index(start) :] if start is not None else []:
                mapped.flush()
                self.flushed_where = mapped.base_offset + mapped.flushed_position
                if mapped.flushed_position < mapped.size_bytes:
                    break
            return self.flushed_where

    def close(self) -> None:
        """Give up all mappings; nothing is synced here. A flush under way ends first."""
        with self._flush_lock:
            given_up, self.mapped = self.mapped, []
            for mapped in given_up:
                mapped.close()

    def check(self) -> None:
        """Assert what the class promises."""
        assert self.min_offset <= self.flushed_where <= self.max_offset
        for before, after in zip(self.mapped, self.mapped[1:], strict=False):
            assert before.end_offset == after.base_offset
            assert before.written_position == before.size_bytes
        for mapped in self.mapped:
            mapped.check()
