"""What a recorded disk remembers: every change and every barrier, in the order the store caused them.

An entry says what happened to the volatile state; what of it survives is decided later, when an image is made
(properties/disk/images.py). A position in the journal (a count of entries) names a moment.
"""

from dataclasses import dataclass

__all__ = [
    "PAGE_BYTES",
    "DirectoryMade",
    "DirectorySynced",
    "Entry",
    "FileCreated",
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
    """A page was seen with a content it did not have at the look before (4096 bytes, fewer at the end of the file)."""

    inode: int
    page: int
    content: bytes


@dataclass(frozen=True, slots=True)
class PageFreed(PageWritten):
    """A page became zeros because its file was cut before it; the entry that sets the smaller size follows.

    On the disk `journal` the cut is one operation: these zeros and all later contents of the page are seen only with
    that size or a later one.
    """


@dataclass(frozen=True, slots=True)
class FileSynced:
    """A file sync returned; only a successful one is a barrier."""

    inode: int
    succeeded: bool


@dataclass(frozen=True, slots=True)
class PagesDropped:
    """A sync of the file failed, and each of its dirty pages counts as clean, whatever version of it is on the disk.

    Until a page is written again no sync makes it durable (what ext4 and xfs do).
    """

    inode: int


@dataclass(frozen=True, slots=True)
class DirectorySynced:
    """A directory sync returned successfully."""

    path: str


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """The process died; the page cache lives on."""


Entry = (
    FileCreated
    | DirectoryMade
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
