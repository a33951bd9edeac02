"""Draw which facts survive a power loss, in moods that shape different disasters.

A uniform draw hardly ever keeps all pages but one, or a clean prefix; each mood makes one shape likely. What a draw
did is counted as fault classes: a class that is armed (possible) need not fire (be drawn), and one that fired need not
have mattered (changed what was recovered).
"""

import random
from collections.abc import Sequence

from properties.images import JOURNAL_FACT, Choice, Fact

__all__ = ["FAULTS", "armed_faults", "draw", "fired_faults"]

FAULTS = ("lost_page", "older_version", "torn_page", "lost_size", "lost_name")
"""Classes of facts that a power loss can take."""

_MASK_MAX = 255


def draw(facts: Sequence[Fact], rng: random.Random) -> dict[str, Choice]:
    """Return choices for the open facts of a disk."""
    mood = rng.random()
    if mood < 0.06:
        return {}
    if mood < 0.12:
        return {fact.name: fact.alternatives - 1 for fact in facts}
    if mood < 0.40:
        return _all_but_one(facts, rng)
    if mood < 0.60:
        return _in_order(facts, rng)
    return _each_on_its_own(facts, rng)


def _all_but_one(facts: Sequence[Fact], rng: random.Random) -> dict[str, Choice]:
    choices: dict[str, Choice] = {fact.name: fact.alternatives - 1 for fact in facts}
    if facts:
        chosen = facts[int(rng.random() * len(facts))]
        choices[chosen.name] = _draw_one(chosen, rng)
    return choices


def _in_order(facts: Sequence[Fact], rng: random.Random) -> dict[str, Choice]:
    """Names, sizes and pages reach the disk in order up to some point."""
    count = int(rng.random() * (len(facts) + 1))
    choices: dict[str, Choice] = {fact.name: fact.alternatives - 1 for fact in facts[:count]}
    if count < len(facts):
        choices[facts[count].name] = _draw_one(facts[count], rng)
    return choices


def _each_on_its_own(facts: Sequence[Fact], rng: random.Random) -> dict[str, Choice]:
    kept, name_kept = rng.random(), 0.5 + rng.random() / 2
    choices: dict[str, Choice] = {}
    for fact in facts:
        if rng.random() < (kept if fact.kind == "page" else name_kept):
            choices[fact.name] = _draw_one(fact, rng) if fact.kind == "page" else fact.alternatives - 1
    return choices


def _draw_one(fact: Fact, rng: random.Random) -> Choice:
    drawn = rng.random()
    if fact.kind == "page" and drawn < 0.3:
        first, second = int(rng.random() * fact.alternatives), int(rng.random() * fact.alternatives)
        if first != second:
            return first, second, 1 + int(rng.random() * (_MASK_MAX - 1))
    if drawn < 0.5:
        return int(rng.random() * fact.alternatives)
    return fact.alternatives - 1


def armed_faults(facts: Sequence[Fact]) -> set[str]:
    """Return the fault classes these facts make possible."""
    armed = {f"lost_{fact.kind}" for fact in facts if fact.kind != "names"}
    armed |= {"lost_name" for fact in facts if fact.kind == "names"}
    if any(fact.kind == "page" for fact in facts):
        armed.add("torn_page")
    if any(fact.kind == "page" and fact.alternatives > 2 for fact in facts):
        armed.add("older_version")
    return armed


def fired_faults(facts: Sequence[Fact], choices: dict[str, Choice]) -> set[str]:
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
