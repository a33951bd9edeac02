"""Measured durations by the idle time before them: after a pause they are longer.

A bin of gaps has the durations measured after such a gap. A bin with fewer than ENOUGH durations also takes those of
the nearest bins. A draw `u` below 2^32 chooses value `u * count >> 32`, so that both engines compute the same.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tornpage.sim.distributions import Int64s

__all__ = ["COUNT", "ENOUGH", "GAP_BINS", "GAP_EDGES_NS", "START", "GapTable", "packed", "pool"]

ENOUGH = 30
"""The number of durations below which a bin is too thin to be used alone."""
GAP_EDGES_NS = (1_000, 20_000, 50_000, 100_000, 200_000, 400_000, 1_000_000, 3_000_000)
"""A gap is in the first bin whose edge is above it, or in the last bin.

Source: docs/disks/presets.md, "Syncs".
"""
GAP_BINS = len(GAP_EDGES_NS) + 1
START, COUNT = 0, 1
"""Columns of `bins`."""


@dataclass(frozen=True, slots=True)
class GapTable:
    """Durations by bins of gaps.

    `bins` has a row (start, count) of `values` for each bin; within a bin the values are in order. Tables are equal if
    their digests are.
    """

    digest: str
    values: Int64s = field(compare=False, repr=False)
    bins: Int64s = field(compare=False, repr=False)

    @classmethod
    def of(cls, gaps_ns: Int64s, took_ns: Int64s) -> "GapTable":
        """Return the table of these measurements, at least one."""
        places = np.searchsorted(GAP_EDGES_NS, gaps_ns, side="right")
        found = {place: took_ns[places == place] for place in np.unique(places).tolist()}

        def far(here: int) -> Callable[[int], tuple[int, int]]:
            return lambda other: (abs(here - other), other)

        values, bins = packed([pool(found, far(place)) for place in range(GAP_BINS)])
        return cls(hashlib.sha256(values.tobytes() + bins.tobytes()).hexdigest(), values, bins)

    def took_ns(self, draw: int, gap_ns: int) -> int:
        """Return one duration; `draw` is below 2^32."""
        start, count = self.bins[bisect_right(GAP_EDGES_NS, gap_ns)].tolist()
        return self.values.item(start + (draw * count >> 32))

    def took_many_ns(self, draws: Int64s, gaps_ns: Int64s) -> Int64s:
        """Return the durations of many draws."""
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
    """Return the values of the nearest bins until there are ENOUGH, or no bin is left."""
    parts, count = [], 0
    for place in sorted(found, key=far):
        parts.append(found[place])
        count += len(found[place])
        if count >= ENOUGH:
            break
    return np.concatenate(parts)
