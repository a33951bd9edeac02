"""Durations as they were measured, by the idle time before them: what has rested is cold and takes longer.

A bin of the gap holds what was measured after a like one; a bin with less than ENOUGH durations takes those of the bins
nearest to it as well. A draw `u` below 2^32 chooses value `u * count >> 32`, so that both engines compute the same.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tornpage.sim.distributions import Int64s

__all__ = ["COUNT", "ENOUGH", "GAP_BINS", "GAP_EDGES_NS", "START", "GapTable", "packed", "pool"]

ENOUGH = 30
"""Durations without which a bin is too thin to be drawn from alone."""
GAP_EDGES_NS = (1_000, 20_000, 50_000, 100_000, 200_000, 400_000, 1_000_000, 3_000_000)
"""A gap is in the first bin whose edge is above it, or in the last one. Source: sim-anchors 3."""
GAP_BINS = len(GAP_EDGES_NS) + 1
START, COUNT = 0, 1
"""Columns of `bins`."""


@dataclass(frozen=True, slots=True)
class GapTable:
    """`bins` has a row (start, count) of `values` for each gap bin; in a bin values are in order. Equal by digest."""

    digest: str
    values: Int64s = field(compare=False, repr=False)
    bins: Int64s = field(compare=False, repr=False)

    @classmethod
    def of(cls, gaps_ns: Int64s, took_ns: Int64s) -> "GapTable":
        """Return the table of what was measured, one duration at least."""
        places = np.searchsorted(GAP_EDGES_NS, gaps_ns, side="right")
        found = {place: took_ns[places == place] for place in np.unique(places).tolist()}

        def far(here: int) -> Callable[[int], tuple[int, int]]:
            return lambda other: (abs(here - other), other)

        values, bins = packed([pool(found, far(place)) for place in range(GAP_BINS)])
        return cls(hashlib.sha256(values.tobytes() + bins.tobytes()).hexdigest(), values, bins)

    def took_ns(self, draw: int, gap_ns: int) -> int:
        """Return one duration. `draw` is below 2^32."""
        start, count = self.bins[bisect_right(GAP_EDGES_NS, gap_ns)].tolist()
        return self.values.item(start + (draw * count >> 32))

    def took_many_ns(self, draws: Int64s, gaps_ns: Int64s) -> Int64s:
        """Return the durations of many."""
        bins = self.bins[np.searchsorted(GAP_EDGES_NS, gaps_ns, side="right")]
        return self.values[bins[:, START] + (draws * bins[:, COUNT] >> 32)]

    def medians_ns(self, gaps_ns: Int64s) -> Int64s:
        """Return the middle value of each gap's bin."""
        return self.took_many_ns(np.full(len(gaps_ns), 1 << 31, np.int64), gaps_ns)


def packed(parts: list[Int64s]) -> tuple[Int64s, Int64s]:
    """Return all values, in order within their part, and the rows (start, count) of the parts."""
    counts = np.array([len(part) for part in parts], np.int64)
    bins = np.ascontiguousarray(np.stack((np.cumsum(counts) - counts, counts), axis=1))
    return np.concatenate([np.sort(part) for part in parts]), bins


def pool(found: Mapping[int, Int64s], far: Callable[[int], tuple[int, int]]) -> Int64s:
    """Return the values of the nearest bins until there are ENOUGH, or no more."""
    parts, count = [], 0
    for place in sorted(found, key=far):
        parts.append(found[place])
        count += len(found[place])
        if count >= ENOUGH:
            break
    return np.concatenate(parts)
