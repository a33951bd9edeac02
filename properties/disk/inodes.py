"""The live files of a recorded disk: content, open files, and names."""

import errno
import os
from functools import lru_cache

from tornpage.impl.io.files import FileStat, OpenFile
from tornpage.properties.disk.disk import parent_of
from tornpage.properties.disk.tracking import Tracked

__all__ = ["Inode", "Names", "RecordedFile", "RecordedMapping", "recorded", "refusal", "writable"]


_DIRECTORY = FileStat("directory", 0)


@lru_cache(maxsize=256)
def _file_of(size_bytes: int) -> FileStat:
    """Return the stat of a file of this size.

    Cached, because there are few sizes and thousands of calls.
    """
    return FileStat("file", size_bytes)


@lru_cache(maxsize=1 << 14)
def _above(path: str) -> tuple[str, str]:
    """Return the parent directory of a path, and its name there."""
    above, _, name = path.rpartition("/")
    return above, name


class Inode:
    """Live content of one file."""

    __slots__ = ("allocated_bytes", "links", "locked", "mappings", "number", "opens", "tracked")

    def __init__(self, number: int, tracked: Tracked) -> None:
        self.number = number
        self.tracked = tracked
        self.allocated_bytes = len(tracked.buffer)
        self.links = 1
        self.opens = 0
        self.mappings = 0
        self.locked = False


class RecordedFile:
    """An open file, until it is closed."""

    __slots__ = ("holds_lock", "inode", "is_closed", "path", "writable")

    def __init__(self, path: str, inode: Inode, *, writable: bool) -> None:
        self.path = path
        self.inode = inode
        self.writable = writable
        self.holds_lock = self.is_closed = False


class RecordedMapping:
    """A mapping: a view of the live content."""

    __slots__ = ("inode", "view")

    def __init__(self, inode: Inode, view: memoryview) -> None:
        self.inode = inode
        self.view = view


def recorded(file: OpenFile) -> RecordedFile:
    """Return an open file as one of this disk.

    Raises EBADF if it was closed, as the kernel does.
    """
    assert isinstance(file, RecordedFile)
    if file.is_closed:
        raise refusal(errno.EBADF, file.path)
    return file


def writable(file: OpenFile) -> RecordedFile:
    """Return an open file of this disk.

    Raises EBADF if it was opened for reading or was closed.
    """
    found = recorded(file)
    if not found.writable:
        raise refusal(errno.EBADF, file.path)
    return found


def refusal(code: int, path: str) -> OSError:
    """Return the error that a real disk raises; OSError picks the class for the number."""
    return OSError(code, os.strerror(code), path)


class Names:
    """Directories and files by path, with the errors for wrong paths."""

    __slots__ = ("_inside", "directories", "files")

    def __init__(self, directories: set[str], files: dict[str, Inode]) -> None:
        self.directories = directories
        self.files = files
        self._inside: dict[str, set[str]] = {}
        for path in (*files, *directories):
            self._stands(path)

    def _stands(self, path: str) -> None:
        above, name = _above(path)
        if name:
            inside = self._inside.get(above)
            if inside is None:
                self._inside[above] = {name}
            else:
                inside.add(name)

    def _falls(self, path: str) -> None:
        above, name = _above(path)
        self._inside[above].discard(name)

    def add(self, path: str, inode: Inode) -> None:
        """Set the file of a name, whatever it was before."""
        self.files[path] = inode
        self._stands(path)

    def remove(self, path: str) -> Inode:
        """Remove the name of a file; return the file."""
        self._falls(path)
        return self.files.pop(path)

    def add_directory(self, path: str) -> None:
        """Add a new directory."""
        self.directories.add(path)
        self._stands(path)

    def find(self, path: str) -> Inode:
        """Return the file. Raises EISDIR, ENOENT or ENOTDIR."""
        if path in self.directories:
            raise refusal(errno.EISDIR, path)
        inode = self.files.get(path)
        if inode is None:
            raise self._missing(path)
        return inode

    def _missing(self, path: str) -> OSError:
        """Return the error for a missing path: ENOTDIR if a parent is a file, else ENOENT."""
        above = parent_of(path)
        while above not in self.directories and above not in self.files:
            above = parent_of(above)
        return refusal(errno.ENOTDIR if above in self.files else errno.ENOENT, path)

    def require_directory(self, path: str) -> None:
        """Raise ENOTDIR or ENOENT unless the path is a directory."""
        if path in self.files:
            raise refusal(errno.ENOTDIR, path)
        if path not in self.directories:
            raise self._missing(path)

    def require_free_name(self, path: str) -> None:
        """Raise EEXIST for a used name, ENOENT or ENOTDIR for one without a directory."""
        if path in self.files or path in self.directories:
            raise refusal(errno.EEXIST, path)
        if parent_of(path) not in self.directories:
            raise self._missing(path)

    def below(self, path: str) -> list[str]:
        """Return the names in a directory, sorted. Raises ENOTDIR or ENOENT."""
        self.require_directory(path)
        return sorted(self._inside.get("" if path == "/" else path, ()))

    def stat(self, path: str) -> FileStat | None:
        """Return the stat of a path, or None."""
        inode = self.files.get(path)
        if inode is not None:
            return _file_of(len(inode.tracked.buffer))
        return _DIRECTORY if path in self.directories else None

    def allocated_bytes(self) -> int:
        """Return the reserved bytes of all files that have a name."""
        return sum(inode.allocated_bytes for inode in self.files.values())

    def in_use(self) -> list[str]:
        """Return one line for each file that is open or mapped."""
        return [
            f"{path}: {inode.opens} open, {inode.mappings} mapped"
            for path, inode in sorted(self.files.items())
            if inode.opens or inode.mappings
        ]
