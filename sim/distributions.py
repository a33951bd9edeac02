"""Random durations: draws, and exact values for the formulas of `results.analytic`.

Draws are whole nanoseconds, at least 0. The formulas use the real-valued law. "Residual" is the rest of a duration that
is met at a random moment. Its distribution function is the integral of (1 - cdf) over the mean.
"""

from dataclasses import dataclass
from math import erf, exp, isfinite, log, sqrt
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_TIME", "Constant", "Distribution", "Exponential", "Floats", "Int64s", "LogNormal"]

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


class Distribution(Protocol):
    """A law of durations. Frozen and picklable."""

    @property
    def mean_ns(self) -> float:
        """The first moment."""

    @property
    def second_moment_ns2(self) -> float:
        """The mean of the squares."""

    def cdf(self, at_ns: Floats) -> Floats:
        """Return the share of durations that are at most `at_ns`."""

    def residual_cdf(self, at_ns: Floats) -> Floats:
        """Return the share of residual durations that are at most `at_ns`."""

    def quantile(self, share: Floats) -> Floats:
        """Return the duration that a `share` (0 < share < 1) of all durations do not exceed."""

    def laplace(self, per_ns: float) -> float:
        """Return the mean of exp(-per_ns * duration).

        It is the chance that no event of a Poisson stream falls into a duration.
        """

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        """Return `count` independent durations."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Always `value_ns`."""

    value_ns: int

    def __post_init__(self) -> None:
        if self.value_ns < 0:
            raise ValueError(f"a duration is at least 0 ns, not {self.value_ns}")

    @property
    def mean_ns(self) -> float:
        return float(self.value_ns)

    @property
    def second_moment_ns2(self) -> float:
        return float(self.value_ns) ** 2

    def cdf(self, at_ns: Floats) -> Floats:
        return np.where(at_ns >= self.value_ns, 1.0, 0.0)

    def residual_cdf(self, at_ns: Floats) -> Floats:
        return np.clip(at_ns / self.value_ns, 0.0, 1.0) if self.value_ns else np.where(at_ns >= 0, 1.0, 0.0)

    def quantile(self, share: Floats) -> Floats:
        return np.full_like(share, self.value_ns)

    def laplace(self, per_ns: float) -> float:
        return exp(-per_ns * self.value_ns)

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        return np.full(count, self.value_ns, dtype=np.int64)


NO_TIME = Constant(0)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Memoryless, with mean `mean_ns`."""

    mean_ns: float

    def __post_init__(self) -> None:
        if not (isfinite(self.mean_ns) and self.mean_ns > 0):
            raise ValueError(f"an exponential duration needs a mean above 0 ns, not {self.mean_ns}")

    @property
    def second_moment_ns2(self) -> float:
        return 2 * self.mean_ns**2

    def cdf(self, at_ns: Floats) -> Floats:
        return -np.expm1(-np.maximum(at_ns, 0.0) / self.mean_ns)

    def residual_cdf(self, at_ns: Floats) -> Floats:
        return self.cdf(at_ns)

    def quantile(self, share: Floats) -> Floats:
        return -self.mean_ns * np.log1p(-share)

    def laplace(self, per_ns: float) -> float:
        return 1 / (1 + per_ns * self.mean_ns)

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        return np.rint(rng.exponential(self.mean_ns, count)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """exp(normal): median `median_ns`, standard deviation `sigma` of the logarithm."""

    median_ns: float
    sigma: float

    def __post_init__(self) -> None:
        if not (isfinite(self.median_ns) and self.median_ns > 0 and isfinite(self.sigma) and self.sigma > 0):
            raise ValueError(f"a log-normal duration needs a median and a sigma above 0, not {self}")

    @classmethod
    def from_quantiles(cls, *, p50_ns: float, p99_ns: float) -> "LogNormal":
        """Return the law with this median and this 99th percentile."""
        return cls(p50_ns, log(p99_ns / p50_ns) / NormalDist().inv_cdf(0.99))

    @classmethod
    def from_moments(cls, *, mean_ns: float, deviation_ns: float) -> "LogNormal":
        """Return the law with this mean and this standard deviation."""
        variance = log(1 + (deviation_ns / mean_ns) ** 2)
        return cls(mean_ns * exp(-variance / 2), sqrt(variance))

    @property
    def mean_ns(self) -> float:
        return self.median_ns * exp(self.sigma**2 / 2)

    @property
    def second_moment_ns2(self) -> float:
        return self.median_ns**2 * exp(2 * self.sigma**2)

    def cdf(self, at_ns: Floats) -> Floats:
        return _normal_cdf(self._standardised(at_ns))

    def residual_cdf(self, at_ns: Floats) -> Floats:
        z = self._standardised(at_ns)
        below = _normal_cdf(z - self.sigma)  # share of the mean that comes from durations up to at_ns
        return np.maximum(at_ns, 0.0) * (1 - _normal_cdf(z)) / self.mean_ns + below

    def quantile(self, share: Floats) -> Floats:
        normal = NormalDist()
        z = np.array([normal.inv_cdf(float(p)) for p in share])
        return np.asarray(self.median_ns * np.exp(self.sigma * z))

    def laplace(self, per_ns: float) -> float:
        nodes, weights = np.polynomial.hermite_e.hermegauss(128)
        values = np.exp(-per_ns * self.median_ns * np.exp(self.sigma * nodes))
        return float(weights @ values / weights.sum())

    def draw(self, rng: np.random.Generator, count: int) -> Int64s:
        return np.rint(rng.lognormal(log(self.median_ns), self.sigma, count)).astype(np.int64)

    def _standardised(self, at_ns: Floats) -> Floats:
        smallest = np.finfo(np.float64).tiny  # stands for 0, whose logarithm is minus infinity
        return np.asarray((np.log(np.maximum(at_ns, smallest)) - log(self.median_ns)) / self.sigma)


_erf = np.frompyfunc(erf, 1, 1)


def _normal_cdf(z: Floats) -> Floats:
    return (1 + np.asarray(_erf(z / sqrt(2)), dtype=np.float64)) / 2
