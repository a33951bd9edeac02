"""The journal of a recorded disk: every change and every barrier, in order.

An entry states what happened to the volatile state. What of it survives is decided later, when an image is composed
(properties/disk/images.py). A position in the journal (a number of entries) identifies a point in time.
"""

from dataclasses import dataclass

__all__ = [
    "PAGE_BYTES",
    "SECTORS",
    "SECTOR_BYTES",
    "DirectoryMade",
    "DirectoryRemoved",
    "DirectoryRenamed",
    "DirectorySynced",
    "Entry",
    "FileCreated",
    "FileLinked",
    "FileMade",
    "FileRenamed",
    "FileSynced",
    "FileUnlinked",
    "PageFreed",
    "PageWritten",
    "PagesDropped",
    "ProcessKilled",
    "Resized",
]

PAGE_BYTES = 4096
SECTOR_BYTES = 512
"""What a disk writes whole, or not at all."""
SECTORS = PAGE_BYTES // SECTOR_BYTES
"""Sectors of a page."""


@dataclass(frozen=True, slots=True)
class FileCreated:
    """A new empty file `inode` got the name `path`."""

    inode: int
    path: str


@dataclass(frozen=True, slots=True)
class DirectoryMade:
    """A new empty directory."""

    path: str


@dataclass(frozen=True, slots=True)
class DirectoryRenamed:
    """A directory lost the path `source` and took `target`, with everything in it."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DirectoryRemoved:
    """An empty directory was removed."""

    path: str


@dataclass(frozen=True, slots=True)
class FileMade:
    """A new empty file `inode` without a name (`O_TMPFILE`).

    A crash leaves nothing of it before it is linked.
    """

    inode: int


@dataclass(frozen=True, slots=True)
class FileLinked:
    """`inode` got the name `path` besides those that it had."""

    inode: int
    path: str


@dataclass(frozen=True, slots=True)
class FileRenamed:
    """`inode` lost the name `source` and took `target`, whatever that named before."""

    inode: int
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class FileUnlinked:
    """`inode` lost its name."""

    inode: int
    path: str


@dataclass(frozen=True, slots=True)
class Resized:
    """The file has a new size; bytes it gained are zero."""

    inode: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PageWritten:
    """A page has new content since the look before.

    The content has 4096 bytes, fewer at the end of the file.
    """

    inode: int
    page: int
    content: bytes


@dataclass(frozen=True, slots=True)
class PageFreed(PageWritten):
    """A page became zeros because its file was cut before the page.

    The entry that sets the smaller size follows.

    On the disk `journal` the cut is one operation: these zeros and all later contents of the page are seen only with
    that size or a later one.
    """


@dataclass(frozen=True, slots=True)
class FileSynced:
    """A file sync returned. Only a successful one is a barrier.

    `data_only` is an fdatasync, an msync or a synchronous write, which on some disks commits no rename. With `extent`,
    the first byte and the byte after the last one, the sync covers the pages with these bytes, and the size only as far
    as it is needed to reach them.
    """

    inode: int
    succeeded: bool
    data_only: bool = False
    extent: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PagesDropped:
    """A sync of the file failed, and each of its dirty pages counts as clean.

    Any version of such a page may be on the disk. No sync makes it durable until it is written again, as on ext4 and
    xfs.
    """

    inode: int


@dataclass(frozen=True, slots=True)
class DirectorySynced:
    """A directory sync returned successfully."""

    path: str


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """The process died. The page cache survives."""


Entry = (
    FileCreated
    | DirectoryMade
    | DirectoryRenamed
    | DirectoryRemoved
    | FileMade
    | FileLinked
    | FileRenamed
    | FileUnlinked
    | Resized
    | PageWritten
    | PageFreed
    | FileSynced
    | PagesDropped
    | DirectorySynced
    | ProcessKilled
)
