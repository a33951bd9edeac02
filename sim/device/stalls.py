"""Stalls of a disk or of a thread: for a while no request is completed.

Stalls depend on the time that passes, not on the number of syncs. A busy store meets no more of them per second than a
quiet one, and far fewer per sync. So they are a process of their own. A sync that runs when a stall begins, or begins
during one, returns at its end at the earliest.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from tornpage.sim.distributions import Int64s

__all__ = ["NEVER", "StallLaw", "Stalls"]

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StallLaw:
    """Stalls at random moments, `per_s` on average, with lengths from the ordered `lasts_ns`."""

    per_s: float
    lasts_ns: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.per_s < 0 or (self.per_s and not self.lasts_ns) or any(lasts < 0 for lasts in self.lasts_ns):
            raise ValueError(f"{self.per_s} stalls per second that last {self.lasts_ns[:3]}… ns are impossible")

    @classmethod
    def of(cls, lasts_ns: Int64s, *, seconds: float) -> "StallLaw":
        """Return the law of the stalls that were measured in `seconds`.

        `seconds` must be above 0 unless there were no stalls.
        """
        return cls(len(lasts_ns) / seconds if len(lasts_ns) else 0.0, tuple(sorted(lasts_ns.tolist())))


NEVER = StallLaw(0.0, ())


class Stalls:
    """The stalls of one run, drawn as far ahead as a caller asks."""

    def __init__(self, law: StallLaw, rng: np.random.Generator) -> None:
        self._law = law
        self._rng = rng
        self._begins: list[int] = []
        self._ends: list[int] = []
        """The latest end of this stall and of all earlier ones."""

    def returns_ns(self, start_ns: int, end_ns: int) -> int:
        """Return when a sync returns that would run from start to end without stalls."""
        if not self._law.per_s:
            return end_ns
        place = bisect_left(self._begins, start_ns)
        while True:
            self._draw_up_to(end_ns)
            while place < len(self._begins) and self._begins[place] < end_ns:
                place += 1
            later_ns = max(end_ns, self._ends[place - 1]) if place else end_ns
            if later_ns == end_ns:
                return end_ns
            end_ns = later_ns

    def _draw_up_to(self, until_ns: int) -> None:
        law = self._law
        while not self._begins or self._begins[-1] < until_ns:
            begin_ns = (self._begins[-1] if self._begins else 0) + round(self._rng.exponential(NS_PER_S / law.per_s))
            lasts_ns = law.lasts_ns[int(self._rng.integers(len(law.lasts_ns)))]
            self._begins.append(begin_ns)
            self._ends.append(max(begin_ns + lasts_ns, self._ends[-1] if self._ends else 0))
