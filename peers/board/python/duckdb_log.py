"""DuckDB."""

from collections.abc import Iterable

import duckdb

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["DuckdbLog"]


class DuckdbLog(RecordLog):
    """One table; each put is a transaction."""

    name = "DuckDB"

    def _open(self) -> None:
        self._database = duckdb.connect(str(self.directory / "log.duckdb"), config={"threads": 1})
        self._database.execute("create table if not exists records (number bigint, record varchar)")

    def _records(self) -> Iterable[str]:
        rows = self._database.execute("select record from records order by number").fetchall()
        return [record for (record,) in rows]

    def _push(self, number: int, record: str) -> None:
        self._database.execute("insert into records values (?, ?)", [number, record])

    def flush(self) -> None:
        """Move the write-ahead log into the database."""
        self._database.execute("checkpoint")

    def close(self) -> None:
        """Close the connection."""
        self._database.close()
