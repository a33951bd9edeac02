"""Provide stores of each shape in memory that follow the model, crash faults included.

A reference keeps its promises: after `crash` it has a legal state, by default the smallest one. Several threads may
call it. As a target it is a liar, because a process kill takes what it promised to keep.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tornpage.properties.foreign.reference_store import CrashFault
from tornpage.properties.foreign.shapes.adapters import FileStore, KeyValueStore, LogStore, QueueStore
from tornpage.properties.foreign.shapes.file import FilePromises, WholeFile
from tornpage.properties.foreign.shapes.history import Effect, History
from tornpage.properties.foreign.shapes.key_value import KeyValue, KeyValuePromises
from tornpage.properties.foreign.shapes.language import promises_of
from tornpage.properties.foreign.shapes.log import Entries, Log, LogPromises
from tornpage.properties.foreign.shapes.queue import Queue, QueuePromises
from tornpage.properties.foreign.shapes.shape import Shape

__all__ = ["MemoryFiles", "MemoryKeyValue", "MemoryLog", "MemoryQueues"]


class _Memory:
    """Hold a history, and keep what is promised in it."""

    _shape: Shape
    _state: History

    def _begin(self, shape: Shape) -> None:
        self._shape = shape
        self._state = History()
        self._lock = threading.RLock()

    def _write(self, *effects: Effect, points: Sequence[str] = ()) -> None:
        with self._lock:
            before = self._state.serials
            self._state = self._state.added(effects)
            for point in points or (self._shape.WRITE,):
                self._state = self._state.after(point, point, self._shape.promises, since=before)

    def _now(self, cell: str) -> Any:
        return self._shape.value(cell, [effect for effect in self._state.effects if effect.cell == cell])

    def flush(self) -> None:
        """Flush, and keep what a flush promises."""
        self._state = self._state.after("flush", "flush", self._shape.promises)

    def close(self) -> None:
        """Close, and keep what a close promises."""
        self._state = self._state.after("close", "close", self._shape.promises)

    def crash(self, fault: CrashFault) -> int:
        """Continue after a crash fault with the fewest writes; return the number of lost ones.

        The writes of each cell that come before a promised one, and batches with a promised one, are left.
        """
        before = self._state
        kept: set[int] = set()
        while True:
            floors: dict[str, int] = {}
            groups = {effect.group for effect in before.effects if effect.group and effect.serial in kept}
            for effect in before.effects:
                if effect.promised(fault) or effect.group in groups:
                    floors[self._row(effect)] = effect.serial
            more = {effect.serial for effect in before.effects if effect.serial <= floors.get(self._row(effect), 0)}
            if more == kept:
                break
            kept = more
        self._state = before.cut_to([effect for effect in before.effects if effect.serial in kept])
        return len(before.effects) - len(kept)

    def _row(self, effect: Effect) -> str:
        """Return the name of the effects that are lost from the end only."""
        if self._shape.promises.ordered:
            return ""
        return f"{effect.cell} {effect.kind == 'front' or effect.kind == 'remove'}"


class MemoryKeyValue(_Memory, KeyValueStore):
    """Store keys and values in memory, as the model does."""

    name: ClassVar[str] = "memory"

    def __init__(self, **promises: Any) -> None:
        given = {"batch": "atomic", **promises}
        self._begin(KeyValue(promises_of(KeyValuePromises, given)))
        self.promises = given

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self._write(Effect(0, 0, key, "put", value))

    def delete(self, key: str) -> None:
        """Remove a key; it may be missing."""
        self._write(Effect(0, 0, key, "delete"))

    def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None if there is none."""
        value: bytes | None = self._now(key)
        return value

    def scan(self) -> Iterable[tuple[str, bytes]]:
        """Return all pairs of key and value."""
        keys = dict.fromkeys(effect.cell for effect in self._state.effects)
        return [(key, value) for key in keys if (value := self.get(key)) is not None]

    def batch(self, changes: Sequence[tuple[str, bytes | None]]) -> None:
        """Set several keys, or remove those with None."""
        with self._lock:
            group = self._state.serials + 1
            self._write(*(Effect(0, 0, key, "put", value, group) for key, value in changes), points=("put", "commit"))


