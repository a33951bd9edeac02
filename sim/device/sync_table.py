"""Measured durations of syncs, by idle gap before, pages written, and state of blocks.

A bin of gap and pages has the durations measured there, and a sync draws one of them. A bin with fewer than ENOUGH also
takes those of the nearest bins. A duration is shifted by the growth curve from its measured number of pages to the
wanted number. The curve never goes down. Source of form and bins: docs/disks/presets.md.

All numbers are whole, so that both engines compute the same: a draw `u` below 2^32 chooses value `u * count >> 32`.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tornpage.sim.device.gap_table import ENOUGH, GAP_BINS, GAP_EDGES_NS, packed, pool
from tornpage.sim.device.samples import Rows
from tornpage.sim.distributions import Int64s

__all__ = ["LAYER_BINS", "PAGE_TOPS", "Layer", "SyncTable", "TooFewSamples", "layer_of"]

PAGE_TOPS = (1, 2, 3, 4, 6, 8, 16, 64, 256, 1_024, 4_096)
"""A number of pages is in the first bin whose top it does not exceed, or in the last bin."""
PAGE_BINS = len(PAGE_TOPS) + 1
LAYER_BINS = PAGE_BINS * GAP_BINS
GAP_WEIGHS = 2
"""A distance of this many bins of pages is as bad as one bin of gap.

The growth curve makes up for pages.
"""
SLOPE_BITS = 10

KNOT_PAGES, KNOT_NS, KNOT_SLOPE = 0, 1, 2
"""Columns of `knots`; a slope is ns per 1,024 pages."""


class TooFewSamples(ValueError):
    """The measurements make no device; the message names what is missing."""


class Layer(NamedTuple):
    """The bins of one kind of blocks."""

    values: Int64s
    """Durations minus the growth curve at their pages, bin by bin."""
    bins: Int64s
    """Rows (start, count) of `values`, one per bin: place = bin of pages * GAP_BINS + bin of gap."""
    knots: Int64s
    """The growth curve: rows (pages, ns, slope), by pages."""
    least_ns: int
    """The shortest measured sync; no sync takes less."""


@dataclass(frozen=True, slots=True)
class SyncTable:
    """Layers for blocks that were written before and for blocks that were only reserved.

    Tables are equal if their digests are.
    """

    digest: str
    written: Layer = field(compare=False, repr=False)
    reserved: Layer = field(compare=False, repr=False)

    @classmethod
    def of(cls, written: Layer, reserved: Layer) -> "SyncTable":
        """Return the table of two layers."""
        hasher = hashlib.sha256()
        for layer in (written, reserved):
            for part in (*layer[:3], np.array([layer.least_ns], np.int64)):
                hasher.update(str(part.shape).encode() + part.tobytes())
        return cls(hasher.hexdigest(), written, reserved)

    def took_ns(self, draw: int, *, pages: int, gap_ns: int, reserved_only: bool) -> int:
        """Return the time of one sync of at least one page; `draw` is below 2^32."""
        layer = self.reserved if reserved_only else self.written
        place = bisect_left(PAGE_TOPS, pages) * GAP_BINS + bisect_right(GAP_EDGES_NS, gap_ns)
        start, count = layer.bins[place].tolist()
        value = layer.values.item(start + (draw * count >> 32))
        return max(value + grown_ns(layer.knots, pages), layer.least_ns)


def layer_of(sweep: Rows, load: Rows, *, what: str) -> Layer:
    """Return the bins of these rows of SYNC_DTYPE.

    A bin with ENOUGH rows of `load` has those, since they were measured under the store. The growth curve comes from
    `sweep` alone, whose pages were chosen: in a passive log, many pages are the effect of a slow sync before. Raises
    TooFewSamples, which names `what`.
    """
    if len(sweep) < ENOUGH:
        raise TooFewSamples(f"{len(sweep)} syncs of chosen size were measured for {what}; at least {ENOUGH} are needed")
    knots = _growth(sweep)
    found = _by_bin(sweep, knots)
    for place, values in _by_bin(load, knots).items():
        found[place] = values if len(values) >= ENOUGH else np.concatenate((found.get(place, values[:0]), values))
    values, bins = packed([pool(found, _far_from(place)) for place in range(LAYER_BINS)])
    least_ns = int(min(rows["took_ns"].min() for rows in (sweep, load) if len(rows)))
    return Layer(values, bins, knots, least_ns)


def _by_bin(rows: Rows, knots: Int64s) -> dict[int, Int64s]:
    """Return the durations of each bin, minus the growth curve."""
    page_bins = np.searchsorted(PAGE_TOPS, rows["pages"], side="left")
    places = page_bins * GAP_BINS + np.searchsorted(GAP_EDGES_NS, rows["gap_ns"], side="right")
    grown = {pages: grown_ns(knots, pages) for pages in np.unique(rows["pages"]).tolist()}
    values = rows["took_ns"] - np.array([grown[pages] for pages in rows["pages"].tolist()], np.int64)
    return {place: values[places == place] for place in np.unique(places).tolist()}


def _far_from(place: int) -> Callable[[int], tuple[int, int]]:
    pages, gap = divmod(place, GAP_BINS)

    def far(other: int) -> tuple[int, int]:
        other_pages, other_gap = divmod(other, GAP_BINS)
        return GAP_WEIGHS * abs(gap - other_gap) + abs(pages - other_pages), other

    return far


def grown_ns(knots: Int64s, pages: int) -> int:
    """Return the growth curve at a number of pages.

    It is straight between knots and after the last one, and flat before the first. Its level is that of medians. Only
    differences count.
    """
    place = max(int(knots[:, KNOT_PAGES].searchsorted(pages, side="right")) - 1, 0)
    begin, ns, slope = knots[place].tolist()
    return int(ns + (max(pages - begin, 0) * slope >> SLOPE_BITS))


def _growth(sweep: Rows) -> Int64s:
    """Return the knots of the curve through the medians by pages, pooled to never go down."""
    blocks: list[list[float]] = []  # level, weight, and the sizes that share it
    for pages in np.unique(sweep["pages"]).tolist():
        took = sweep["took_ns"][sweep["pages"] == pages]
        blocks.append([float(np.median(took)), float(len(took)), pages])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            level, weight, *sizes = blocks.pop()
            before = blocks[-1]
            before[0] = (before[0] * before[1] + level * weight) / (before[1] + weight)
            before[1] += weight
            before.extend(sizes)
    points = [(int(pages), round(level)) for level, _, *sizes in blocks for pages in sizes]
    knots = []
    for (pages, ns), (next_pages, next_ns) in pairwise(points):
        knots.append((pages, ns, ((next_ns - ns) << SLOPE_BITS) // (next_pages - pages)))
    knots.append((*points[-1], _last_slope(points)))
    return np.array(knots, np.int64)


def _last_slope(points: list[tuple[int, int]]) -> int:
    """Return the slope after the last point.

    It is the slope from the first point, so that no single median can bend it.
    """
    (first, first_ns), (last, last_ns) = points[0], points[-1]
    return ((last_ns - first_ns) << SLOPE_BITS) // (last - first) if last > first else 0
