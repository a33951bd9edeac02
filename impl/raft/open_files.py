"""Keep a bounded number of the files of a log open.

A log of many small files would otherwise run out of file descriptors. Files in use stay open, and so do files with
bytes that are not durable, since a sync has to report the failed write of an earlier descriptor.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tornpage.impl.io.files import Files, OpenFile

__all__ = ["FILES_MAX", "OpenFiles"]

FILES_MAX = 8
"""Open files of one log, beside those in use and those with bytes that are not durable."""


class _Held:
    """An open file. `users` counts the calls that use it."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.users = 0
        self.is_durable = True
        self.is_forgotten = False


class OpenFiles:
    """Open files by path, the least recently used first. Any thread may use them.

    Raises OSError of a call.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._held: dict[str, _Held] = {}
        self._guard = threading.Lock()

    @contextmanager
    def opened(self, path: str, *, creates: bool = False) -> Iterator[OpenFile]:
        """Yield an open file. With `creates` it is created if it is missing."""
        with self._guard:
            held = self._held.pop(path, None) or self._open(path, creates=creates)
            self._held[path] = held
            held.users += 1
        try:
            yield held.file
        finally:
            with self._guard:
                held.users -= 1
                if held.is_forgotten and not held.users:
                    self._files.close(held.file)
                self._close_oldest()

    def _open(self, path: str, *, creates: bool) -> _Held:
        if creates and self._files.stat(path) is None:
            return _Held(self._files.create(path))
        return _Held(self._files.open(path, writable=True))

    def note_written(self, path: str) -> None:
        """Keep a file open until `note_durable`: bytes were written to it."""
        with self._guard:
            self._held[path].is_durable = False

    def note_durable(self, path: str) -> None:
        """Let a file be closed: all its bytes are durable."""
        with self._guard:
            self._held[path].is_durable = True

    def forget(self, path: str) -> None:
        """Close a file whose name is removed next, after its last use."""
        with self._guard:
            self._forget(path)

    def close(self) -> None:
        """Close all files, each after its last use."""
        with self._guard:
            for path in tuple(self._held):
                self._forget(path)

    def _forget(self, path: str) -> None:
        held = self._held.pop(path, None)
        if held is None:
            return
        held.is_forgotten = True
        if not held.users:
            self._files.close(held.file)

    def _close_oldest(self) -> None:
        """Close the least recently used files above the limit. Needs the lock."""
        excess = len(self._held) - FILES_MAX
        if excess <= 0:
            return
        for path in [path for path, each in self._held.items() if each.is_durable and not each.users][:excess]:
            self._forget(path)
