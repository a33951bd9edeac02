"""Directories below the store directory: created on demand, synced with the files in them."""

import threading

from tornpage.impl.io.files import Files
from tornpage.impl.log.log_directories import directory_of

__all__ = ["DirectoryTree"]


class DirectoryTree:
    """Tracks the directories below a durable `root` and the names that may not be durable.

    One thread creates directories; any thread may sync them.
    """

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._known = {root}
        self._new: dict[str, set[str]] = {}
        self._guard = threading.Lock()

    def make(self, path: str) -> None:
        """Create a directory below the root, and its parents, unless they exist. Raises OSError."""
        if path in self._known:
            return
        if self._files.stat(path) is None:
            self.make(directory_of(path))
            self._files.make_directory(path)
        self.note(path, durable=False)

    def note(self, path: str, *, durable: bool) -> None:
        """Record that a directory and its parents exist.

        `durable` says whether their names are durable. An existing name may not be durable: an earlier open may have
        been killed before it synced the parent.
        """
        with self._guard:
            while path not in self._known:
                self._known.add(path)
                parent = directory_of(path)
                if not durable:
                    self._new.setdefault(parent, set()).add(path)
                path = parent

    def sync(self, path: str) -> None:
        """Make the names in a directory durable, and its own name up to the root. Raises OSError.

        One sync of a parent serves all its directories, since thousands of queues may be created at once.
        """
        self._files.sync_directory(path)
        while path != self._root:
            parent = directory_of(path)
            with self._guard:
                new = self._new.get(parent, ())
                served = set(new) if path in new else set()
            if served:
                self._files.sync_directory(parent)
                with self._guard:
                    self._new[parent] -= served  # last, so that a sync meanwhile syncs them too
            path = parent
