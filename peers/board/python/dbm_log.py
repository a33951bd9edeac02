"""The dictionaries of the standard library: dbm.dumb, and shelve over it."""

import dbm.dumb
import shelve
from collections.abc import Iterable

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["DumbLog", "ShelveLog"]


class DumbLog(RecordLog):
    """A dictionary by record numbers. `flush` is its `sync`."""

    name = "dbm.dumb"

    def _open(self) -> None:
        self._database = dbm.dumb.open(str(self.directory / "log"))  # noqa: SIM115

    def _records(self) -> Iterable[str]:
        return [self._database[key].decode() for key in sorted(self._database.keys())]

    def _push(self, number: int, record: str) -> None:
        self._database[f"{number:08}"] = record.encode()

    def flush(self) -> None:
        """Call `sync`."""
        self._database.sync()

    def close(self) -> None:
        """Close the files."""
        self._database.close()


class ShelveLog(RecordLog):
    """A shelf on dbm.dumb. `flush` is its `sync`."""

    name = "shelve"

    def _open(self) -> None:
        self._shelf: shelve.Shelf[str] = shelve.Shelf(dbm.dumb.open(str(self.directory / "log")))  # type: ignore[arg-type]  # noqa: SIM115

    def _records(self) -> Iterable[str]:
        return [self._shelf[key] for key in sorted(self._shelf)]

    def _push(self, number: int, record: str) -> None:
        self._shelf[f"{number:08}"] = record

    def flush(self) -> None:
        """Call `sync`."""
        self._shelf.sync()

    def close(self) -> None:
        """Close the shelf."""
        self._shelf.close()
