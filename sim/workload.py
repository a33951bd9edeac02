"""Workloads as values: what producers send and when.

The actors are in `sim.actors.producers`.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np

from tornpage.sim.distributions import NO_TIME, Distribution, Int64s

__all__ = ["ArrivalClock", "ClosedLoop", "OnOffBursts", "OpenLoad", "OpenPoisson", "Sizes", "Workload"]

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of whole records, spread evenly over `smallest_bytes` to `largest_bytes`."""

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
    """Many independent producers: random arrivals, `rate_per_s` on average, whatever waits."""

    rate_per_s: float
    sizes: Sizes

    def __post_init__(self) -> None:
        if not (isfinite(self.rate_per_s) and self.rate_per_s > 0):
            raise ValueError(f"a rate of {self.rate_per_s} messages/s is impossible; give a number above 0")

    @property
    def name(self) -> str:
        return f"open {self.rate_per_s:g}/s"

    def clock(self, rng: np.random.Generator) -> "ArrivalClock":
        """Return the moments of arrival, from the first."""
        return _Poisson(1e9 / self.rate_per_s, rng)

    def expected_messages(self, duration_ns: int) -> float:
        """Return the mean number of messages that arrive in `duration_ns`."""
        return self.rate_per_s * duration_ns / NS_PER_S

    def lasts_ns(self, messages: int) -> float:
        """Return the mean time in which `messages` arrive."""
        return messages / self.rate_per_s * NS_PER_S


@dataclass(frozen=True, slots=True)
class OnOffBursts:
    """Open producers in bursts.

    They send `burst_rate_per_s` for `burst_ns`, then `rest_rate_per_s` for `rest_ns`, in a loop. The first burst begins
    at once. Within a burst, and between two, arrivals are random.
    """

    burst_rate_per_s: float
    burst_ns: int
    rest_ns: int
    sizes: Sizes
    rest_rate_per_s: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.burst_rate_per_s) and self.burst_rate_per_s > 0):
            raise ValueError(f"bursts of {self.burst_rate_per_s} messages/s are impossible")
        if not (isfinite(self.rest_rate_per_s) and self.rest_rate_per_s >= 0):
            raise ValueError(f"a rate of {self.rest_rate_per_s} messages/s between bursts is impossible")
        if self.burst_ns < 1 or self.rest_ns < 1:
            raise ValueError(f"bursts of {self.burst_ns} ns every {self.burst_ns + self.rest_ns} ns are impossible")

    @property
    def name(self) -> str:
        rest = f", {self.rest_rate_per_s:g}/s" if self.rest_rate_per_s else ""
        return f"bursts {self.burst_rate_per_s:g}/s for {self.burst_ns / 1e6:g} ms{rest} for {self.rest_ns / 1e6:g} ms"

    @property
    def rate_per_s(self) -> float:
        """The mean rate over whole periods."""
        mass = self.burst_rate_per_s * self.burst_ns + self.rest_rate_per_s * self.rest_ns
        return mass / (self.burst_ns + self.rest_ns)

    def clock(self, rng: np.random.Generator) -> "ArrivalClock":
        """Return the moments of arrival, from the first."""
        return _Bursts(self, rng)

    def expected_messages(self, duration_ns: int) -> float:
        """Return the mean number of messages that arrive in `duration_ns`.

        A period that has begun counts whole.
        """
        period_ns = self.burst_ns + self.rest_ns
        return self.rate_per_s * period_ns * -(-duration_ns // period_ns) / NS_PER_S

    def lasts_ns(self, messages: int) -> float:
        """Return the mean time in which `messages` arrive; a period that has begun counts whole."""
        return messages / self.rate_per_s * NS_PER_S + self.burst_ns + self.rest_ns


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

    def lasts_ns(self, messages: int) -> float:
        """Return the mean time in which `messages` arrive if answers took no time.

        A lap that has begun counts whole.
        """
        return (messages / self.producers + 1) * self.think.mean_ns


OpenLoad = OpenPoisson | OnOffBursts
Workload = OpenLoad | ClosedLoop


class ArrivalClock(Protocol):
    """Moments of arrival that continue from call to call."""

    def take(self, count: int) -> Int64s:
        """Return the next `count` moments, ns since the start, in order."""


class _Poisson:
    """Gaps are whole ns, each rounded by itself."""

    def __init__(self, mean_gap_ns: float, rng: np.random.Generator) -> None:
        self._mean_gap_ns = mean_gap_ns
        self._rng = rng
        self._last_ns = 0

    def take(self, count: int) -> Int64s:
        gaps = self._rng.exponential(self._mean_gap_ns, count)
        np.rint(gaps, out=gaps)
        moments = gaps.astype(np.int64)
        moments[0] += self._last_ns
        np.cumsum(moments, out=moments)
        self._last_ns = int(moments[-1])
        return moments


class _Bursts:
    """A Poisson stream of one message per unit; units pass at the current rate."""

    def __init__(self, load: OnOffBursts, rng: np.random.Generator) -> None:
        self._load = load
        self._rng = rng
        self._periods = 0
        self._units = 0.0
        """The units passed since the start of that period."""

    def take(self, count: int) -> Int64s:
        load = self._load
        burst_per_ns, rest_per_ns = load.burst_rate_per_s / NS_PER_S, load.rest_rate_per_s / NS_PER_S
        in_burst = burst_per_ns * load.burst_ns
        in_period = in_burst + rest_per_ns * load.rest_ns
        units = self._units + np.cumsum(self._rng.exponential(1.0, count))
        periods = np.floor(units / in_period)
        units -= periods * in_period
        numbers = self._periods + periods.astype(np.int64)
        self._periods, self._units = int(numbers[-1]), float(units[-1])
        at_ns = units / burst_per_ns
        if rest_per_ns:
            late = units > in_burst
            at_ns[late] = load.burst_ns + (units[late] - in_burst) / rest_per_ns
        within = np.clip(np.rint(at_ns), 0, load.burst_ns + load.rest_ns).astype(np.int64)
        return np.maximum.accumulate(numbers * (load.burst_ns + load.rest_ns) + within)
