"""diskcache.Cache as a key-value store with transactions."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from diskcache import Cache

from tornpage.properties.foreign.shapes.adapters import KeyValueStore

__all__ = ["CacheValues"]


class CacheValues(KeyValueStore):
    """One cache that evicts nothing. A batch is a transaction."""

    promises: Mapping[str, Any] = {"durable": "nothing", "kill": "put", "batch": "atomic"}
    open_many = True

    def __init__(self, directory: Path | str) -> None:
        """Open or recover the cache."""
        self._cache = Cache(str(directory), eviction_policy="none")

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self._cache.set(key, value)

    def delete(self, key: str) -> None:
        """Remove a key."""
        self._cache.delete(key)

    def get(self, key: str) -> bytes | None:
        """Return the value of a key."""
        value = self._cache.get(key)
        return None if value is None else bytes(value)

    def scan(self) -> Iterable[tuple[str, bytes]]:
        """Return all pairs."""
        return [(key, bytes(self._cache[key])) for key in self._cache.iterkeys()]

    def batch(self, changes: Sequence[tuple[str, bytes | None]]) -> None:
        """Make several changes in one transaction."""
        with self._cache.transact():
            for key, value in changes:
                if value is None:
                    self._cache.delete(key)
                else:
                    self._cache.set(key, value)

    def close(self) -> None:
        """Close the connection."""
        self._cache.close()
