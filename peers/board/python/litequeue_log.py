"""litequeue, a queue in SQLite."""

from collections.abc import Iterable

from litequeue import LiteQueue

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["LitequeueLog"]


class LitequeueLog(RecordLog):
    """A queue; its rows are listed by the order of their message numbers."""

    name = "litequeue"

    def _open(self) -> None:
        self._queue = LiteQueue(str(self.directory / "queue.db"))

    def _records(self) -> Iterable[str]:
        rows = self._queue.conn.execute(f"select data from {self._queue.table} order by message_id")
        return [str(row["data"]) for row in rows]

    def _push(self, number: int, record: str) -> None:
        self._queue.put(record)

    def close(self) -> None:
        """Close the connection."""
        self._queue.close()
