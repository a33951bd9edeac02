"""Stalls of a disk or of a thread: a request takes far longer than others of its kind.

Stalls depend on the time that passes, not on the number of requests. A busy store meets no more of them per second than
a quiet one, and far fewer per request. They also come in groups. So the stalls that were measured in a slice of time
are kept with their moments, and slices are replayed in random order.

A measured stall is the whole duration of one request. So it meets one request: the one that runs when the stall begins,
or the first one that starts within its length.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

__all__ = ["NEVER", "StallLaw", "StallSlice", "Stalls"]

NS_PER_S = 1_000_000_000


class StallSlice(NamedTuple):
    """The stalls of one measured slice of time, in ns since its begin, in order."""

    duration_ns: int
    begins_ns: tuple[int, ...] = ()
    lasts_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StallLaw:
    """Stalls as in these slices. Without slices there are none."""

    slices: tuple[StallSlice, ...]

    def __post_init__(self) -> None:
        for number, each in enumerate(self.slices):
            is_ordered = all(before <= after for before, after in pairwise((0, *each.begins_ns, each.duration_ns)))
            if each.duration_ns < 1 or not is_ordered or min(each.lasts_ns, default=0) < 0:
                raise ValueError(f"slice {number} of {each.duration_ns} ns has impossible stalls")
            if len(each.begins_ns) != len(each.lasts_ns):
                raise ValueError(f"slice {number} has {len(each.begins_ns)} begins for {len(each.lasts_ns)} stalls")

    @classmethod
    def of(cls, slices: Iterable[StallSlice]) -> "StallLaw":
        """Return the law of measured slices. Raises ValueError if a slice is impossible."""
        return cls(tuple(slices))

    @property
    def per_s(self) -> float:
        """The mean number of stalls in a second."""
        duration_ns = sum(each.duration_ns for each in self.slices)
        return sum(len(each.begins_ns) for each in self.slices) / duration_ns * NS_PER_S if duration_ns else 0.0


NEVER = StallLaw(())


class Stalls:
    """The stalls of one run, laid out as far ahead as a caller asks."""

    def __init__(self, law: StallLaw, rng: np.random.Generator) -> None:
        self._slices = law.slices if law.per_s else ()
        self._rng = rng
        self._laid_out_ns = 0
        self._begins: list[int] = []
        self._lasts: list[int] = []
        self._next = 0

    def returns_ns(self, start_ns: int, end_ns: int) -> int:
        """Return when a request returns that would run from start to end without stalls.

        Requests must come in order of their starts. Each meets one stall at most, and each stall meets one request.
        """
        if not self._slices:
            return end_ns
        self._lay_out(end_ns)
        begins, lasts = self._begins, self._lasts
        while self._next < len(begins) and begins[self._next] < end_ns:
            begin_ns, lasts_ns = begins[self._next], lasts[self._next]
            self._next += 1
            if begin_ns + lasts_ns > start_ns:
                return max(end_ns, start_ns + lasts_ns)
        return end_ns

    def _lay_out(self, until_ns: int) -> None:
        """Append random slices up to a moment; the first one begins somewhere inside."""
        while self._laid_out_ns <= until_ns:
            drawn = self._slices[int(self._rng.integers(len(self._slices)))]
            left_out_ns = 0 if self._laid_out_ns else int(self._rng.integers(drawn.duration_ns))
            for begin_ns, lasts_ns in zip(drawn.begins_ns, drawn.lasts_ns, strict=True):
                if begin_ns >= left_out_ns:
                    self._begins.append(self._laid_out_ns + begin_ns - left_out_ns)
                    self._lasts.append(lasts_ns)
            self._laid_out_ns += drawn.duration_ns - left_out_ns
