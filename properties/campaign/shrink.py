"""Shrink a case: try simpler cases, and take each that still fails and is simpler.

1. No case is tried twice.
2. A pass continues after the place of its last success. It ends when no candidate of it fails any more.
3. Operations are left out first. Then power losses are written by what they lost, since one lost page is simpler than a
   hundred that survived.
4. When all passes have ended the case is 1-minimal: no single removal or simplification of
   properties/campaign/passes.py fails in the same way and is simpler. Only then detours are tried. A detour is a change
   that makes nothing simpler but may allow operations to be left out.
5. The search ends with the best case so far when tries or time run out, or at an interrupt.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import Any, Generic, Literal, Protocol, TypeVar

from tornpage.model.operations import Concurrent, Crash
from tornpage.properties.campaign.passes import DETOURS, SIMPLER, Pass, fewer_operations
from tornpage.properties.program.case import Case

__all__ = ["Budget", "Ended", "Failing", "ShrinkStep", "Shrinking", "Watch", "Weight", "weight_of"]


Weight = tuple[int, int, int, int, int, int]


def weight_of(case: Case, *, losses: int) -> Weight:
    """Return the weight to compare; `losses` is the number of lost in-flight writes."""
    operations = sum(
        1 + len(operation.first) + len(operation.second) if isinstance(operation, Concurrent) else 1
        for operation in case.operations
    )
    back = sum(operation.back for operation in case.operations if isinstance(operation, Crash))
    document = case.document()
    document["settings"].pop("file_bytes", None)
    for operation in document["operations"]:
        operation.pop("back", None)
    return operations, losses, back, case.settings.file_bytes, _count(document), _magnitude(document)


def _count(value: Any) -> int:
    """Count what a reader has to read.

    The version 0 of an in-flight write counts, since it is named. An idle yield point does not.
    """
    if isinstance(value, Mapping):
        return sum(1 + _count(each) for each in value.values())
    if isinstance(value, str):
        return 0
    if isinstance(value, Sequence):
        return sum(_count(each) if isinstance(each, int) else 1 + _count(each) for each in value)
    return int(bool(value))


def _magnitude(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_magnitude, value.values()))
    if isinstance(value, str):
        return len(value)
    return len(value) + sum(map(_magnitude, value)) if isinstance(value, Sequence) else abs(int(value or 0))


Ended = Literal["", "tries", "time", "interrupt", "holds"]


class Failing(Protocol):
    """Describe what is shrunk: a failing case, and how many writes its power losses lost."""

    @property
    def case(self) -> Case:
        """Return the case as it was run."""
        ...

    @property
    def losses(self) -> int:
        """Return the number of in-flight writes whose latest version did not survive."""
        ...


Found = TypeVar("Found", bound=Failing)

Watch = Callable[[int, int, int], None]
"""Called with the tries so far, and the operations and lost writes of the simplest case found so far."""


@dataclass(frozen=True, slots=True)
class ShrinkStep:
    """Record the result of a pass: cases tried, and operations and lost writes that remain."""

    what: str
    tries: int
    operations: int
    losses: int


@dataclass
class Budget:
    """Allow up to `tries_max` tries, and `seconds` from the first one.

    None means no time limit.
    """

    tries_max: int
    seconds: float | None = None
    clock: Callable[[], float] = perf_counter
    tries: int = 0
    ended: Ended = ""
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()

    @property
    def spent_s(self) -> float:
        """Return the seconds since the first try."""
        return self.clock() - self._started

    def is_left(self) -> bool:
        """Return whether another try is allowed; set `ended` to what is used up."""
        if not self.ended and self.tries >= self.tries_max:
            self.ended = "tries"
        elif not self.ended and self.seconds is not None and self.spent_s >= self.seconds:
            self.ended = "time"
        return not self.ended


class Shrinking(Generic[Found]):
    """Shrink `best`. `fails` runs a case and returns it if it fails in the wanted way.

    `named` writes the same power losses by what was lost. `restated` yields other forms, tried after all detours.
    `watch` is called after each try.
    """

    def __init__(
        self,
        best: Found,
        fails: Callable[[Case], Found | None],
        budget: Budget,
        *,
        named: Callable[[Found], Case] = lambda found: found.case,
        restated: Callable[[Found], Iterator[Case]] = lambda found: iter(()),
        watch: Watch = lambda tries, operations, losses: None,
    ) -> None:
        self.best = best
        self._named = named
        self._watch = watch
        self._restated = restated
        self.history: list[ShrinkStep] = []
        self.one_minimal = False
        self._fails = fails
        self._budget = budget
        self._weight = self._weight_of(best)
        self._tried = {repr(best.case)}

    def run(self) -> None:
        """Shrink until nothing is simpler or the budget is used up."""
        try:
            self._noted("fewer operations", fewer_operations)
            self._passes()
            while self._budget.is_left() and self._detour():
                self._passes()
        except KeyboardInterrupt:
            self._budget.ended = "interrupt"
        self.one_minimal = not self._budget.ended or self.one_minimal

    def _passes(self) -> None:
        """Repeat all passes until none of them finds a simpler case."""
        self.one_minimal, before = False, None
        self._name_losses()
        while before != self._weight and self._budget.is_left():
            before = self._weight
            for each in SIMPLER:
                self._noted(each.__name__.replace("_", " "), each)
        self.one_minimal = self._budget.is_left()

    def _name_losses(self) -> None:
        found = self._try(self._named(self.best))
        if found is not None and found.losses == self.best.losses:
            self.best, self._weight = found, self._weight_of(found)

    def _noted(self, what: str, simpler: Pass) -> None:
        tries, weight = self._budget.tries, self._weight
        self._pass(simpler)
        if self._weight != weight:
            operations = len(self.best.case.operations)
            self.history.append(ShrinkStep(what, self._budget.tries - tries, operations, self.best.losses))

    def _pass(self, simpler: Pass) -> None:
        """Take failing candidates and continue after each; end after a full round without success."""
        start, is_vain = 0, False
        while not is_vain and self._budget.is_left():
            taken_at = self._take_one(simpler, start)
            is_vain = taken_at is None and start == 0
            start = taken_at or 0

    def _take_one(self, simpler: Pass, start: int) -> int | None:
        """Take the first failing candidate from number `start` on; return its number."""
        for number, candidate in enumerate(simpler(self.best.case)):
            if number >= start and self._takes(candidate):
                return number
            if self._budget.ended:
                return None
        return None

    def _takes(self, candidate: Case) -> bool:
        found = self._try(candidate)
        if found is None or self._weight_of(found) >= self._weight:
            return False
        self.best, self._weight = found, self._weight_of(found)
        return True

    def _try(self, candidate: Case) -> Found | None:
        key = repr(candidate)
        if key in self._tried or not self._budget.is_left():
            return None
        self._tried.add(key)
        self._budget.tries += 1
        found = self._fails(candidate)
        self._watch(self._budget.tries, len(self.best.case.operations), self.best.losses)
        return found

    def _detour(self) -> bool:
        """Change something that still fails, then leave out operations.

        The change is kept only if the case became simpler.
        """
        detours = (candidate for each in DETOURS for candidate in each(self.best.case))
        for changed in chain(detours, self._restated(self.best)):
            before = self.best, self._weight
            found = self._try(changed)
            if found is not None:
                self.best, self._weight = found, self._weight_of(found)
                self._pass(fewer_operations)
                if self._weight < before[1]:
                    self.history.append(ShrinkStep("detour", 0, len(self.best.case.operations), self.best.losses))
                    return True
                self.best, self._weight = before
        return False

    @staticmethod
    def _weight_of(found: Failing) -> Weight:
        return weight_of(found.case, losses=found.losses)
