"""LMDB through py-lmdb as a key-value store with transactions."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lmdb

from tornpage.properties.foreign.shapes.adapters import KeyValueStore

__all__ = ["LmdbValues"]

_CREATED = b"\0created"


class LmdbValues(KeyValueStore):
    """One database. A batch is a transaction, and the first open commits one."""

    promises: Mapping[str, Any] = {"durable": "put", "kill": "put", "batch": "atomic"}
    open_many = True

    def __init__(self, directory: Path | str) -> None:
        """Open or recover the environment."""
        self._environment = lmdb.open(str(directory), map_size=1 << 20)
        with self._environment.begin() as reading:
            is_new = reading.get(_CREATED) is None
        if is_new:
            with self._environment.begin(write=True) as writing:
                writing.put(_CREATED, b"")

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self.batch([(key, value)])

    def delete(self, key: str) -> None:
        """Remove a key."""
        self.batch([(key, None)])

    def get(self, key: str) -> bytes | None:
        """Return the value of a key."""
        with self._environment.begin() as reading:
            value = reading.get(key.encode())
            return None if value is None else bytes(value)

    def scan(self) -> Iterable[tuple[str, bytes]]:
        """Return all pairs."""
        with self._environment.begin() as reading:
            return [(bytes(key).decode(), bytes(value)) for key, value in reading.cursor() if key != _CREATED]

    def batch(self, changes: Sequence[tuple[str, bytes | None]]) -> None:
        """Make several changes in one transaction."""
        with self._environment.begin(write=True) as writing:
            for key, value in changes:
                if value is None:
                    writing.delete(key.encode())
                else:
                    writing.put(key.encode(), value)

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()
