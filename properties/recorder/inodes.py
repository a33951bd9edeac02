"""What the recorded disk holds at the moment: files, who has them open, and the names that lead to them."""

import errno
import os

from impl.files import FileStat, OpenFile
from properties.recorder.disk import parent_of
from properties.recorder.tracking import Tracked

__all__ = ["Inode", "Names", "RecordedFile", "RecordedMapping", "recorded", "refusal", "writable"]


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
    """An open file."""

    __slots__ = ("holds_lock", "inode", "path", "writable")

    def __init__(self, path: str, inode: Inode, *, writable: bool) -> None:
        self.path = path
        self.inode = inode
        self.writable = writable
        self.holds_lock = False


class RecordedMapping:
    """A mapping: a view of the live content."""

    __slots__ = ("inode", "view")

    def __init__(self, inode: Inode, view: memoryview) -> None:
        self.inode = inode
        self.view = view


def recorded(file: OpenFile) -> RecordedFile:
    """Return an open file as one of this disk."""
    assert isinstance(file, RecordedFile)
    return file


def writable(file: OpenFile) -> RecordedFile:
    """Return an open file of this disk. Raises EBADF when it was opened for reading."""
    found = recorded(file)
    if not found.writable:
        raise refusal(errno.EBADF, file.path)
    return found


def refusal(code: int, path: str) -> OSError:
    """Return the error a real disk answers with; OSError picks the class that belongs to the number."""
    return OSError(code, os.strerror(code), path)


class Names:
    """Directories and files by path, and the errors of a path that names the wrong thing."""

    __slots__ = ("directories", "files")

    def __init__(self, directories: set[str], files: dict[str, Inode]) -> None:
        self.directories = directories
        self.files = files

    def find(self, path: str) -> Inode:
        """Return the file. Raises EISDIR, ENOENT or ENOTDIR."""
        if path in self.directories:
            raise refusal(errno.EISDIR, path)
        inode = self.files.get(path)
        if inode is None:
            raise self._missing(path)
        return inode

    def _missing(self, path: str) -> OSError:
        """Return why a path names nothing: a file stands where a directory should, or there is nothing."""
        above = parent_of(path)
        while above not in self.directories and above not in self.files:
            above = parent_of(above)
        return refusal(errno.ENOTDIR if above in self.files else errno.ENOENT, path)

    def require_directory(self, path: str) -> None:
        """Raise ENOTDIR or ENOENT unless the path names a directory."""
        if path in self.files:
            raise refusal(errno.ENOTDIR, path)
        if path not in self.directories:
            raise self._missing(path)

    def require_free_name(self, path: str) -> None:
        """Raise EEXIST for a taken name, ENOENT or ENOTDIR for one that has no directory to stand in."""
        if path in self.files or path in self.directories:
            raise refusal(errno.EEXIST, path)
        if parent_of(path) not in self.directories:
            raise self._missing(path)

    def below(self, path: str) -> list[str]:
        """Return the names in a directory, sorted. Raises ENOTDIR or ENOENT."""
        self.require_directory(path)
        prefix = path.rstrip("/") + "/"
        found = [name[len(prefix) :] for name in (*self.files, *self.directories) if name.startswith(prefix)]
        return sorted(name for name in found if name and "/" not in name)

    def stat(self, path: str) -> FileStat | None:
        """Return what the path names, or None."""
        if path in self.directories:
            return FileStat("directory", 0)
        inode = self.files.get(path)
        return None if inode is None else FileStat("file", len(inode.tracked.buffer))

    def allocated_bytes(self) -> int:
        """Return how much all files that have a name have reserved."""
        return sum(inode.allocated_bytes for inode in self.files.values())

    def in_use(self) -> list[str]:
        """Return one line for each file that is open or mapped."""
        return [
            f"{path}: {inode.opens} open, {inode.mappings} mapped"
            for path, inode in sorted(self.files.items())
            if inode.opens or inode.mappings
        ]
