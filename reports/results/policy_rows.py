"""Rows of the simulated policies: put latency, messages at risk, stalls at file rolls."""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.reports.shape import Count, Positive

__all__ = ["LatencyRow", "RiskRow", "StallRow", "wrong_curves"]


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """A point of a put latency CDF: `fraction` of the puts took at most `latency_us`."""

    policy: str
    latency_us: Positive
    fraction: Positive


@dataclass(frozen=True, slots=True)
class RiskRow:
    """One policy at one rate: put latency, and messages at risk of a power loss."""

    policy: str
    rate_per_s: Positive
    put_p99_us: Positive
    at_risk_messages_mean: Positive
    at_risk_messages_p99: Positive


@dataclass(frozen=True, slots=True)
class StallRow:
    """How long puts stalled at file roll number `roll`."""

    allocation: str
    roll: Count
    stall_us: Positive


def wrong_curves(rows: Sequence[LatencyRow]) -> str | None:
    """Return the error of the curves, or None.

    Errors are a fraction above 1, and one that falls while the latency grows.
    """
    reached: dict[str, float] = {}
    for row in sorted(rows, key=lambda row: (row.latency_us, row.fraction)):
        if row.fraction > 1:
            return f"policy {row.policy!r} has a fraction of {row.fraction}, more than 1"
        if row.fraction < reached.get(row.policy, 0.0):
            return f"the fractions of policy {row.policy!r} fall at {row.latency_us} µs: this is no CDF"
        reached[row.policy] = row.fraction
    return None
