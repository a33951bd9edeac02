"""Predicates over file calls, as values: which calls a fault rule hits.

Tests without state look at the call only; `nth` and `every` count, `probability` draws. In an `and` stateless tests
come first, then counters, then draws, so `nth=3 and kind=log` means the third call for a log file in any order of the
words. An `or` evaluates all its parts. `text_of` returns the text that gives the predicate.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tornpage.properties.program.fault_calls import Call

__all__ = [
    "And",
    "Every",
    "Kind",
    "Matcher",
    "Not",
    "Nth",
    "Operation",
    "Or",
    "Path",
    "Predicate",
    "Probability",
    "matcher_of",
    "text_of",
]

Matcher = Callable[[Call], bool]


@dataclass(frozen=True, slots=True)
class Path:
    """A path matches a pattern; a pattern without a leading slash may begin in any directory."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Kind:
    """The file is of one of these kinds."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """The call is one of these operations."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nth:
    """It is the n-th call so far, counted from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Every:
    """It is the n-th call so far, the 2n-th, and so on."""

    number: int


@dataclass(frozen=True, slots=True)
class Probability:
    """A draw by the rule's seed decides."""

    share: float


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Predicate"


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; always true without parts."""

    parts: "tuple[Predicate, ...]" = ()


@dataclass(frozen=True, slots=True)
class Or:
    """One of the parts holds."""

    parts: "tuple[Predicate, ...]"


Predicate = Path | Kind | Operation | Nth | Every | Probability | Not | And | Or


def matcher_of(predicate: Predicate, rng: random.Random) -> Matcher:
    """Return a function that tests each call in turn; it counts and draws as it goes."""
    match predicate:
        case Path(pattern):
            wanted = pattern if pattern.startswith("/") else f"*/{pattern}"
            return lambda call: any(fnmatchcase(path, wanted) for path in call.paths)
        case Kind(names):
            return lambda call: call.kind in names
        case Operation(names):
            return lambda call: call.operation in names
        case Nth(number):
            counted = _Counter()
            return lambda call: counted.next() == number
        case Every(number):
            counted = _Counter()
            return lambda call: counted.next() % number == 0
        case Probability(share):
            return lambda call: rng.random() < share
        case Not(part):
            inner = matcher_of(part, rng)
            return lambda call: not inner(call)
        case And(parts):
            ordered = [matcher_of(part, rng) for part in sorted(parts, key=_memory)]
            return lambda call: all(holds(call) for holds in ordered)
        case Or(parts):
            all_parts = [matcher_of(part, rng) for part in parts]
            return lambda call: sum(holds(call) for holds in all_parts) > 0  # each of them counts the call


class _Counter:
    """Counts from 1."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> int:
        self._count += 1
        return self._count


def _memory(predicate: Predicate) -> int:
    """Return the kind of state of a predicate: 0 none, 1 a count, 2 draws."""
    match predicate:
        case Probability():
            return 2
        case Nth() | Every():
            return 1
        case Not(part):
            return _memory(part)
        case And(parts) | Or(parts):
            return max(map(_memory, parts), default=0)
        case _:
            return 0


_TIGHTNESS = {Or: 0, And: 1, Not: 2}


def text_of(predicate: Predicate) -> str:
    """Return the text of a predicate."""
    match predicate:
        case Path(pattern):
            return f'path="{pattern}"' if any(letter in " \t()=" for letter in pattern) else f"path={pattern}"
        case Kind(names):
            return f"kind={','.join(names)}"
        case Operation(names):
            return f"op={','.join(names)}"
        case Nth(number):
            return f"nth={number}"
        case Every(number):
            return f"every={number}"
        case Probability(share):
            return f"probability={share!r}"
        case Not(part):
            return f"not {_inside(part, predicate)}"
        case And(parts):
            return " and ".join(_inside(part, predicate) for part in parts)
        case Or(parts):
            return " or ".join(_inside(part, predicate) for part in parts)


def _inside(part: Predicate, around: Predicate) -> str:
    """Return a part, with parentheses if it does not bind more tightly than what is around it."""
    loose = _TIGHTNESS.get(type(part), 3)
    needs = loose < _TIGHTNESS[type(around)] or (loose == _TIGHTNESS[type(around)] and not isinstance(part, Not))
    return f"({text_of(part)})" if needs else text_of(part)
