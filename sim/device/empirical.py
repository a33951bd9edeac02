"""Measured durations: a draw returns one of them with equal chance."""

from dataclasses import dataclass

import numpy as np

from tornpage.sim.distributions import Floats, Int64s

__all__ = ["Empirical", "Uniform32"]

KEPT = 2_000
"""The number of durations that a law keeps.

It is enough for a 99.9th percentile, and small enough to hash and to send.
"""


@dataclass(frozen=True, slots=True)
class Empirical:
    """`values_ns` in order, at least one; formulas use these values alone."""

    values_ns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.values_ns or min(self.values_ns) < 0 or list(self.values_ns) != sorted(self.values_ns):
            raise ValueError("a measured law needs one duration at least, each 0 ns or more, in order")

    @classmethod
    def of(cls, measured: Int64s) -> "Empirical":
        """Return the law of these durations; many are thinned to evenly spaced ones."""
        ordered = np.sort(measured)
        if len(ordered) > KEPT:
            ordered = ordered[(np.arange(KEPT) * 2 + 1) * len(ordered) // (2 * KEPT)]
        return cls(tuple(ordered.tolist()))

    @property
    def mean_ns(self) -> float:
        return float(np.mean(self._values))

    @property
    def second_moment_ns2(self) -> float:
        return float(np.mean(self._values**2))

    def cdf(self, at_ns: Floats) -> Floats:
        return self._values.searchsorted(at_ns, side="right") / len(self.values_ns)

    def residual_cdf(self, at_ns: Floats) -> Floats:
        values, mean_ns = self._values, self.mean_ns
        if mean_ns == 0:
            return np.where(at_ns >= 0, 1.0, 0.0)
        return np.array([float(np.minimum(values, max(at, 0.0)).mean()) / mean_ns for at in at_ns])

    def quantile(self, share: Floats) -> Floats:
        places = np.ceil(share * len(self.values_ns)).astype(np.int64) - 1
        return np.asarray(self._values[np.clip(places, 0, len(self.values_ns) - 1)])

    def laplace(self, per_ns: float) -> float:
        return float(np.exp(-per_ns * self._values).mean())

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        values = np.array(self.values_ns, np.int64)
        return values[rng.integers(0, len(values), count, dtype=np.int64)]

    @property
    def _values(self) -> Floats:
        return np.array(self.values_ns, np.float64)


@dataclass(frozen=True, slots=True)
class Uniform32:
    """Whole numbers from 0 to 2^32 - 1, which choose among measured values."""

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        """Return `count` of these numbers."""
        return rng.integers(0, 1 << 32, count, dtype=np.int64)
