"""Measured puts of a real store, including the lateness of the thread that puts.

Caches and processor lose state while a program sleeps. So after a longer sleep, and after less recent work, a put
begins later and takes longer. Lateness and duration are therefore drawn together, as measured, from a bin of (idle gap
before the put, recent mean gap). One thread serves all puts. A put that arrives while it works is served next, and is
not late. Sometimes the thread stalls, because the machine runs something else. Stalls depend on time, as those of a
disk do (`sim.device.stalls`).

A flush uses the processor, and the interpreter of a Python store, when it begins and ends. So the puts beside a flush
have a table of their own. Its use needs the times of the flushes, for example those of a first simulation.

All numbers are whole; a draw `u` below 2^32 chooses row `u * count >> 32`.
"""

import hashlib
from bisect import bisect_right
from dataclasses import dataclass, field, replace

import numpy as np

from tornpage.sim.device import gap_table
from tornpage.sim.device.empirical import Uniform32
from tornpage.sim.device.stalls import NEVER, StallLaw, Stalls
from tornpage.sim.device.sync_table import TooFewSamples
from tornpage.sim.distributions import Int64s
from tornpage.sim.streams import Draws

__all__ = [
    "AFTER_NS",
    "BEFORE_NS",
    "GAP_EDGES_NS",
    "LATELY_EDGES_NS",
    "LATELY_SHIFT",
    "PutTable",
    "Serving",
    "lately_ns",
]

GAP_EDGES_NS = (1, *gap_table.GAP_EDGES_NS[1:])
"""A gap is in the first bin whose edge is above it, or in the last bin.

The first bin is for puts that had to queue.
"""
LATELY_EDGES_NS = (200_000, 400_000, 800_000, 1_600_000)
LATELY_SHIFT = 3
"""The recent mean gap moves by an eighth of its difference from the last gap."""
ENOUGH = 10
"""The number of puts below which a bin counts as empty."""
GAP_BINS, LATELY_BINS = len(GAP_EDGES_NS) + 1, len(LATELY_EDGES_NS) + 1
START, COUNT = 0, 1
BEFORE_NS, AFTER_NS = 50_000, 200_000
"""Puts that begin so long before the begin of a flush, or after its end, are beside it."""


@dataclass(frozen=True, slots=True)
class PutTable:
    """Measured puts by bin. Tables are equal if their digests are."""

    digest: str
    late_ns: Int64s = field(compare=False, repr=False)
    """Delay of each put, bin by bin.

    It lasts from the time at which a message was due, or the end of the previous put, to the begin of its put.
    """
    took_ns: Int64s = field(compare=False, repr=False)
    """The duration of that put."""
    bins: Int64s = field(compare=False, repr=False)
    """Rows (start, count): place = bin of the recent mean gap * GAP_BINS + bin of the gap."""
    stalls: StallLaw = NEVER
    """The times at which the thread does not run."""
    beside: "PutTable | None" = None
    """The puts beside a flush; None: as the others."""
    flushes: tuple[Int64s, Int64s] | None = field(default=None, compare=False, repr=False)
    """Begins and ends, in order, of the times that count as beside a flush; None: none."""

    @classmethod
    def of(
        cls,
        *,
        gap_ns: Int64s,
        lately_ns: Int64s,
        late_ns: Int64s,
        took_ns: Int64s,
        stalls: StallLaw = NEVER,
        beside: "PutTable | None" = None,
    ) -> "PutTable":
        """Return the table of these puts; an empty bin takes the nearest one.

        Raises TooFewSamples if all bins are empty.
        """
        places = np.searchsorted(LATELY_EDGES_NS, lately_ns, side="right") * GAP_BINS
        places += np.searchsorted(GAP_EDGES_NS, gap_ns, side="right")
        order = np.lexsort((took_ns, late_ns, places))
        late_ns, took_ns, places = late_ns[order], took_ns[order], places[order]
        found, starts, counts = np.unique(places, return_index=True, return_counts=True)
        filled = {
            int(place): (int(start), int(count))
            for place, start, count in zip(found, starts, counts, strict=True)
            if count >= ENOUGH
        }
        if not filled:
            raise TooFewSamples(f"{len(places)} puts are too few to know what a put takes")
        bins = np.array([filled[_nearest(place, filled)] for place in range(LATELY_BINS * GAP_BINS)], np.int64)
        hasher = hashlib.sha256()
        for part in (late_ns, took_ns, bins):
            hasher.update(part.tobytes())
        if beside is not None:
            hasher.update(beside.digest.encode())
        return cls(hasher.hexdigest(), late_ns, took_ns, bins, stalls, beside)

    def with_flushes(self, start_ns: Int64s, end_ns: Int64s) -> "PutTable":
        """Return the table for a run whose flushes begin and end at these times, in order."""
        return replace(self, flushes=(start_ns - BEFORE_NS, end_ns + AFTER_NS))

    def at(self, ready_ns: int) -> "PutTable":
        """Return the table of a put that can begin at this moment."""
        if self.beside is None or self.flushes is None:
            return self
        begins_ns, ends_ns = self.flushes
        place = int(begins_ns.searchsorted(ready_ns, side="right")) - 1
        return self.beside if place >= 0 and ready_ns < ends_ns.item(place) else self

    def draw(self, draw: int, *, gap_ns: int, lately_ns: int) -> tuple[int, int]:
        """Return lateness and duration of a put; `draw` is below 2^32."""
        place = bisect_right(LATELY_EDGES_NS, lately_ns) * GAP_BINS + bisect_right(GAP_EDGES_NS, gap_ns)
        start, count = self.bins[place].tolist()
        row = start + (draw * count >> 32)
        return self.late_ns.item(row), self.took_ns.item(row)


