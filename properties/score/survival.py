"""Estimate times until a kill with censoring: survival curve, quantiles and intervals.

A trial that ends without a kill only shows that the bug lives longer than the budget. It is censored on the right.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Interval", "Observed", "bootstrap_quantile", "product_limit", "quantile"]

RESAMPLES = 1_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Observed:
    """Hold a time, and whether the bug was killed then.

    If not, the bug was alive and the observation ended.
    """

    time: float
    killed: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """Hold an estimate between two bounds; infinity means a time beyond the budget."""

    value: float
    low: float
    high: float


def product_limit(observed: Sequence[Observed]) -> list[tuple[float, float]]:
    """Return the survival curve as (time, share alive from then on), with a step at each kill.

    Source: E. L. Kaplan, P. Meier: Nonparametric estimation from incomplete observations (1958).
    """
    curve, alive, at_risk = [], 1.0, len(observed)
    for time in sorted({each.time for each in observed}):
        kills = sum(each.killed for each in observed if each.time == time)
        if kills:
            alive *= 1 - kills / at_risk
            curve.append((time, alive))
        at_risk -= sum(each.time == time for each in observed)
    return curve


def quantile(times: Sequence[float], share: float) -> float:
    """Return the time by which a share of the trials had a kill, or infinity if fewer had.

    `times` are those of kills, and infinity for each censored trial. All trials are censored at one budget, so this
    equals the value of the survival curve.
    """
    return sorted(times)[_rank(len(times), share)]


def bootstrap_quantile(times: Sequence[float], share: float, *, seed: int) -> Interval:
    """Return a quantile with its bootstrap interval of 95 % (percentiles of 1,000 resamples)."""
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(np.asarray(times, dtype=float), size=(RESAMPLES, len(times))), axis=1)
    found = np.sort(drawn[:, _rank(len(times), share)])
    margin = (1 - LEVEL) / 2
    low, high = (float(found[_rank(RESAMPLES, bound)]) for bound in (margin, 1 - margin))
    return Interval(quantile(times, share), low, high)


def _rank(count: int, share: float) -> int:
    return max(0, math.ceil(share * count) - 1)
