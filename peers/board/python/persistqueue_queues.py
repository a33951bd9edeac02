"""The SQLite queue of persist-queue with acknowledgements, as a store of queues."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import persistqueue

from tornpage.properties.foreign.shapes.adapters import QueueStore

__all__ = ["AckQueues"]

_NEW, _READY, _TAKEN = 0, 1, 2


class AckQueues(QueueStore):
    """One database for each queue. An open makes the taken messages ready again."""

    promises: Mapping[str, Any] = {
        "durable": "put",
        "kill": "put",
        "removed": "remove",
        "removed_kill": "remove",
        "take": "lends",
    }
    open_many = True

    def __init__(self, directory: Path | str) -> None:
        """Open a database when its queue is used first."""
        self._directory = Path(directory)
        self._queues: dict[str, Any] = {}

    def _queue(self, name: str) -> Any:
        if name not in self._queues:
            self._queues[name] = persistqueue.FIFOSQLiteAckQueue(
                str(self._directory), db_file_name=f"{name}.db", auto_commit=True
            )
        return self._queues[name]

    def put(self, queue: str, body: bytes) -> None:
        """Append a message."""
        self._queue(queue).put(body)

    def take(self, queue: str) -> tuple[Any, bytes] | None:
        """Take the next message."""
        try:
            found = self._queue(queue).get(block=False, raw=True)
        except persistqueue.Empty:
            return None
        return found["pqid"], found["data"]

    def acknowledge(self, queue: str, handle: Any) -> None:
        """Acknowledge a message that was taken."""
        self._queue(queue).ack(id=handle)

    def list(self, queue: str) -> Iterable[bytes]:
        """Return the messages that are not acknowledged."""
        rows = self._queue(queue).queue()
        return [row["data"] for row in rows if int(row["status"]) in (_NEW, _READY, _TAKEN)]

    def close(self) -> None:
        """Close the connections."""
        for queue in self._queues.values():
            queue.close()
