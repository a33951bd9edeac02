"""A predicate over calls of the file seam, as a value: which of them a fault hits.

Tests without a memory look at the call; `nth` and `every` count, `probability` draws. In an `and` those come behind all
others, counters in front of draws, so that `nth=3 and kind=log` means the third call for a log file whatever the order
of the words. An `or` asks all its parts. `text_of` gives a predicate back as it is read.
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
    """A path matches a pattern; one without a leading slash may begin below any directory."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Kind:
    """The file is of one of these kinds."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """The call is one of these."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nth:
    """It is the n-th call that comes so far, from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Every:
    """It is the n-th call that comes so far, the 2n-th, and so on."""

    number: int


@dataclass(frozen=True, slots=True)
class Probability:
    """A draw says so; the fault's seed decides."""

    share: float


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Predicate"


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; without parts: always."""

    parts: "tuple[Predicate, ...]" = ()


@dataclass(frozen=True, slots=True)
class Or:
    """A part holds."""

    parts: "tuple[Predicate, ...]"


Predicate = Path | Kind | Operation | Nth | Every | Probability | Not | And | Or


def matcher_of(predicate: Predicate, rng: random.Random) -> Matcher:
    """Return a function that tells of each call in turn whether the predicate holds; it counts and draws as it goes."""
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
    """Return how much a predicate remembers: nothing 0, a count 1, the draws so far 2."""
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
    """Return the predicate as a person writes it."""
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
    """Return a part with parentheses where it binds less tightly than, or just as, what is around it."""
    loose = _TIGHTNESS.get(type(part), 3)
    needs = loose < _TIGHTNESS[type(around)] or (loose == _TIGHTNESS[type(around)] and not isinstance(part, Not))
    return f"({text_of(part)})" if needs else text_of(part)
