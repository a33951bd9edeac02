"""SQLite of the standard library, in its journal and synchronous modes."""

import sqlite3
from collections.abc import Iterable

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["SqliteLog"]


class SqliteLog(RecordLog):
    """One table; each put is a transaction.

    `checkpoint` is the kind of checkpoint that a flush makes.
    """

    name = "SQLite"
    open_many = True

    def _open(self, journal: str = "wal", sync: str = "full", checkpoint: str = "full") -> None:
        self._checkpoint = checkpoint
        self._database = sqlite3.connect(self.directory / "log.db", isolation_level=None)
        self._database.execute(f"pragma journal_mode={journal}")
        self._database.execute(f"pragma synchronous={sync}")
        self._database.execute("create table if not exists records (number integer primary key, record text)")

    def _records(self) -> Iterable[str]:
        return [record for (record,) in self._database.execute("select record from records order by number")]

    def _push(self, number: int, record: str) -> None:
        self._database.execute("insert into records values (?, ?)", (number, record))

    def flush(self) -> None:
        """Move a write-ahead log into the database and sync both. Other journals need no flush."""
        self._database.execute(f"pragma wal_checkpoint({self._checkpoint})")

    def close(self) -> None:
        """Close the connection."""
        self._database.close()
