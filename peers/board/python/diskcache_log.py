"""diskcache: its double-ended queue."""

from collections.abc import Iterable

import diskcache

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["DequeLog"]


class DequeLog(RecordLog):
    """A `Deque`; each append is a transaction of its SQLite database."""

    name = "diskcache Deque"

    def _open(self) -> None:
        self._deque = diskcache.Deque(directory=str(self.directory))

    def _records(self) -> Iterable[str]:
        return list(self._deque)

    def _push(self, number: int, record: str) -> None:
        self._deque.append(record)

    def close(self) -> None:
        """Close the connection of the cache."""
        self._deque.cache.close()
