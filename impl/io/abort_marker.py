"""The file `abort`: present while the store is open for writing, so its presence at load means an unclean exit.

It is durable before the first write and its removal is durable before the lock is given up: RocketMQ 4.9.3 does
neither and can take a crash for a clean exit (hole H6). Source: `DefaultMessageStore.createTempFile`.
"""

from tornpage.impl.io.files import Files

__all__ = ["AbortMarker"]


class AbortMarker:
    """Owns `<root>/abort`."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._path = f"{root}/abort"

    def present(self) -> bool:
        """Whether the last exit was unclean, or the store is open now."""
        return self._files.stat(self._path) is not None

    def create(self) -> None:
        """Make the marker, durable in name, if it is not there."""
        if not self.present():
            self._files.close(self._files.create(self._path))
        self._files.sync_directory(self._root)

    def remove(self) -> None:
        """Take the marker away, durably: everything else is on disk."""
        self._files.unlink(self._path)
        self._files.sync_directory(self._root)
