"""The state of a recorded disk at one moment: what is durable, and what might be.

A pure reducer over the journal. Facts that reach the disk independently until a barrier covers them (docs/contract.md,
"Crash model"): the content of each page (any version since the last sync), the size of each file, each name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from properties.recorder.journal import (
    PAGE_BYTES,
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageWritten,
    ProcessKilled,
    Resized,
)

__all__ = ["DirectoryOperation", "Disk", "DiskState", "Image", "InodeState", "apply_operation", "parent_of", "put_page"]

Disk = Literal["posix-strict", "journal", "kill"]
"""Which directory operations survive without a barrier: any subset; a prefix, where syncing a new file makes its name
durable (what ext4, xfs and btrfs showed); or, when only the process dies, all of them."""

DirectoryOperation = FileCreated | DirectoryMade | FileRenamed | FileUnlinked


@dataclass(frozen=True, slots=True)
class Image:
    """What a disk holds: the directories, and the content of every file by absolute path."""

    directories: frozenset[str]
    files: Mapping[str, bytes]


@dataclass(slots=True)
class InodeState:
    """One file. `name` tells it from all others in choices and reports.

    `durable` is what survives for sure (given the name does), `sizes` the sizes since the last sync, oldest first,
    `versions` the contents each page had since then.
    """

    name: str
    durable: bytearray = field(default_factory=bytearray)
    sizes: list[int] = field(default_factory=list)
    versions: dict[int, list[bytes]] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """The size the process sees."""
        return self.sizes[-1] if self.sizes else len(self.durable)

    def page(self, number: int) -> bytes:
        """The durable content of a page."""
        return bytes(self.durable[number * PAGE_BYTES : (number + 1) * PAGE_BYTES])

    def latest(self) -> bytearray:
        """The content the process sees."""
        content = bytearray(self.durable[: self.size_bytes])
        content.extend(bytes(self.size_bytes - len(content)))
        for number, versions in self.versions.items():
            put_page(content, number, versions[-1])
        return content


def put_page(content: bytearray, number: int, page: bytes) -> None:
    """Overwrite a page as far as it lies inside `content`."""
    start = number * PAGE_BYTES
    room = len(content) - start
    if room > 0:
        content[start : start + min(len(page), room)] = page if len(page) <= room else page[:room]


def parent_of(path: str) -> str:
    """Return the directory that holds a path."""
    return path.rpartition("/")[0] or "/"


class DiskState:
    """The reducer: start from a durable image, apply journal entries."""

    def __init__(self, base: Image, *, disk: Disk) -> None:
        self.disk = disk
        self.inodes: dict[int, InodeState] = {}
        self.directories: set[str] = set(base.directories)
        self.names: dict[str, int] = {}
        self.pending: list[DirectoryOperation] = []
        self._taken: dict[str, int] = {}
        for number, (path, content) in enumerate(sorted(base.files.items())):
            self.inodes[number] = InodeState(self._inode_name(path), bytearray(content))
            self.names[path] = number

    def _inode_name(self, path: str) -> str:
        self._taken[path] = count = self._taken.get(path, 0) + 1
        return path if count == 1 else f"{path}#{count}"

    def apply_all(self, entries: Iterable[Entry]) -> None:
        """Apply entries in order."""
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Apply one entry."""
        match entry:
            case PageWritten(inode, page, content):
                self.inodes[inode].versions.setdefault(page, []).append(content)
            case FileSynced(inode, succeeded):
                if succeeded:
                    self._sync(self.inodes[inode])
                    if self.disk == "journal":
                        self._commit_through(
                            [number for number, operation in enumerate(self.pending) if _creates(operation, inode)]
                        )
            case Resized(inode, size_bytes):
                self.inodes[inode].sizes.append(size_bytes)
            case FileCreated(inode, path):
                self.inodes[inode] = InodeState(self._inode_name(path))
                self.pending.append(entry)
            case DirectoryMade() | FileRenamed() | FileUnlinked():
                self.pending.append(entry)
            case DirectorySynced(path):
                self._sync_directory(path)
            case ProcessKilled():
                return  # the page cache lives on

    @staticmethod
    def _sync(inode: InodeState) -> None:
        if inode.sizes:
            inode.durable = inode.latest()
            inode.sizes.clear()
        else:
            for number, versions in inode.versions.items():
                put_page(inode.durable, number, versions[-1])
        inode.versions.clear()

    def _sync_directory(self, path: str) -> None:
        covered = [number for number, operation in enumerate(self.pending) if directory_of(operation) == path]
        if self.disk == "journal":
            self._commit_through(covered)
        elif covered:
            for number in covered:
                apply_operation(self.names, self.directories, self.pending[number])
            self.pending = [o for o in self.pending if directory_of(o) != path]

    def _commit_through(self, covered: list[int]) -> None:
        """A journal commits in order: what it must keep brings everything before it along."""
        for _ in range(covered[-1] + 1 if covered else 0):
            apply_operation(self.names, self.directories, self.pending.pop(0))

    def visible(self) -> tuple[dict[str, int], set[str]]:
        """Return names and directories as the process sees them."""
        names, directories = dict(self.names), set(self.directories)
        for operation in self.pending:
            apply_operation(names, directories, operation)
        return names, directories


def _creates(operation: DirectoryOperation, inode: int) -> bool:
    return isinstance(operation, FileCreated) and operation.inode == inode


def directory_of(operation: DirectoryOperation) -> str:
    """Return the directory whose sync covers an operation; renames stay inside one directory."""
    return parent_of(operation.target if isinstance(operation, FileRenamed) else operation.path)


def apply_operation(names: dict[str, int], directories: set[str], operation: DirectoryOperation) -> None:
    """Change names and directories as one directory operation does."""
    match operation:
        case FileCreated(inode, path):
            names[path] = inode
        case DirectoryMade(path):
            directories.add(path)
        case FileUnlinked(inode, path):
            if names.get(path) == inode:
                del names[path]
        case FileRenamed(inode, source, target):
            if names.get(source) == inode:
                del names[source]
            names[target] = inode
