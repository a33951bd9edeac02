"""Compute the difference between a prediction and a measurement, from two samples.

Errors are signed shares of the measured value: +0.1 means that the prediction is a tenth too high. Quantiles are those
of `sim.results.tables`: the smallest value that the stated share does not exceed.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import combinations
from math import inf, nan, sqrt

import numpy as np

from tornpage.sim.device.calibration import ks_distance
from tornpage.sim.distributions import Floats, Int64s
from tornpage.sim.results.tables import quantile

__all__ = ["DEMERIT_POINTS", "Scores", "demerit", "floor_of", "kendall_tau", "largest", "relative_error", "score"]

SPLITS = 60
"""The number of random splits into halves that a floor comes from."""
FLOOR_SHARE = 0.9
DEMERIT_POINTS = 1_000
"""The number of evenly spread quantiles that the demerit figure compares."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The differences of two samples of latencies, and of other results of the two runs."""

    p50: float
    p90: float
    p99: float
    ks: float
    """Largest vertical distance of the two distribution functions."""
    demerit: float
    """Their horizontal distance, root mean square, over the measured mean (Ruemmler and Wilkes, 1994)."""
    flushes: float
    """Error of the number of flushes."""
    at_risk: float
    """Error of the mean number of messages at risk."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The compared results of a run, or of several runs together."""

    latency_ns: Int64s
    flushes_per_s: float
    at_risk: float

    @classmethod
    def joined(cls, parts: "Sequence[Observed]") -> "Observed":
        """Return the results of equally long runs together."""
        return cls(
            np.concatenate([part.latency_ns for part in parts]),
            float(np.mean([part.flushes_per_s for part in parts])),
            float(np.mean([part.at_risk for part in parts])),
        )


def score(measured: Observed, predicted: Observed) -> Scores:
    """Return the errors of a prediction. Raises ValueError when there is nothing to compare."""
    one, two = np.sort(measured.latency_ns), np.sort(predicted.latency_ns)
    if not len(one) or not len(two):
        raise ValueError("a score needs messages on both sides")
    p50, p90, p99 = (relative_error(quantile(one, share), quantile(two, share)) for share in (0.5, 0.9, 0.99))
    return Scores(
        p50=p50,
        p90=p90,
        p99=p99,
        ks=ks_distance(one, two),
        demerit=demerit(one, two),
        flushes=relative_error(measured.flushes_per_s, predicted.flushes_per_s),
        at_risk=relative_error(measured.at_risk, predicted.at_risk),
    )


def floor_of(rounds: Sequence[Observed]) -> Scores:
    """Return what two random halves of these rounds differ by in one of ten splits, or more.

    All figures are absolute values. No prediction can be expected to be more exact. Two halves differ by the square
    root of two more than a prediction and all rounds, if the prediction scatters as the measurement does. That is not
    corrected, so the floor is too high rather than too low. One split would not do: with stalls of a shared disk in a
    few rounds, equal halves are a matter of luck. Raises ValueError for fewer than two rounds.
    """
    if len(rounds) < 2:
        raise ValueError("a floor needs two rounds")
    rng = np.random.default_rng(len(rounds))
    middle = len(rounds) // 2
    splits = []
    for _ in range(SPLITS):
        order = rng.permutation(len(rounds)).tolist()
        one, two = ([rounds[place] for place in part] for part in (order[:middle], order[middle:]))
        splits.append(astuple(score(Observed.joined(one), Observed.joined(two))))
    return Scores(*np.quantile(np.abs(splits), FLOOR_SHARE, axis=0, method="higher").tolist())


def largest(floors: Sequence[Scores]) -> Scores:
    """Return the largest value of each figure."""
    return Scores(*(max(values) for values in zip(*map(astuple, floors), strict=True)))


def relative_error(measured: float, predicted: float) -> float:
    """Return (predicted - measured) / measured; 0 if both are 0.

    The result is infinite if only the measured value is 0.
    """
    if measured:
        return (predicted - measured) / measured
    return 0.0 if not predicted else inf


def demerit(measured: Int64s, predicted: Int64s) -> float:
    """Return the root mean square of the differences of quantiles, over the measured mean.

    Both samples are sorted.
    """
    mean = float(measured.mean())
    apart = _quantiles(predicted) - _quantiles(measured)
    return relative_error(mean, mean + sqrt(float((apart * apart).mean())))


def _quantiles(ordered: Int64s) -> Floats:
    shares = (np.arange(DEMERIT_POINTS) + 0.5) / DEMERIT_POINTS
    return ordered[np.minimum((shares * len(ordered)).astype(np.int64), len(ordered) - 1)].astype(np.float64)


def kendall_tau(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Return how well two lists agree in order: 1 in all pairs, -1 in none.

    The result is nan without distinguishable pairs. Pairs that are equal in the measurement do not count. A tie of the
    prediction counts as half wrong.
    """
    pairs = [
        np.sign(measured[i] - measured[j]) * np.sign(predicted[i] - predicted[j])
        for i, j in combinations(range(len(measured)), 2)
        if measured[i] != measured[j]
    ]
    return float(sum(pairs) / len(pairs)) if pairs else nan
