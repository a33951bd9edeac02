"""ZODB with its FileStorage."""

from collections.abc import Iterable

import transaction
import ZODB
from ZODB.FileStorage import FileStorage

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["ZodbLog"]


class ZodbLog(RecordLog):
    """Records are keys of the root object; each put is a transaction."""

    name = "ZODB FileStorage"

    def _open(self) -> None:
        self._database = ZODB.DB(FileStorage(str(self.directory / "Data.fs")))
        self._connection = self._database.open()
        self._root = self._connection.root()

    def _records(self) -> Iterable[str]:
        return [self._root[number] for number in sorted(self._root)]

    def _push(self, number: int, record: str) -> None:
        self._root[number] = record
        transaction.commit()

    def close(self) -> None:
        """Close connection and database."""
        transaction.abort()
        self._connection.close()
        self._database.close()
