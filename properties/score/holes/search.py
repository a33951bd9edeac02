"""Define how a hole is searched for: a strategy, in settings that make the hole likely.

Campaigns and machines draw and judge as always. Only settings of the store may be fixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tornpage.properties.score.strategies import Machines, RandomRuns, Strategy

__all__ = ["Search"]

_STEPS = 25


@dataclass(frozen=True, slots=True)
class Search:
    """Search with a machine, or by exploration if `machine` is empty.

    A machine takes up to `steps` steps before it starts over. Settings in `fixed` are not drawn. Exploration sets the
    clock back by `clock_back_ms` once in each session.
    """

    machine: str = ""
    steps: int = _STEPS
    fixed: Mapping[str, Any] = field(default_factory=dict)
    clock_back_ms: int = 0

    @property
    def strategy(self) -> Strategy:
        """Return the strategy with these settings."""
        if self.machine:
            return Machines((self.machine,), steps=self.steps, fixed=self.fixed)
        return RandomRuns(fixed=self.fixed, clock_back_ms=self.clock_back_ms)

    def describe(self) -> str:
        """Return a readable description."""
        engine = f"check --machine {self.machine}" if self.machine else "explore"
        steps = [f"{self.steps} steps"] if self.machine and self.steps != _STEPS else []
        clock = [f"clock set back by {self.clock_back_ms // 1000} s"] if self.clock_back_ms else []
        return ", ".join([engine, *steps, *(f"{name}={value}" for name, value in self.fixed.items()), *clock])
