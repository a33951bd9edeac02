"""Hold the effects of a run, and enumerate what a crash may leave of them.

All values are frozen. A history is a state of the model of every shape.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from tornpage.properties.foreign.shapes.language import Fault, Promises

__all__ = ["Effect", "History", "cuts", "floor_of"]

_FAULTS: tuple[Fault, Fault] = ("power", "kill")


@dataclass(frozen=True, slots=True)
class Effect:
    """Hold one change of one cell.

    `operation` is the number of its operation in the program. Effects of one atomic batch share a `group`, effects of
    concurrent callers share a number in `together`; 0 is none. `power` and `kill` name the answer that promised it for
    each fault, or are empty.
    """

    serial: int
    operation: int
    cell: str
    kind: str
    value: Any = None
    group: int = 0
    together: int = 0
    answered: bool = True
    power: str = ""
    kill: str = ""

    def promised(self, fault: Fault) -> str:
        """Return the answer that promised the effect, or an empty text."""
        return self.kill if fault == "kill" else self.power

    def made_safe(self, answer: str, power: bool, kill: bool) -> "Effect":
        """Return the effect as it is after an answer. The first promise counts."""
        return replace(self, power=self.power or (answer if power else ""), kill=self.kill or (answer if kill else ""))


@dataclass(frozen=True, slots=True)
class History:
    """Hold the effects that are left, those that crashes have taken, and counters.

    `values` counts the values made so far, `serials` the effects.
    """

    effects: tuple[Effect, ...] = ()
    gone: tuple[Effect, ...] = ()
    values: int = 0
    serials: int = 0

    def added(self, effects: Iterable[Effect]) -> "History":
        """Return the history after effects without numbers."""
        numbered = tuple(replace(effect, serial=self.serials + n) for n, effect in enumerate(effects, 1))
        return replace(self, effects=(*self.effects, *numbered), serials=self.serials + len(numbered))

    def after(self, point: str, answer: str, promises: Promises, *, since: int = 0) -> "History":
        """Return the history after an answer, which covers effects with a serial above `since`.

        If the point is the strongest one that is promised, it covers every effect. Otherwise it covers effects with an
        answer only.
        """
        effects = self.effects
        for fault in _FAULTS:
            effects = tuple(
                effect.made_safe(answer, fault == "power", fault == "kill")
                if effect.serial > since and _covers(point, effect, promises.points_of_kind(effect.kind, fault))
                else effect
                for effect in effects
            )
        return replace(self, effects=effects)

    def broken_off(self, before: "History") -> "History":
        """Return this history without the last answer.

        The effects of the state `before` it are as they were. The others have no answer.
        """
        known = {effect.serial: effect for effect in before.effects}
        if known.keys() - {effect.serial for effect in self.effects}:  # an open lost what no close promised
            return replace(before, values=self.values, serials=self.serials)
        return replace(
            self,
            effects=tuple(
                known.get(effect.serial, replace(effect, answered=False, power="", kill="")) for effect in self.effects
            ),
        )

    def cut_to(self, kept: Sequence[Effect], answer: str = "") -> "History":
        """Return the history after a crash that left some effects.

        With an answer, that of a recovery, all of them are safe from now on.
        """
        serials = {effect.serial for effect in kept}
        gone = tuple(effect for effect in self.effects if effect.serial not in serials)
        left = sorted(kept, key=lambda effect: effect.serial)
        if answer:
            left = [effect.made_safe(answer, True, True) for effect in left]
        return replace(self, effects=tuple(left), gone=(*self.gone, *gone))

    def summary(self) -> str:
        """Return the state after an answer in words."""
        power, kill = (sum(bool(each.promised(fault)) for each in self.effects) for fault in _FAULTS)
        count = len(self.effects)
        writes = f"{count} write{'' if count == 1 else 's'}"
        return f"answered: {writes}, {power} promised to survive a power loss, {kill} a kill"


def _covers(point: str, effect: Effect, points: tuple[str, ...]) -> bool:
    """Return whether an answer to a point makes an effect safe."""
    return point in points and (points[0] == point or effect.answered)


def floor_of(effects: Sequence[Effect], fault: Fault) -> int:
    """Return how many of the first effects must survive a fault."""
    return max((number for number, effect in enumerate(effects, 1) if effect.promised(fault)), default=0)


def cuts(effects: Sequence[Effect], fault: Fault) -> Iterator[tuple[Effect, ...]]:
    """Yield each selection of ordered effects that a fault may leave, the longest first.

    A selection is a prefix. Inside a row of effects of concurrent callers it may end with any subset that has the
    promised ones.
    """
    floor = floor_of(effects, fault)
    count = len(effects)
    while count >= 0:
        row = _row_around(effects, count)
        if row is None:
            if count >= floor:
                yield tuple(effects[:count])
            count -= 1
            continue
        first, last = row
        if last >= floor:
            promised = [effect for effect in effects[first:last] if effect.promised(fault)]
            for chosen in _subsets(effects[first:last], lambda chosen, p=promised: all(each in chosen for each in p)):  # type: ignore[misc]
                yield (*effects[:first], *chosen)
        count = first


def _row_around(effects: Sequence[Effect], count: int) -> tuple[int, int] | None:
    """Return the row of concurrent effects that a cut is strictly inside, as start and end."""
    if not 0 < count < len(effects) or not effects[count].together:
        return None
    together = effects[count].together
    if effects[count - 1].together != together:
        return None
    first, last = count, count
    while first > 0 and effects[first - 1].together == together:
        first -= 1
    while last < len(effects) and effects[last].together == together:
        last += 1
    return first, last


def _subsets(row: Sequence[Effect], allowed: Callable[[tuple[Effect, ...]], bool]) -> Iterator[tuple[Effect, ...]]:
    """Yield the subsets of a row other than all and none, large ones first."""
    for size in range(len(row) - 1, 0, -1):
        yield from filter(allowed, combinations(row, size))
