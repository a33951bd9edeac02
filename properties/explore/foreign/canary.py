"""Provide stores with false promises, the canaries that each campaign must catch.

They answer before anything has left the process, so that a kill loses what they promised to keep.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tornpage.properties.foreign.reference_store import ReferenceStore
from tornpage.properties.foreign.shapes.memory import MemoryFiles, MemoryKeyValue, MemoryLog, MemoryQueues

__all__ = ["LyingStore", "open_file", "open_key_value", "open_log", "open_queue", "open_store"]


class LyingStore:
    """Keep everything in memory and promise that it survives."""

    name = "canary"

    def __init__(self) -> None:
        self._store = ReferenceStore()

    @property
    def promises(self) -> Mapping[str, Any]:
        """Return its promises, which are all of them."""
        return self._store.promises

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        """Put a message."""
        return self._store.put(topic, queue, body, keys)

    def get(self, offset: int) -> bytes | None:
        """Get a message."""
        return self._store.get(offset)

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        """Read a message of a queue."""
        return self._store.read(topic, queue, number)

    def find(self, topic: str, key: str) -> list[bytes]:
        """Find messages by key."""
        return self._store.find(topic, key)

    def flush(self) -> None:
        """Answer that everything is safe."""

    def close(self) -> None:
        """Forget everything."""


def open_store(directory: Path) -> LyingStore:
    """Open the store, which is empty."""
    return LyingStore()


def open_key_value(directory: Path) -> MemoryKeyValue:
    """Open a key-value store in memory, which promises that each write survives."""
    return MemoryKeyValue()


def open_queue(directory: Path) -> MemoryQueues:
    """Open a store of queues in memory, which promises that each message survives."""
    return MemoryQueues()


def open_log(directory: Path) -> MemoryLog:
    """Open a log in memory, which promises that each entry survives."""
    return MemoryLog()


def open_file(directory: Path) -> MemoryFiles:
    """Open a library of files in memory, which promises that each write survives."""
    return MemoryFiles()
