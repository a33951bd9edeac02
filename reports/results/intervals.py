"""Confidence intervals of shares."""

from math import sqrt

__all__ = ["interval"]

_Z = 1.96
"""Quantile of the normal distribution for an interval of 95 %."""


def interval(count: int, total: int) -> tuple[float, float]:
    """Return the Wilson interval (95 %) of a share. Without any case it is the whole range."""
    if not total:
        return 0.0, 1.0
    share, weight = count / total, _Z * _Z / total
    middle = (share + weight / 2) / (1 + weight)
    half = _Z * sqrt(share * (1 - share) / total + weight / (4 * total)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)
