"""What lies in a directory of equal files named by 20 digits, before a byte of it is believed.

What counts are the newest files that follow each other. Behind a power loss a file may lie in front of a gap for two
reasons: a clean-up had removed it, or those behind the gap were new and one between them is lost. The log knows which.
"""

from collections.abc import Callable

from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_files import file_name
from tornpage.impl.queue.directory_tree import DirectoryTree

__all__ = ["POSITION_MAX", "QueueDirectory"]

POSITION_MAX = 1 << 62
"""No file begins behind it; the positions in it fit 64 bits."""


class QueueDirectory:
    """Finds and maps the files of one directory; `mapped` are those that count, first ones first."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        tree: DirectoryTree,
        file_bytes: int,
        writable: bool,
        mapped_file: Callable[..., MappedFile] = MappedFile,
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
