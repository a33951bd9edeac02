"""litequeue as a store of queues whose messages are locked, and done later."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from litequeue import LiteQueue

from tornpage.properties.foreign.shapes.adapters import QueueStore

__all__ = ["LitequeueQueues"]

_READY, _LOCKED = 0, 1


class LitequeueQueues(QueueStore):
    """One table for each queue.

    An open makes the locked messages ready again, as a worker that restarts does.
    """

    promises: Mapping[str, Any] = {
        "durable": "nothing",
        "kill": "put",
        "removed": "nothing",
        "removed_kill": "remove",
        "take": "lends",
    }
    open_many = True

    def __init__(self, directory: Path | str) -> None:
        """Open the database when a queue is used first."""
        self._directory = Path(directory)
        self._queues: dict[str, Any] = {}

    def _queue(self, name: str) -> Any:
        if name not in self._queues:
            self._queues[name] = queue = LiteQueue(str(self._directory / "queue.db"), queue_name=name)
            for message in list(queue.list_locked(-1)):
                queue.retry(message.message_id)
        return self._queues[name]

    def put(self, queue: str, body: bytes) -> None:
        """Append a message."""
        self._queue(queue).put(b64encode(body).decode())

    def take(self, queue: str) -> tuple[Any, bytes] | None:
        """Lock the next message."""
        message = self._queue(queue).pop()
        return None if message is None else (str(message.message_id), b64decode(message.data))

    def acknowledge(self, queue: str, handle: Any) -> None:
        """Mark a message as done."""
        self._queue(queue).done(handle)

    def list(self, queue: str) -> Iterable[bytes]:
        """Return the messages that are ready or locked."""
        opened = self._queue(queue)
        rows = opened.conn.execute(
            f"select data from {opened.table} where status in ({_READY}, {_LOCKED}) order by message_id"
        )
        return [b64decode(row["data"]) for row in rows]

    def close(self) -> None:
        """Close the connections."""
        for queue in self._queues.values():
            queue.close()
