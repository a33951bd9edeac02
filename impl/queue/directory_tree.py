"""Directories below the store's own: made when a file is to lie in them, durable when that file is."""

import threading

from tornpage.impl.io.files import Files
from tornpage.impl.log.log_directories import directory_of

__all__ = ["DirectoryTree"]


class DirectoryTree:
    """Knows which directories below a durable `root` there are, and which names of them may not be durable yet.

    One thread makes directories; any may sync them.
    """

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._known = {root}
        self._new: dict[str, set[str]] = {}
        self._guard = threading.Lock()

    def make(self, path: str) -> None:
        """Make a directory below the root, and its parents, unless they are there. Raises OSError."""
        if path in self._known:
            return
        if self._files.stat(path) is None:
            self.make(directory_of(path))
            self._files.make_directory(path)
        self.note(path, durable=False)

    def note(self, path: str, *, durable: bool) -> None:
        """Say that a directory is there, and so are its parents.

        A name may not be durable although it is there: an opener before us may have been killed before it synced it.
        """
        with self._guard:
            while path not in self._known:
                self._known.add(path)
                parent = directory_of(path)
                if not durable:
                    self._new.setdefault(parent, set()).add(path)
                path = parent

    def sync(self, path: str) -> None:
        """Make the names in a directory durable, and its own up to the root. Raises OSError.

        One sync of a parent serves all its directories: thousands of queues come to be at once.
        """
        self._files.sync_directory(path)
        while path != self._root:
            parent = directory_of(path)
            with self._guard:
                served = self._new.pop(parent) if path in self._new.get(parent, ()) else set()
            if served:
                self._sync_parent(parent, served)
            path = parent

    def _sync_parent(self, parent: str, served: set[str]) -> None:
        try:
            self._files.sync_directory(parent)
        except OSError:
            with self._guard:
                self._new.setdefault(parent, set()).update(served)
            raise
