"""Provide stores of each shape in memory: references that follow the model, crash faults included.

A reference keeps its promises: after `crash` it has a legal state, by default the smallest one. As a target it is a
liar, because a process kill takes what it promised to keep.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tornpage.properties.foreign.shapes.adapters import KeyValueStore
from tornpage.properties.foreign.shapes.history import Effect, History, cuts
from tornpage.properties.foreign.shapes.key_value import KeyValue, KeyValuePromises
from tornpage.properties.foreign.shapes.language import Fault, promises_of
from tornpage.properties.foreign.shapes.shape import Shape

__all__ = ["MemoryKeyValue"]


class _Memory:
    """Hold a history, and keep what is promised in it."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.state = History()

    def _write(self, *effects: Effect, commit: bool = False) -> None:
        before = self.state.serials
        self.state = self.state.added(effects)
        for point in [self._shape.WRITE, *(["commit"] if commit else [])]:
            self.state = self.state.after(point, point, self._shape.promises, since=before)

    def _now(self, cell: str) -> Any:
        return self._shape.value(cell, [effect for effect in self.state.effects if effect.cell == cell])

    def flush(self) -> None:
        """Flush, and keep what a flush promises."""
        self.state = self.state.after("flush", "flush", self._shape.promises)

    def close(self) -> None:
        """Close, and keep what a close promises."""
        self.state = self.state.after("close", "close", self._shape.promises)

    def crash(self, fault: Fault) -> int:
        """Continue after a crash fault with the fewest writes that it may leave; return the number of lost ones."""
        promises, before = self._shape.promises, self.state
        cells = {effect.cell for effect in before.effects}
        rows = [before.effects] if promises.ordered else [[e for e in before.effects if e.cell == c] for c in cells]
        kept = [effect for row in rows for effect in list(cuts(row, fault))[-1]]
        whole = {effect.group for effect in kept if effect.group}
        kept += [effect for effect in before.effects if effect.group in whole and effect not in kept]
        self.state = before.cut_to(kept)
        return len(before.effects) - len(kept)


class MemoryKeyValue(_Memory, KeyValueStore):
    """Store keys and values in memory, as the model does."""

    name: ClassVar[str] = "memory"

    def __init__(self, **promises: Any) -> None:
        given = {"batch": "atomic", **promises}
        super().__init__(KeyValue(promises_of(KeyValuePromises, given)))
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
        keys = dict.fromkeys(effect.cell for effect in self.state.effects)
        return [(key, value) for key in keys if (value := self.get(key)) is not None]

    def batch(self, changes: Sequence[tuple[str, bytes | None]]) -> None:
        """Set several keys, or remove those with None."""
        group = self.state.serials + 1
        self._write(*(Effect(0, 0, key, "put", value, group) for key, value in changes), commit=True)
