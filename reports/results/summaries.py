"""Compute the few numbers of figures and sentences from rows; nothing is drawn here.

Zero has no place on a log axis. Summaries of log-scaled figures have a `floor`, a value below every positive one, where
plots put the zeros.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from tornpage.reports.results.tables import ActivationRow, DiscoveryRow, LatencyRow, RiskRow, StallRow

__all__ = [
    "QUANTILES",
    "Activation",
    "Discovery",
    "Frontier",
    "LatencyCurve",
    "RiskCurve",
    "StallGroup",
    "Stalls",
    "summarise_activation",
    "summarise_discovery",
    "summarise_frontier",
    "summarise_put_latency",
    "summarise_stalls",
    "zero_floor",
]

QUANTILES = (0.5, 0.9, 0.99, 0.999)
_RESOLUTION_US = 0.001
"""Simulated time is whole nanoseconds; a latency of 0 is drawn as one of them."""
_POINTS_PER_DECADE = 48


@dataclass(frozen=True, slots=True)
class LatencyCurve:
    """A put latency CDF, thinned for a log axis.

    After `latency_us[i]`, `fraction[i]` of the puts have returned. `quantiles_us` goes with QUANTILES, and uses all
    given points. It is None where the curve does not reach so far. `marked` are the points at the quantiles.
    """

    policy: str
    latency_us: tuple[float, ...]
    fraction: tuple[float, ...]
    quantiles_us: tuple[float | None, ...]
    marked: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """One policy, a point per rate, rates rising."""

    policy: str
    rate_per_s: tuple[float, ...]
    put_p99_us: tuple[float, ...]
    messages_mean: tuple[float, ...]
    messages_p99: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Frontier:
    """The cost and the risk of each policy; `floor_messages` is None if no point is zero."""

    curves: tuple[RiskCurve, ...]
    rates_per_s: tuple[float, ...]
    floor_messages: float | None


@dataclass(frozen=True, slots=True)
class StallGroup:
    """The stalls of one preallocation policy, by roll, and their quartiles.

    Quartiles are linear between neighbours.
    """

    allocation: str
    stall_us: tuple[float, ...]
    low_us: float
    median_us: float
    high_us: float
    max_us: float


@dataclass(frozen=True, slots=True)
class Stalls:
    """`floor_us` is None if no stall is zero."""

    groups: tuple[StallGroup, ...]
    floor_us: float | None


@dataclass(frozen=True, slots=True)
class Discovery:
    """The number of new images and recovered logs over states.

    The tail is the last tenth of the effort: the states above `tail_states`. Between rows the curves are straight.
    """

    states: tuple[int, ...]
    images: tuple[int, ...]
    recovered: tuple[int, ...]
    tail_states: float
    tail_images: float
    tail_recovered: float

    @property
    def tail_images_per_1000(self) -> float:
        """New images per 1,000 states in the tail."""
        return 1000 * self.tail_images / (self.states[-1] - self.tail_states)


@dataclass(frozen=True, slots=True)
class Activation:
    """The faults by name, and the names of those without effect."""

    rows: tuple[ActivationRow, ...]
    never_fired: tuple[str, ...]
    never_mattered: tuple[str, ...]


def summarise_put_latency(rows: Iterable[LatencyRow]) -> tuple[LatencyCurve, ...]:
    """Return a curve per policy, policies in the order of the rows."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points.setdefault(row.policy, []).append((max(row.latency_us, _RESOLUTION_US), row.fraction))
    return tuple(_curve(policy, sorted(found)) for policy, found in points.items())


def summarise_frontier(rows: Sequence[RiskRow]) -> Frontier:
    """Return a curve per policy, policies in the order of the rows."""
    by_policy: dict[str, list[RiskRow]] = {}
    for row in rows:
        by_policy.setdefault(row.policy, []).append(row)
    curves = []
    for policy, found in by_policy.items():
        found.sort(key=lambda row: row.rate_per_s)
        curves.append(
            RiskCurve(
                policy,
                tuple(row.rate_per_s for row in found),
                tuple(max(row.put_p99_us, _RESOLUTION_US) for row in found),
                tuple(row.at_risk_messages_mean for row in found),
                tuple(row.at_risk_messages_p99 for row in found),
            )
        )
    counts = [count for row in rows for count in (row.at_risk_messages_mean, row.at_risk_messages_p99)]
    return Frontier(tuple(curves), tuple(sorted({row.rate_per_s for row in rows})), zero_floor(counts))


def summarise_stalls(rows: Sequence[StallRow]) -> Stalls:
    """Return a group per preallocation policy, policies in the order of the rows."""
    by_policy: dict[str, list[StallRow]] = {}
    for row in rows:
        by_policy.setdefault(row.allocation, []).append(row)
    groups = []
    for allocation, found in by_policy.items():
        stalls = tuple(row.stall_us for row in sorted(found, key=lambda row: row.roll))
        low, median, high = (float(q) for q in np.quantile(stalls, (0.25, 0.5, 0.75)))
        groups.append(StallGroup(allocation, stalls, low, median, high, max(stalls)))
    return Stalls(tuple(groups), zero_floor([row.stall_us for row in rows]))


def summarise_discovery(rows: Sequence[DiscoveryRow]) -> Discovery | None:
    """Return the curve, or None without any explored state.

    Of rows with equal states the last counts.
    """
    by_states = {row.states: row for row in rows if row.states}
    if not by_states:
        return None
    curve = [by_states[states] for states in sorted(by_states)]
    states = [row.states for row in curve]
    images = [row.distinct_images for row in curve]
    recovered = [row.distinct_recovered for row in curve]
    tail = 0.9 * states[-1]
    return Discovery(
        tuple(states),
        tuple(images),
        tuple(recovered),
        tail,
        images[-1] - float(np.interp(tail, [0, *states], [0, *images])),
        recovered[-1] - float(np.interp(tail, [0, *states], [0, *recovered])),
    )


def summarise_activation(rows: Iterable[ActivationRow]) -> Activation:
    """Return the faults by name, and those that never fired or had no effect."""
    ordered = tuple(sorted(rows, key=lambda row: row.fault))
    return Activation(
        ordered,
        tuple(row.fault for row in ordered if not row.fired),
        tuple(row.fault for row in ordered if row.fired and not row.mattered),
    )


def _curve(policy: str, points: list[tuple[float, float]]) -> LatencyCurve:
    """Return a curve; `points` are sorted, and fractions rise with latencies."""
    quantiles = tuple(next((us for us, fraction in points if fraction >= q), None) for q in QUANTILES)
    bins = groupby(points, key=lambda point: math.floor(_POINTS_PER_DECADE * math.log10(point[0])))
    thinned = [(points[0][0], 0.0), points[0], *(list(found)[-1] for _, found in bins)]
    thinned = list(dict.fromkeys(thinned))
    latencies, fractions = (tuple(values) for values in zip(*thinned, strict=True))
    marked = [next((n for n, fraction in enumerate(fractions) if fraction >= q), None) for q in QUANTILES]
    return LatencyCurve(
        policy, latencies, fractions, quantiles, tuple(dict.fromkeys(n for n in marked if n is not None))
    )


def zero_floor(values: Sequence[float]) -> float | None:
    """Return half a decade below the decade of the smallest positive value.

    The result is None if no value is zero.
    """
    if all(values):
        return None
    positive = [value for value in values if value > 0]
    return 10 ** (math.floor(math.log10(min(positive))) - 0.5) if positive else 1.0
