"""What a fault can be aimed at: calls of the file seam, by operation and by the kind of file they touch.

The names are those of `impl.io.files.Files`; kinds go by the path alone, so that a file that is being written beside
the one it will replace (`.tmp`, `.bak`, `.new`) is of the same kind.
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
    "progress": "offsets of consumers and of delay levels, their backups and what they are made of",
    "topics": "config/deletedTopics",
    "directory": "what a directory is called with",
    "other": "everything else",
}
"""Each kind and which files it means."""

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
_ENDINGS = (".bak.tmp", ".tmp", ".bak", ".new")


@lru_cache(maxsize=4096)
def kind_of(path: str) -> str:
    """Return the kind of a file by its path."""
    if log_files([path]):
        return "log"
    name = path.removeprefix(f"{ROOT}/")
    folder = name.partition("/")[0]
    if folder in _FOLDERS and "/" in name:
        return _FOLDERS[folder]
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return _NAMES.get(name, "other")


@dataclass(frozen=True, slots=True)
class Call:
    """One call; a rename has the path that it gives first, then the one it takes away."""

    operation: str
    paths: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of file that is touched."""
        return "directory" if self.operation in _OF_DIRECTORIES else kind_of(self.paths[0])
