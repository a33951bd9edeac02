"""The calls that an I/O fault rule can hit: file operations, by name and by kind of file.

The names are those of `impl.io.files.Files`. The kind depends on the path only, so a file that is written before it
replaces another one (`.tmp`, `.bak`, `.new`) is of the same kind as that one.
"""

from dataclasses import dataclass
from functools import lru_cache

from tornpage.properties.program.log_places import ROOT, log_files

__all__ = ["KINDS", "OPERATIONS", "Call", "kind_of"]

OPERATIONS: dict[str, str] = {
    "create": "an empty file is made",
    "open": "an existing file is opened",
    "allocate": "blocks are reserved, the file grows",
    "map": "a file is mapped",
    "read": "bytes are read, not through a mapping",
    "pwrite": "bytes are written, not through a mapping",
    "zero": "a range is overwritten with zeros",
    "sync": "content and size are made durable",
    "sync_directory": "the names in a directory are made durable",
    "rename": "a file takes the place of another",
    "unlink": "a name is removed",
    "make_directory": "a directory is made",
    "list_directory": "the names in a directory are read",
}
"""Each operation and what it does."""

KINDS: dict[str, str] = {
    "log": "a file of the commit log",
    "queue": "a file of a consume queue",
    "extension": "a file of a queue's extension",
    "index": "an index file",
    "checkpoint": "checkpoint",
    "floor": "config/durableFloor",
    "derived-floor": "config/derivedFloor",
    "marker": "abort",
    "lock": "lock",
    "progress": "offsets of consumers and of delay levels, their backups and temporary files",
    "topics": "config/deletedTopics",
    "directory": "a call on a directory",
    "other": "everything else",
}
"""Each kind and its files."""

_OF_DIRECTORIES = ("sync_directory", "make_directory", "list_directory")
_FOLDERS = {"consumequeue": "queue", "consumequeue_ext": "extension", "index": "index"}
_NAMES = {
    "checkpoint": "checkpoint",
    "abort": "marker",
    "lock": "lock",
    "config/durableFloor": "floor",
    "config/derivedFloor": "derived-floor",
    "config/deletedTopics": "topics",
    "config/consumerOffset.json": "progress",
    "config/lmqConsumerOffset.json": "progress",
    "config/delayOffset.json": "progress",
}
_UNFINISHED, _PART = ".unfinished", ".part"
"""A file of a directory `X` is made as `X.unfinished/NAME.part`."""
_ENDINGS = (".bak.tmp", ".tmp", ".bak", ".new")


@lru_cache(maxsize=4096)
def kind_of(path: str) -> str:
    """Return the kind of a file by its path."""
    if log_files([path]) or log_files([path.replace(f"{_UNFINISHED}/", "/", 1).removesuffix(_PART)]):
        return "log"
    name = path.removeprefix(f"{ROOT}/")
    folder = name.partition("/")[0].removesuffix(_UNFINISHED)
    if folder in _FOLDERS and "/" in name:
        return _FOLDERS[folder]
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return _NAMES.get(name, "other")


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    The paths of a rename are first the new one, then the old one.
    """

    operation: str
    paths: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of file that is accessed."""
        return "directory" if self.operation in _OF_DIRECTORIES else kind_of(self.paths[0])
