"""semidbm, a dictionary in files."""

from collections.abc import Iterable

import semidbm

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["SemidbmLog"]


class SemidbmLog(RecordLog):
    """A dictionary by record numbers. `flush` is its `sync`."""

    name = "semidbm"

    def _open(self) -> None:
        self._database = semidbm.open(str(self.directory / "log"), "c")

    def _records(self) -> Iterable[str]:
        return [self._database[key].decode() for key in sorted(self._database.keys())]

    def _push(self, number: int, record: str) -> None:
        self._database[f"{number:08}".encode()] = record.encode()

    def flush(self) -> None:
        """Call `sync`."""
        self._database.sync()

    def close(self) -> None:
        """Close the files."""
        self._database.close()