class MemoryQueues(_Memory, QueueStore):
    """Store messages in queues in memory, as the model does."""

    name: ClassVar[str] = "memory"

    def __init__(self, **promises: Any) -> None:
        self._begin(Queue(promises_of(QueuePromises, promises)))
        self.promises = {"delete": True, **promises}
        self._taken: set[int] = set()

    def put(self, queue: str, body: bytes) -> None:
        """Append a message to a queue."""
        self._write(Effect(0, 0, queue, "put", body))

    def take(self, queue: str) -> tuple[Any, bytes] | None:
        """Return the next message of a queue with a handle, or None if there is none."""
        with self._lock:
            bodies = self._alive(queue)
            for serial, body in bodies.items():
                if serial not in self._taken:
                    self._taken.add(serial)
                    if self._shape.promises.take == "removes":
                        self.acknowledge(queue, serial)
                    return serial, body
        return None

    def acknowledge(self, queue: str, handle: Any) -> None:
        """Remove a message that was taken."""
        self._write(Effect(0, 0, queue, "remove", handle), points=("remove",))

    def delete(self, queue: str) -> None:
        """Remove all messages of a queue."""
        self._write(Effect(0, 0, queue, "delete"), points=("remove",))

    def list(self, queue: str) -> Iterable[bytes]:
        """Return the messages of a queue, oldest first."""
        return self._alive(queue).values()

    def crash(self, fault: CrashFault) -> int:
        """Continue after a crash fault; every message can be taken again."""
        self._taken = set()
        return super().crash(fault)

    def _alive(self, queue: str) -> dict[int, bytes]:
        bodies = set(self._now(queue))
        puts = [e for e in self._state.effects if e.cell == queue and e.kind == "put" and e.value in bodies]
        return {effect.serial: effect.value for effect in puts}


class MemoryLog(_Memory, LogStore):
    """Store the entries of a log in memory, as the model does."""

    name: ClassVar[str] = "memory"
    _CELL: ClassVar[str] = "the log"

    def __init__(self, **promises: Any) -> None:
        given = {"truncate": "both", **promises}
        self._begin(Log(promises_of(LogPromises, given)))
        self.promises = given
        self._next = 0

    def append(self, body: bytes) -> int:
        """Append an entry; return its index."""
        with self._lock:
            entries: Entries = self._now(self._CELL)
            index = entries[-1][0] + 1 if entries else self._next
            self._next = index + 1
            self._write(Effect(0, 0, self._CELL, "append", (index, body)))
            return index

    def read(self, index: int) -> bytes | None:
        """Return the entry at an index, or None if there is none."""
        return dict(self._now(self._CELL)).get(index)

    def bounds(self) -> tuple[int, int] | None:
        """Return the indexes of the first and the last entry, or None for an empty log."""
        entries: Entries = self._now(self._CELL)
        return (entries[0][0], entries[-1][0]) if entries else None

    def truncate_front(self, index: int) -> None:
        """Remove the entries before an index."""
        self._write(Effect(0, 0, self._CELL, "front", index), points=("remove",))

    def truncate_back(self, index: int) -> None:
        """Remove the entries after an index."""
        self._write(Effect(0, 0, self._CELL, "back", index), points=("remove",))


class MemoryFiles(_Memory, FileStore):
    """Store whole files in memory, as the model does."""

    name: ClassVar[str] = "memory"

    def __init__(self, **promises: Any) -> None:
        given = {"remove": True, **promises}
        self._begin(WholeFile(promises_of(FilePromises, given)))
        self.promises = given

    def write(self, name: str, content: bytes) -> None:
        """Create a file, or replace its content."""
        self._write(Effect(0, 0, name, "write", content))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is none."""
        content: bytes | None = self._now(name)
        return content

    def remove(self, name: str) -> None:
        """Remove a file; it may be missing."""
        self._write(Effect(0, 0, name, "remove"))
