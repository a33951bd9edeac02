"""persist-queue: queues of files, in SQLite, and with acknowledgements."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import persistqueue

from tornpage.peers.board.python.record_log import RecordLog, copied

__all__ = ["AckQueueLog", "FileQueueLog", "SqliteQueueLog"]


class _QueueLog(RecordLog):
    """A queue. Reads remove items, so a copy of it is drained to list them."""

    def _open(self) -> None:
        self._queue = self._opened(self.directory)

    def _opened(self, directory: Path) -> Any:
        raise NotImplementedError

    def _records(self) -> Iterable[str]:
        with copied(self.directory) as copy:
            queue = self._opened(copy)
            found = []
            while True:
                try:
                    found.append(queue.get(block=False))
                except persistqueue.Empty:
                    break
            del queue
            return found

    def _push(self, number: int, record: str) -> None:
        self._queue.put(record)

    def close(self) -> None:
        """Let the queue go; queues of files have no close."""
        if hasattr(self._queue, "close"):
            self._queue.close()


class FileQueueLog(_QueueLog):
    """The queue of files, which saves after each operation."""

    name = "persist-queue Queue"

    def _opened(self, directory: Path) -> Any:
        return persistqueue.Queue(str(directory), autosave=True)


class SqliteQueueLog(_QueueLog):
    """The first-in first-out queue in SQLite with auto-commit."""

    name = "persist-queue FIFOSQLiteQueue"

    def _opened(self, directory: Path) -> Any:
        return persistqueue.FIFOSQLiteQueue(str(directory), auto_commit=True)


class AckQueueLog(_QueueLog):
    """The queue in SQLite whose items are acknowledged."""

    name = "persist-queue FIFOSQLiteAckQueue"

    def _opened(self, directory: Path) -> Any:
        return persistqueue.FIFOSQLiteAckQueue(str(directory), auto_commit=True)
