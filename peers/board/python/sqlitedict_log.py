"""sqlitedict."""

from collections.abc import Iterable

from sqlitedict import SqliteDict

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["SqlitedictLog"]


class SqlitedictLog(RecordLog):
    """A dictionary by record numbers. `flush` is its `commit`."""

    name = "sqlitedict"

    def _open(self, journal: str = "DELETE", autocommit: bool = False) -> None:
        self._dictionary = SqliteDict(
            str(self.directory / "log.db"), journal_mode=journal, autocommit=autocommit, encode=str, decode=str
        )

    def _records(self) -> Iterable[str]:
        return [record for _, record in sorted(self._dictionary.items())]

    def _push(self, number: int, record: str) -> None:
        self._dictionary[f"{number:08}"] = record

    def flush(self) -> None:
        """Commit, and wait for it."""
        self._dictionary.commit(blocking=True)

    def close(self) -> None:
        """Commit and close."""
        self._dictionary.commit(blocking=True)
        self._dictionary.close()
