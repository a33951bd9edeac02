"""LMDB through py-lmdb."""

from collections.abc import Iterable

import lmdb

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["LmdbLog"]

_CREATED = b"created"


class LmdbLog(RecordLog):
    """One database; each put is a transaction.

    The first open commits one too, as an application does that stores its schema version.
    """

    name = "LMDB"
    open_many = True

    def _open(self, sync: bool = True, metasync: bool = True) -> None:
        self._environment = lmdb.open(str(self.directory), map_size=1 << 20, sync=sync, metasync=metasync)
        with self._environment.begin() as reading:
            is_new = reading.get(_CREATED) is None
        if is_new:
            with self._environment.begin(write=True) as writing:
                writing.put(_CREATED, b"")

    def _records(self) -> Iterable[str]:
        with self._environment.begin() as reading:
            return [bytes(value).decode() for key, value in reading.cursor() if key != _CREATED]

    def _push(self, number: int, record: str) -> None:
        with self._environment.begin(write=True) as writing:
            writing.put(number.to_bytes(8, "big"), record.encode())

    def flush(self) -> None:
        """Sync the environment."""
        self._environment.sync(True)

    def close(self) -> None:
        """Sync and close the environment; without its syncs a close of LMDB makes nothing durable."""
        self._environment.sync(True)
        self._environment.close()
