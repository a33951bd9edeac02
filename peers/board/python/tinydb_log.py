"""TinyDB, a document database in one JSON file."""

from collections.abc import Iterable

import tinydb

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["TinydbLog"]


class TinydbLog(RecordLog):
    """One document per record."""

    name = "TinyDB"

    def _open(self) -> None:
        self._database = tinydb.TinyDB(self.directory / "log.json")

    def _records(self) -> Iterable[str]:
        return [str(document["record"]) for document in self._database]

    def _push(self, number: int, record: str) -> None:
        self._database.insert({"record": record})

    def close(self) -> None:
        """Close the file."""
        self._database.close()