class Serving:
    """The single thread that puts: a `PutTable`, a random stream, and its recent gaps."""

    def __init__(self, puts: PutTable, rng: np.random.Generator) -> None:
        self._puts = puts
        draws_rng, stalls_rng = rng.spawn(2)
        self._draws = Draws(Uniform32(), draws_rng)
        self._stalls = Stalls(puts.stalls, stalls_rng)
        self._arrived_ns = 0
        self._lately_ns = -1

    def next(self, arrival_ns: int, free_ns: int) -> tuple[int, int]:
        """Return when the put of the next message begins and how long it takes.

        The previous put ends at `free_ns`.
        """
        gap_ns, self._arrived_ns = arrival_ns - self._arrived_ns, arrival_ns
        self._lately_ns = gap_ns if self._lately_ns < 0 else _moved(self._lately_ns, gap_ns)
        idle_ns = max(arrival_ns - free_ns, 0)
        ready_ns = max(arrival_ns, free_ns)
        puts = self._puts.at(ready_ns)
        late_ns, took_ns = puts.draw(self._draws.next(), gap_ns=idle_ns, lately_ns=self._lately_ns)
        begin_ns = self._stalls.returns_ns(ready_ns, ready_ns + late_ns)
        return begin_ns, self._stalls.returns_ns(begin_ns, begin_ns + took_ns) - begin_ns


def lately_ns(arrival_ns: Int64s) -> Int64s:
    """Return the recent mean gap at each of these arrivals, as `Serving` computes it."""
    gaps = np.diff(arrival_ns, prepend=0).tolist()
    mean = gaps[0] if gaps else 0
    means = []
    for gap in gaps:
        mean = _moved(mean, gap)
        means.append(mean)
    return np.array(means, np.int64)


def _moved(mean_ns: int, gap_ns: int) -> int:
    return mean_ns + ((gap_ns - mean_ns) >> LATELY_SHIFT)


def _nearest(place: int, filled: dict[int, tuple[int, int]]) -> int:
    lately, gap = divmod(place, GAP_BINS)

    def far(other: int) -> tuple[int, int]:
        other_lately, other_gap = divmod(other, GAP_BINS)
        return abs(lately - other_lately) + abs(gap - other_gap), other

    return min(filled, key=far)
