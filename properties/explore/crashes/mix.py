"""A mix: which operations, services, faults and damages a history draws, and how often.

The standard mix has all of them, always with the same weights; the strategy `random` uses it. With the strategy `swarm`
each history draws its own mix, in which about half of everything is off: what is off leaves room for the rest, and some
bugs need the absence of an operation that would hide them.

Source: Groce, Zhang, Eide, Chen and Regehr, "Swarm Testing", ISSTA 2012.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from properties.disk.sampling import CHANCES, Chances
from properties.explore.crashes.harms import harm_classes
from properties.program.case import ServiceName
from properties.program.workload import WEIGHTS

__all__ = ["DAMAGES", "STANDARD", "STRATEGIES", "Mix", "Strategy", "mix_of"]

Strategy = Literal["random", "swarm"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

DAMAGES: tuple[str, ...] = harm_classes("posix-strict")
"""What can befall a store at the end of a history, as activation tables call it; the same on each disk."""

SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)
_ON_SHARE = 0.5
_FACTORS = (1, 1, 2, 4)
_ALWAYS_ON = frozenset({"put", "dispatch"})
"""Without a message there is nothing to lose, without dispatch nothing but the log."""


@dataclass(frozen=True, slots=True)
class Mix:
    """What one history may draw.

    `weights` has a weight for each rule of the workload, 0 for one that is off. `services` are those of which the rule
    `step` draws; `damages` those that befall the closed store; `chances` how crash states are drawn.
    """

    weights: Mapping[str, int] = field(default_factory=lambda: MappingProxyType(dict(WEIGHTS)))
    services: tuple[ServiceName, ...] = SERVICES
    damages: tuple[str, ...] = DAMAGES
    chances: Chances = CHANCES

    def document(self) -> dict[str, Any]:
        """Return what departs from the standard mix, as a failure shows it: plain lists and numbers."""
        said: dict[str, Any] = {}
        if dict(self.weights) != dict(WEIGHTS):
            said["rules"] = {name: weight for name, weight in self.weights.items() if weight}
        for name in ("services", "damages"):
            if getattr(self, name) != getattr(STANDARD, name):
                said[name] = list(getattr(self, name))
        if self.chances != CHANCES:
            said["chances"] = self.chances.document()
        return said

    def text(self) -> str:
        """Return the document as one line of JSON; nothing for the standard mix."""
        said = self.document()
        return json.dumps(said, sort_keys=True) if said else ""


STANDARD = Mix()


def mix_of(strategy: Strategy, seed: str) -> Mix:
    """Return the mix of a history, drawn apart from everything else that its seed draws."""
    return STANDARD if strategy == "random" else _swarm(random.Random(f"swarm {seed}"))


def _swarm(rng: random.Random) -> Mix:
    weights = {
        name: weight * rng.choice(_FACTORS) if name in _ALWAYS_ON or rng.random() < _ON_SHARE else 0
        for name, weight in WEIGHTS.items()
    }
    services = tuple(service for service in SERVICES if rng.random() < _ON_SHARE)
    return Mix(
        weights=MappingProxyType(weights),
        services=services or ("group-commit",),
        damages=tuple(damage for damage in DAMAGES if rng.random() < _ON_SHARE),
        chances=CHANCES.varied(rng),
    )
