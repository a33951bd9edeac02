"""Who sends what, when: values only. The actors that live by them are in `sim.actors`."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from sim.distributions import NO_TIME, Distribution, Int64s

__all__ = ["ClosedLoop", "OpenPoisson", "Sizes", "Workload"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of whole records, evenly spread over `smallest_bytes` to `largest_bytes`, both included."""

    smallest_bytes: int
    largest_bytes: int

    def __post_init__(self) -> None:
        if not 1 <= self.smallest_bytes <= self.largest_bytes:
            raise ValueError(f"record sizes from {self.smallest_bytes} to {self.largest_bytes} bytes are impossible")

    @classmethod
    def of(cls, size_bytes: int) -> "Sizes":
        """Return records of one size."""
        return cls(size_bytes, size_bytes)

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        """Return `count` sizes."""
        return rng.integers(self.smallest_bytes, self.largest_bytes, count, dtype=np.int64, endpoint=True)


@dataclass(frozen=True, slots=True)
class OpenPoisson:
    """Many producers that know nothing of each other: arrivals at random, `rate_per_s` in the mean, whatever waits."""

    rate_per_s: float
    sizes: Sizes

    def __post_init__(self) -> None:
        if not (isfinite(self.rate_per_s) and self.rate_per_s > 0):
            raise ValueError(f"a rate of {self.rate_per_s} messages/s is impossible")

    @property
    def name(self) -> str:
        return f"open {self.rate_per_s:g}/s"

    def draw_gaps(self, rng: np.random.Generator, count: int) -> Int64s:
        """Return the ns between `count` arrivals and the ones before them."""
        return np.rint(rng.exponential(1e9 / self.rate_per_s, count)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """`producers` that each think, put, and wait for the answer before they think again."""

    producers: int
    sizes: Sizes
    think: Distribution = NO_TIME

    def __post_init__(self) -> None:
        if self.producers < 1:
            raise ValueError(f"a closed loop of {self.producers} producers is impossible")

    @property
    def name(self) -> str:
        return f"closed {self.producers}"


Workload = OpenPoisson | ClosedLoop
