"""Choose among assessed policies by a budget.

A policy uses a share of each limit of the budget: its p99 of the allowed p99, its loss of the allowed loss. Its `use`
is the larger share. A use of at most 1 meets the budget. The smallest use ranks first, because it leaves the most room
for errors of the prediction. Equal uses are ranked by the sum of both shares, p99, and flushes. If no policy meets the
budget, the first one is the nearest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from tornpage.sim.choosing.assessment import Assessed

__all__ = ["Budget", "Choice", "choose", "frontier"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the put latency and of the loss of acknowledged messages."""

    loss_ms: float
    put_p99_us: float

    def __post_init__(self) -> None:
        if not (isfinite(self.loss_ms) and self.loss_ms >= 0):
            raise ValueError(f"a loss of at most {self.loss_ms:g} ms is impossible")
        if not (isfinite(self.put_p99_us) and self.put_p99_us > 0):
            raise ValueError(f"a p99 of at most {self.put_p99_us:g} us is impossible")

    def use(self, assessed: Assessed) -> float:
        """Return the larger share of the two limits; infinite if the policy refuses puts."""
        return inf if assessed.put_refused else max(self.p99_use(assessed), self.loss_use(assessed))

    def p99_use(self, assessed: Assessed) -> float:
        """Return the share of the allowed p99."""
        return assessed.put_p99_us / self.put_p99_us

    def loss_use(self, assessed: Assessed) -> float:
        """Return the share of the allowed loss."""
        if not assessed.loss_ms:
            return 0.0
        return assessed.loss_ms / self.loss_ms if self.loss_ms else inf


@dataclass(frozen=True, slots=True)
class Choice:
    """All policies by rank. The first `met` of them meet the budget."""

    budget: Budget
    ranked: tuple[Assessed, ...]
    met: int

    @property
    def best(self) -> Assessed:
        """The policy of the first rank: the choice, or the nearest one."""
        return self.ranked[0]


def choose(assessed: Sequence[Assessed], budget: Budget) -> Choice:
    """Rank policies by their use of a budget."""
    ranked = sorted(assessed, key=lambda one: (budget.use(one), *_costs(one, budget)))
    return Choice(budget, tuple(ranked), sum(budget.use(one) <= 1 for one in ranked))


def frontier(assessed: Sequence[Assessed]) -> tuple[Assessed, ...]:
    """Return the policies on the front, fastest first.

    No other policy has both a lower p99 and a smaller loss than one of these.
    """
    kept: list[Assessed] = []
    for one in sorted(assessed, key=lambda one: (one.put_p99_us, one.loss_ms)):
        if not one.put_refused and (not kept or one.loss_ms < kept[-1].loss_ms):
            kept.append(one)
    return tuple(kept)


def _costs(one: Assessed, budget: Budget) -> tuple[float, float, float]:
    return budget.p99_use(one) + min(budget.loss_use(one), 1e9), one.put_p99_us, one.flushes_per_s
