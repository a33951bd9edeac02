"""Random streams: one per actor and purpose, made from the seed and a name.

A stream does not know how many others there are, so that a new actor, or one that draws more, shifts nobody else:
two policies under one seed meet the same arrivals and the same sizes.
"""

import numpy as np

from sim.distributions import Constant, Distribution, Int64s

__all__ = ["Draws", "stream"]

BLOCK = 1024


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the stream called `name` of the run with this seed (0 or more)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(name.encode()))))


class Draws:
    """Durations of one law from one stream, one or many at a time."""

    def __init__(self, law: Distribution, rng: np.random.Generator) -> None:
        self._law = law
        self._rng = rng
        self._constant_ns = law.value_ns if isinstance(law, Constant) else None
        self._ready: list[int] = []

    def next_ns(self) -> int:
        """Return the next duration. Drawn in blocks, since a call for each would cost more than the rest of a flush."""
        if self._constant_ns is not None:
            return self._constant_ns
        if not self._ready:
            self._ready = self._law.draw(self._rng, BLOCK)[::-1].tolist()
        return self._ready.pop()

    def take(self, count: int) -> Int64s:
        """Return the next `count` durations."""
        return np.array([self.next_ns() for _ in range(count)], dtype=np.int64)
