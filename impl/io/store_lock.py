"""The lock of a store directory, taken before any other access to it (contract 14).

RocketMQ 4.9.3 takes it after recovery (hole G7). The byte range is the same, so each excludes the other.
Source: `DefaultMessageStore.start`.
"""

import contextlib

from tornpage.impl.errors import BadDirectory, StoreInUse
from tornpage.impl.io.files import Files, OpenFile

__all__ = ["StoreLock", "make_directories"]

_CONTENT = b"lock"


def make_directories(files: Files, path: str) -> None:
    """Create a directory and its missing parents, and make its name durable.

    The name of an existing directory is synced too, since an earlier open may have been killed before it synced the
    parent. Raises BadDirectory and OSError.
    """
    stat = files.stat(path)
    if stat is not None and stat.kind != "directory":
        raise BadDirectory(path, f"is a {stat.kind}", "name a directory")
    if path == "/":
        return
    parent = path.rpartition("/")[0] or "/"
    if stat is None:
        make_directories(files, parent)
        files.make_directory(path)
    with contextlib.suppress(PermissionError):  # an unreadable parent was not created by the store
        files.sync_directory(parent)


class StoreLock:
    """Holds the exclusive lock on byte 0 of `<root>/lock` until `release`."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._file: OpenFile | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises StoreInUse if another process holds it, without changing its files.
        """
        path = f"{self._root}/lock"
        if self._files.stat(path) is None:
            try:
                file = self._files.create(path)
            except FileExistsError:
                file = self._files.open(path, writable=True)
        else:
            file = self._files.open(path, writable=True)
        try:
            if not self._files.lock(file):
                raise StoreInUse(self._root)
            if self._files.read(file, 0, len(_CONTENT)) != _CONTENT:
                self._files.pwrite(file, _CONTENT, 0)
        except BaseException:
            self._files.close(file)
            raise
        self._file = file

    def release(self) -> None:
        """Release the lock; the file stays."""
        if self._file is not None:
            self._files.close(self._file)
            self._file = None
