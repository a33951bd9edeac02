"""Run one part of the store in a small program, and judge it by its sequential runs.

A bench holds a new part with small stand-ins for what surrounds it. The methods of the bench are the calls of the
program. A run is broken if its answers and its end state are not those of some order of whole calls (contract 17), if a
task waits forever (16), or if the bench itself finds a rule violated. The expected results come from the part under
test, run in one thread, so they need no second description of it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.explore.interleavings.locks import controlled_locks
from tornpage.properties.explore.interleavings.operations import PartCall
from tornpage.properties.explore.interleavings.programs.drawing import Entry
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.scheduler import current_task, yield_point

__all__ = [
    "Bench",
    "Failing",
    "Result",
    "Until",
    "call",
    "differs",
    "program",
    "require_rule",
    "run_calls",
    "sequential_results",
    "slow",
]

Answers = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What callers of a part can tell: the answers of each task, and the state at the end."""

    answers: Answers
    state: str


class Bench:
    """A part and what surrounds it. Its calls are public methods that take integers.

    `modules` are watched. `programs` are the small programs to explore. From `menu` further ones are drawn. Any order
    of the entries of a menu is possible: a call that makes no sense in the present state does nothing. A bench that
    `is_slow` gets fewer and smaller programs. `threads` is the number of threads that the part itself may start.
    """

    modules: ClassVar[tuple[str, ...]]
    programs: ClassVar[tuple[Scenario, ...]] = ()
    menu: ClassVar[tuple[Entry, ...]] = ()
    is_slow: ClassVar[bool] = False
    threads: ClassVar[int] = 0

    @classmethod
    def completed(cls, scenario: Scenario) -> Scenario:
        """Return a drawn program with the tasks and calls that each program of this bench needs."""
        return scenario

    def state(self) -> object:
        """Return what can be observed when all tasks have ended. Raises GuaranteeBroken."""
        raise NotImplementedError


class Until:
    """Something that a call waits for.

    Waiting raises HarnessError in a sequential run in which it never comes.
    """

    def __init__(self, what: str, is_there: Callable[[], bool]) -> None:
        self._what = what
        self._is_there = is_there

    @property
    def is_free(self) -> bool:
        """Whether it has come."""
        return self._is_there()

    def __str__(self) -> str:
        return self._what

    def wait(self) -> None:
        """Let other tasks run until it has come."""
        if self._is_there():
            return
        task = current_task()
        if task is None:
            raise HarnessError(f"{self._what} is waited for outside a stepped run")
        task.wait_for(self)


class Failing:
    """Failures of the outside world that are planned for the calls of one task.

    Other tasks do not meet them.
    """

    def __init__(self) -> None:
        self._tasks: list[object] = []

    @contextmanager
    def planned(self) -> Iterator[None]:
        """Context in which the next call of this task fails."""
        task = current_task()
        self._tasks.append(task)
        try:
            yield
        finally:
            if task in self._tasks:
                self._tasks.remove(task)

    def is_due(self) -> bool:
        """Return whether this call has to fail, once for each planned failure."""
        task = current_task()
        if task not in self._tasks:
            return False
        self._tasks.remove(task)
        return True


def call(name: str, *args: int) -> PartCall:
    """Return one call of a program."""
    return PartCall(name, args)


def program(part: str, *tasks: Sequence[PartCall], before: Sequence[PartCall] = ()) -> Scenario:
    """Return a program of a part."""
    return Scenario(part, before=tuple(before), tasks=tuple(map(tuple, tasks)), services=(), part=part)


def require_rule(holds: bool, sentence: str, *, contract: int = 17, found: object = None) -> None:
    """Raise GuaranteeBroken unless a rule of the bench holds."""
    if not holds:
        raise GuaranteeBroken(contract, sentence, found="" if found is None else str(found))


def slow(what: str) -> None:
    """Be a call of the outside world, at which another task may run."""
    yield_point(what)


def run_calls(bench: Bench, task: int, calls: Sequence[Any], answers: list[list[str]]) -> None:
    """Run the calls of one task, and append their answers."""
    for each in calls:
        answers[task].append(_answer(bench, each))


def _answer(bench: Bench, each: PartCall) -> str:
    try:
        return repr(getattr(bench, each.call)(*each.args))
    except (GuaranteeBroken, HarnessError, AttributeError, TypeError, NameError):
        raise  # no call of a part ends with one of these
    except Exception as error:
        if bench.threads:
            raise  # answers of such a part are not compared, and none of its calls fails
        return f"{type(error).__name__}: {error}"


def differs(found: Result, wanted: frozenset[Result], scenario: Scenario) -> GuaranteeBroken | None:
    """Return the broken guarantee if no order of whole calls gives the result."""
    if found in wanted:
        return None
    sentence = f"no order of whole calls of the part {scenario.part} explains its answers and its end state"
    expected = " or ".join(sorted(f"{result.answers} {result.state}" for result in wanted)[:4])
    return GuaranteeBroken(17, sentence, expected=expected, found=f"{found.answers} {found.state}")


@lru_cache(maxsize=4096)
def sequential_results(make: Callable[[], Bench], scenario: Scenario) -> frozenset[Result]:
    """Return the results of all orders of whole calls.

    An order in which a call would wait forever gives none.
    """
    found = set()
    with controlled_locks():
        for order in _orders([len(task) for task in scenario.tasks]):
            bench, answers, taken = make(), [[] for _ in scenario.tasks], [0] * len(scenario.tasks)  # type: ignore[var-annotated]
            try:
                run_calls(bench, 0, scenario.before, [[]])
                for task in order:
                    run_calls(bench, task, scenario.tasks[task][taken[task] : taken[task] + 1], answers)
                    taken[task] += 1
                found.add(Result(tuple(map(tuple, answers)), repr(bench.state())))
            except HarnessError:
                continue
    return frozenset(found)


def _orders(counts: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield each order of the calls of tasks with these numbers of calls."""
    if not any(counts):
        yield ()
    for task, count in enumerate(counts):
        if count:
            rest = [*counts[:task], count - 1, *counts[task + 1 :]]
            yield from ((task, *order) for order in _orders(rest))
