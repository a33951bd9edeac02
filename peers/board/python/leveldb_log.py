"""LevelDB through plyvel."""

from collections.abc import Iterable

import plyvel

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["LeveldbLog"]


class LeveldbLog(RecordLog):
    """One database; `sync` is the option of each write."""

    name = "LevelDB"

    def _open(self, sync: bool = True) -> None:
        self._sync = sync
        self._database = plyvel.DB(str(self.directory), create_if_missing=True, write_buffer_size=64 << 10)

    def _records(self) -> Iterable[str]:
        return [value.decode() for value in self._database.iterator(include_key=False)]

    def _push(self, number: int, record: str) -> None:
        self._database.put(number.to_bytes(8, "big"), record.encode(), sync=self._sync)

    def close(self) -> None:
        """Close the database."""
        self._database.close()
