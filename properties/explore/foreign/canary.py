"""Provide stores with false promises, the canaries that each campaign must catch.

They answer before anything has left the process, so that a kill loses what they promised to keep. Those with
concurrent callers keep each call of a single caller. Of two overlapping calls they keep the first one alone.
"""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tornpage.properties.foreign.reference_store import ReferenceStore
from tornpage.properties.foreign.shapes.adapters import FileStore, KeyValueStore, LogStore
from tornpage.properties.foreign.shapes.memory import MemoryFiles, MemoryKeyValue, MemoryLog, MemoryQueues

__all__ = [
    "LyingStore",
    "OverlappingAppends",
    "OverlappingPuts",
    "OverlappingTakes",
    "OverlappingWrites",
    "open_file",
    "open_key_value",
    "open_log",
    "open_queue",
    "open_store",
    "open_takes",
]

_MEETING_SECONDS = 1.0
"""How long a call of a liar waits for one that overlaps it."""


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


class _Overlapping:
    """Keep a list of texts in a file, and notice calls that overlap."""

    promises: Mapping[str, Any] = {"callers": 2}

    def __init__(self, directory: Path) -> None:
        self._path = Path(directory, "canary")
        self._texts: list[Any] = json.loads(self._path.read_text()) if self._path.exists() else []
        self._meeting = threading.Barrier(2)
        self._first = threading.Event()

    def _keep(self, *text: Any) -> int:
        """Keep a text, and return its number.

        Of two overlapping calls the later one does not reach the file.
        """
        try:
            is_later = self._meeting.wait(_MEETING_SECONDS) == 1
        except threading.BrokenBarrierError:
            self._meeting.reset()
            is_later = False
        if is_later:
            self._first.wait(_MEETING_SECONDS)
            self._first.clear()
        else:
            there = json.loads(self._path.read_text()) if self._path.exists() else []
            self._path.write_text(json.dumps([*there, text]))
        self._texts.append(text)
        self._first.set()
        return len(self._texts) - 1

    def _value(self, name: str) -> bytes | None:
        found = [value for each, value in self._texts if each == name]
        return bytes.fromhex(found[-1]) if found else None


class OverlappingPuts(_Overlapping, KeyValueStore):
    """Lose the later one of two overlapping puts, after it has been read."""

    name: ClassVar[str] = "canary"

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self._keep(key, value.hex())

    def get(self, key: str) -> bytes | None:
        """Return the value of a key."""
        return self._value(key)

    def scan(self) -> Iterable[tuple[str, bytes]]:
        """Return all pairs."""
        return [(key, value) for key in dict(self._texts) if (value := self._value(key)) is not None]


class OverlappingWrites(_Overlapping, FileStore):
    """Lose the later one of two overlapping writes of a file, after it has been read."""

    name: ClassVar[str] = "canary"

    def write(self, name: str, content: bytes) -> None:
        """Replace the content of a file."""
        self._keep(name, content.hex())

    def read(self, name: str) -> bytes | None:
        """Return the content of a file."""
        return self._value(name)


class OverlappingAppends(_Overlapping, LogStore):
    """Lose the later one of two overlapping appends."""

    name: ClassVar[str] = "canary"

    def append(self, body: bytes) -> int:
        """Append an entry; return its index."""
        return self._keep(body.hex())

    def read(self, index: int) -> bytes | None:
        """Return an entry."""
        return bytes.fromhex(self._texts[index][0]) if index < len(self._texts) else None

    def bounds(self) -> tuple[int, int] | None:
        """Return the indexes of the first and the last entry."""
        return (0, len(self._texts) - 1) if self._texts else None


class OverlappingTakes(MemoryQueues):
    """Give one message to two overlapping takes."""

    name: ClassVar[str] = "canary"

    def __init__(self) -> None:
        super().__init__(callers=2)
        self._meeting = threading.Barrier(2)

    def take(self, queue: str) -> tuple[Any, bytes] | None:
        """Return the next message."""
        there = list(self._alive(queue).items())
        try:
            self._meeting.wait(_MEETING_SECONDS)
        except threading.BrokenBarrierError:
            self._meeting.reset()
        return there[0] if there else None


def open_takes(directory: Path) -> OverlappingTakes:
    """Open a store of queues in memory, which gives one message to two takes."""
    return OverlappingTakes()
