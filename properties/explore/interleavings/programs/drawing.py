"""Draw programs of single parts from the menus of their benches.

A menu names the calls of a part with the possible arguments. Each pair of its entries becomes a program in turn: two
tasks begin with these entries. What happened before, further calls and a third task are drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod
from random import Random
from typing import Final

from tornpage.properties.explore.interleavings.operations import PartCall
from tornpage.properties.explore.interleavings.scenario import Scenario

__all__ = ["Entry", "drawn_programs", "entry", "numbered"]

_BEFORE_MAX: Final = 4
_LONGER_SHARE: Final = 0.4
_THIRD_SHARE: Final = 0.15


@dataclass(frozen=True, slots=True)
class Entry:
    """Name calls that are drawn together, each with the possible values of its arguments.

    Entries with one `role` are made by one task of a program only, as by the one thread that dispatches. An entry that
    `waits` needs another task, so it is never made before the tasks.
    """

    calls: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    role: str = ""
    waits: bool = False

    def draw(self, rng: Random) -> tuple[PartCall, ...]:
        """Return the calls with drawn arguments."""
        return tuple(PartCall(name, tuple(rng.choice(domain) for domain in domains)) for name, domains in self.calls)

    def then(self, name: str, *domains: Sequence[int]) -> "Entry":
        """Return the entry with one call more."""
        return Entry((*self.calls, (name, tuple(map(tuple, domains)))), self.role, self.waits)


def entry(name: str, *domains: Sequence[int], role: str = "", waits: bool = False) -> Entry:
    """Return an entry with one call; each of `domains` has the values of an argument."""
    return Entry(((name, tuple(map(tuple, domains))),), role, waits)


def numbered(name: str, numbers: Sequence[int], *domains: Sequence[int], of: str = "") -> tuple[Entry, ...]:
    """Return an entry for each number of a request, as its first argument.

    One task makes the request and all calls about it, which are those with its name as `of`.
    """
    return tuple(entry(name, (number,), *domains, role=f"{of or name} {number}") for number in numbers)


def drawn_programs(part: str, menu: Sequence[Entry], rng: Random, *, orders_max: int = 60) -> Iterator[Scenario]:
    """Yield programs of a part without end, each pair of entries once in each round.

    A program has at most `orders_max` orders of whole calls, since each of them is run before the search.
    """
    pairs = [pair for pair in combinations_with_replacement(menu, 2) if not pair[0].role or len({*_roles(pair)}) == 2]
    while pairs:
        rng.shuffle(pairs)
        for pair in pairs:
            yield _around(part, pair, menu, rng, orders_max)


def _roles(entries: Sequence[Entry]) -> list[str]:
    return [each.role for each in entries]


def _around(part: str, pair: tuple[Entry, Entry], menu: Sequence[Entry], rng: Random, orders_max: int) -> Scenario:
    """Return a program in which two tasks begin with the pair."""
    tasks = [[each] for each in rng.sample(pair, 2)]
    if rng.random() < _THIRD_SHARE:
        tasks.append([])
    for number, task in enumerate(tasks):
        others = {each.role for other in (*tasks[:number], *tasks[number + 1 :]) for each in other} - {""}
        possible = [each for each in menu if each.role not in others]
        if possible and (not task or rng.random() < _LONGER_SHARE):
            task.append(rng.choice(possible))
    while _orders(tasks) > orders_max and any(len(task) > 1 for task in tasks[:2]):
        max(tasks[:2], key=lambda task: (len(task) > 1, _calls(task))).pop()
    if _orders(tasks) > orders_max:
        del tasks[2:]
    before = rng.choices([each for each in menu if not each.waits], k=rng.randint(0, _BEFORE_MAX))
    drawn = tuple(tuple(call for each in task for call in each.draw(rng)) for task in tasks if task)
    return Scenario(
        part, before=tuple(call for each in before for call in each.draw(rng)), tasks=drawn, services=(), part=part
    )


def _calls(task: Sequence[Entry]) -> int:
    return sum(len(each.calls) for each in task)


def _orders(tasks: Sequence[Sequence[Entry]]) -> int:
    """Return the number of orders of whole calls."""
    counts = list(map(_calls, tasks))
    return factorial(sum(counts)) // prod(map(factorial, counts))
