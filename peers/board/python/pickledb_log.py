"""pickleDB, a dictionary in one JSON file."""

from collections.abc import Iterable

from pickledb import PickleDB

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["PickledbLog"]


class PickledbLog(RecordLog):
    """A dictionary by record numbers, saved after each put."""

    name = "pickleDB"

    def _open(self) -> None:
        self._database = PickleDB(str(self.directory / "log.json"))
        self._database.load()

    def _records(self) -> Iterable[str]:
        return [self._database.db[key] for key in sorted(self._database.db)]

    def _push(self, number: int, record: str) -> None:
        self._database.set(f"{number:08}", record)
        self._database.save()
