"""SQLite of the standard library as a key-value store with transactions."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tornpage.properties.foreign.shapes.adapters import KeyValueStore

__all__ = ["SqliteValues"]


class SqliteValues(KeyValueStore):
    """One table in a write-ahead log with synchronous=FULL. A batch is a transaction."""

    promises: Mapping[str, Any] = {"durable": "put", "kill": "put", "batch": "atomic"}
    open_many = True

    def __init__(self, directory: Path | str) -> None:
        """Open or recover the database."""
        self._database = sqlite3.connect(Path(directory, "values.db"), isolation_level=None)
        self._database.execute("pragma journal_mode=wal")
        self._database.execute("pragma synchronous=full")
        self._database.execute("create table if not exists pairs (key text primary key, value blob)")

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self._database.execute("insert or replace into pairs values (?, ?)", (key, value))

    def delete(self, key: str) -> None:
        """Remove a key."""
        self._database.execute("delete from pairs where key = ?", (key,))

    def get(self, key: str) -> bytes | None:
        """Return the value of a key."""
        row = self._database.execute("select value from pairs where key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def scan(self) -> Iterable[tuple[str, bytes]]:
        """Return all pairs."""
        return [(key, bytes(value)) for key, value in self._database.execute("select key, value from pairs")]

    def batch(self, changes: Sequence[tuple[str, bytes | None]]) -> None:
        """Make several changes in one transaction."""
        self._database.execute("begin")
        for key, value in changes:
            if value is None:
                self.delete(key)
            else:
                self.put(key, value)
        self._database.execute("commit")

    def close(self) -> None:
        """Close the connection."""
        self._database.close()
