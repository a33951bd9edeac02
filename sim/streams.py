"""Random streams: one per actor and purpose, made from the seed and a name.

A stream is independent of the number of other streams. So a new actor, or more draws of one, does not change the values
of the others: two policies under one seed meet the same arrivals and the same sizes.
"""

from typing import Protocol

import numpy as np

from tornpage.sim.distributions import Constant, Int64s

__all__ = ["Draws", "Law", "stream"]

BLOCK = 1024


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the stream called `name` of the run with this seed (0 or more)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(name.encode()))))


class Law(Protocol):
    """A law from which values can be drawn: durations, sizes."""

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        """Return `count` independent values; two calls give the values of one longer call."""


class Draws:
    """Values of one law from one stream, one or many at a time."""

    def __init__(self, law: Law, rng: np.random.Generator) -> None:
        self._law = law
        self._rng = rng
        self._constant = law.value_ns if isinstance(law, Constant) else None
        self._ready: list[int] = []

    def next(self) -> int:
        """Return the next value.

        Values are drawn in blocks, since a call for each would cost more than the rest of a flush.
        """
        if self._constant is not None:
            return self._constant
        if not self._ready:
            self._ready = self._law.draw(self._rng, BLOCK)[::-1].tolist()
        return self._ready.pop()

    def take(self, count: int) -> Int64s:
        """Return the next `count` values."""
        return np.array([self.next() for _ in range(count)], dtype=np.int64)
