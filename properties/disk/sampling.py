"""Draw which in-flight writes survive a power loss, by loss patterns.

A uniform draw hardly ever keeps all pages but one, or a clean prefix; each loss pattern makes one such shape likely.
Draws are counted by fault class. A class is enabled if it is possible, hit if it was drawn, and effective if it changed
what was recovered.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from tornpage.model.operations import Choice
from tornpage.properties.disk.images import JOURNAL_FACT, Fact

__all__ = ["CHANCES", "FAULTS", "Chances", "armed_faults", "draw", "fired_faults"]

FAULTS = ("lost_page", "older_version", "torn_page", "lost_size", "lost_name")
"""Classes of in-flight writes that a power loss can take."""

_MASK_MAX = 255
_MOODS = ("nothing", "everything", "all_but_one", "in_order", "each_on_its_own")


@dataclass(frozen=True, slots=True)
class Chances:
    """Probabilities of a crash state: kills, crashes in recovery, loss patterns.

    Of the writes that a loss pattern keeps, `torn` is the share of pages that mix two versions, and `older` the share
    of writes that have any version instead of the last one. They are at most 1 together.
    """

    kill: float = 0.04
    crash_in_recovery: float = 0.08
    nothing: float = 0.06
    everything: float = 0.06
    all_but_one: float = 0.28
    in_order: float = 0.2
    each_on_its_own: float = 0.4
    torn: float = 0.3
    older: float = 0.2

    @property
    def moods(self) -> tuple[float, ...]:
        """Upper bounds of each loss pattern but the last for a draw from 0 to 1."""
        *ends, total = accumulate(getattr(self, mood) for mood in _MOODS)
        return tuple(end / total for end in ends)

    def varied(self, rng: random.Random) -> "Chances":
        """Return other probabilities: some faults off, others frequent.

        At least one loss pattern stays possible.
        """
        shares = {name: getattr(self, name) * rng.choice((0, 1, 4)) for name in ("kill", "crash_in_recovery")}
        moods = {name: getattr(self, name) * rng.choice((0, 1, 1, 4)) for name in _MOODS}
        if not any(moods.values()):
            moods[_MOODS[-1]] = self.each_on_its_own
        choices = {name: getattr(self, name) * rng.choice((0, 1, 2)) for name in ("torn", "older")}
        return Chances(**shares, **moods, **choices)

    def document(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)


CHANCES = Chances()
"""Those of the standard swarm configuration."""


def draw(facts: Sequence[Fact], rng: random.Random, chances: Chances = CHANCES) -> dict[str, Choice]:
    """Return choices for the in-flight writes of a disk."""
    mood = rng.random()
    nothing, everything, all_but_one, in_order = chances.moods
    if mood < nothing:
        return {}
    if mood < everything:
        return {fact.name: fact.alternatives - 1 for fact in facts}
    if mood < all_but_one:
        return _all_but_one(facts, rng, chances)
    if mood < in_order:
        return _in_order(facts, rng, chances)
    return _each_on_its_own(facts, rng, chances)


def _all_but_one(facts: Sequence[Fact], rng: random.Random, chances: Chances) -> dict[str, Choice]:
    choices: dict[str, Choice] = {fact.name: fact.alternatives - 1 for fact in facts}
    if facts:
        chosen = facts[int(rng.random() * len(facts))]
        choices[chosen.name] = _draw_one(chosen, rng, chances)
    return choices


def _in_order(facts: Sequence[Fact], rng: random.Random, chances: Chances) -> dict[str, Choice]:
    """Choose names, sizes and pages that reach the disk in order, up to some point."""
    count = int(rng.random() * (len(facts) + 1))
    choices: dict[str, Choice] = {fact.name: fact.alternatives - 1 for fact in facts[:count]}
    if count < len(facts):
        choices[facts[count].name] = _draw_one(facts[count], rng, chances)
    return choices


def _each_on_its_own(facts: Sequence[Fact], rng: random.Random, chances: Chances) -> dict[str, Choice]:
    kept, name_kept = rng.random(), 0.5 + rng.random() / 2
    choices: dict[str, Choice] = {}
    for fact in facts:
        if rng.random() < (kept if fact.kind == "page" else name_kept):
            choices[fact.name] = _draw_one(fact, rng, chances) if fact.kind == "page" else fact.alternatives - 1
    return choices


def _draw_one(fact: Fact, rng: random.Random, chances: Chances) -> Choice:
    drawn = rng.random()
    if fact.kind == "page" and drawn < chances.torn:
        first, second = int(rng.random() * fact.alternatives), int(rng.random() * fact.alternatives)
        if first != second:
            return first, second, 1 + int(rng.random() * (_MASK_MAX - 1))
    if drawn < chances.torn + chances.older:
        return int(rng.random() * fact.alternatives)
    return fact.alternatives - 1


def armed_faults(facts: Sequence[Fact]) -> set[str]:
    """Return the fault classes that these writes make possible."""
    armed = {f"lost_{fact.kind}" for fact in facts if fact.kind != "names"}
    armed |= {"lost_name" for fact in facts if fact.kind == "names"}
    if any(fact.kind == "page" for fact in facts):
        armed.add("torn_page")
    if any(fact.kind == "page" and fact.alternatives > 2 for fact in facts):
        armed.add("older_version")
    return armed


def fired_faults(facts: Sequence[Fact], choices: Mapping[str, Choice]) -> set[str]:
    """Return the fault classes that a draw used."""
    fired = set()
    for fact in facts:
        choice = choices.get(fact.name, 0)
        if isinstance(choice, tuple):
            fired.add("torn_page")
        elif fact.kind == "page":
            if choice == 0:
                fired.add("lost_page")
            elif choice < fact.alternatives - 1:
                fired.add("older_version")
        elif choice < fact.alternatives - 1:
            fired.add("lost_name" if fact.name == JOURNAL_FACT else f"lost_{fact.kind}")
    return fired
