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
from tornpage.properties.disk.images import InFlightWrite

__all__ = ["CHANCES", "FAULTS", "Chances", "draw", "enabled_faults", "hit_faults"]

FAULTS = ("lost_page", "older_version", "torn_page", "lost_size", "lost_name")
"""Classes of in-flight writes that a power loss can take."""

_MASK_MAX = 255
_LOSS_PATTERNS = ("nothing", "everything", "all_but_one", "in_order", "each_on_its_own")


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
    def pattern_ends(self) -> tuple[float, ...]:
        """Upper bounds of each loss pattern but the last for a draw from 0 to 1."""
        *ends, total = accumulate(getattr(self, pattern) for pattern in _LOSS_PATTERNS)
        return tuple(end / total for end in ends)

    def varied(self, rng: random.Random) -> "Chances":
        """Return other probabilities: some faults off, others frequent.

        At least one loss pattern stays possible.
        """
        shares = {name: getattr(self, name) * rng.choice((0, 1, 4)) for name in ("kill", "crash_in_recovery")}
        pattern_ends = {name: getattr(self, name) * rng.choice((0, 1, 1, 4)) for name in _LOSS_PATTERNS}
        if not any(pattern_ends.values()):
            pattern_ends[_LOSS_PATTERNS[-1]] = self.each_on_its_own
        choices = {name: getattr(self, name) * rng.choice((0, 1, 2)) for name in ("torn", "older")}
        return Chances(**shares, **pattern_ends, **choices)

    def document(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)


CHANCES = Chances()
"""Those of the standard configuration."""


def draw(writes: Sequence[InFlightWrite], rng: random.Random, chances: Chances = CHANCES) -> dict[str, Choice]:
    """Return choices for the in-flight writes of a disk."""
    pattern = rng.random()
    nothing, everything, all_but_one, in_order = chances.pattern_ends
    if pattern < nothing:
        return {}
    if pattern < everything:
        return {write.name: write.alternatives - 1 for write in writes}
    if pattern < all_but_one:
        return _all_but_one(writes, rng, chances)
    if pattern < in_order:
        return _in_order(writes, rng, chances)
    return _each_on_its_own(writes, rng, chances)


def _all_but_one(writes: Sequence[InFlightWrite], rng: random.Random, chances: Chances) -> dict[str, Choice]:
    choices: dict[str, Choice] = {write.name: write.alternatives - 1 for write in writes}
    if writes:
        chosen = writes[int(rng.random() * len(writes))]
        choices[chosen.name] = _draw_one(chosen, rng, chances)
    return choices


def _in_order(writes: Sequence[InFlightWrite], rng: random.Random, chances: Chances) -> dict[str, Choice]:
    """Choose names, sizes and pages that reach the disk in order, up to some point."""
    count = int(rng.random() * (len(writes) + 1))
    choices: dict[str, Choice] = {write.name: write.alternatives - 1 for write in writes[:count]}
    if count < len(writes):
        choices[writes[count].name] = _draw_one(writes[count], rng, chances)
    return choices


def _each_on_its_own(writes: Sequence[InFlightWrite], rng: random.Random, chances: Chances) -> dict[str, Choice]:
    kept, name_kept = rng.random(), 0.5 + rng.random() / 2
    choices: dict[str, Choice] = {}
    for write in writes:
        if rng.random() < (kept if write.kind == "page" else name_kept):
            choices[write.name] = _draw_one(write, rng, chances) if write.kind == "page" else write.alternatives - 1
    return choices


def _draw_one(write: InFlightWrite, rng: random.Random, chances: Chances) -> Choice:
    drawn = rng.random()
    if write.kind == "page" and write.tears and drawn < chances.torn:
        first, second = int(rng.random() * write.alternatives), int(rng.random() * write.alternatives)
        if first != second:
            return first, second, 1 + int(rng.random() * (_MASK_MAX - 1))
    if drawn < chances.torn + chances.older:
        return int(rng.random() * write.alternatives)
    return write.alternatives - 1


def enabled_faults(writes: Sequence[InFlightWrite]) -> set[str]:
    """Return the fault classes that these writes make possible."""
    armed = {f"lost_{write.kind}" for write in writes if write.kind != "names"}
    armed |= {"lost_name" for write in writes if write.kind == "names"}
    if any(write.kind == "page" and write.tears for write in writes):
        armed.add("torn_page")
    if any(write.kind == "page" and write.alternatives > 2 for write in writes):
        armed.add("older_version")
    return armed


def hit_faults(writes: Sequence[InFlightWrite], choices: Mapping[str, Choice]) -> set[str]:
    """Return the fault classes that a draw used."""
    fired = set()
    for write in writes:
        choice = choices.get(write.name, 0)
        if isinstance(choice, tuple):
            fired.add("torn_page")
        elif write.kind == "page":
            if choice == 0:
                fired.add("lost_page")
            elif choice < write.alternatives - 1:
                fired.add("older_version")
        elif choice < write.alternatives - 1:
            fired.add("lost_name" if write.kind == "names" else f"lost_{write.kind}")
    return fired
