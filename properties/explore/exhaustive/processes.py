"""Tasks of an exhaustive run, done by this process or by several, results in the order of the tasks.

Each process has a tracker of its own and is started afresh: what watches pages does not survive a fork. They end by
themselves when the run is over, at the next state; a keyboard interrupt is the business of the process that was asked.
"""

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Event
from time import monotonic
from typing import Literal, Protocol

from properties.contract import HarnessError
from properties.disk.dirty import DirtyTracker, choose_tracker
from properties.explore.exhaustive.alphabet import Workload
from properties.explore.exhaustive.checking import Checked, check_workload
from properties.explore.exhaustive.explored import Explored, Plan, explore_workload
from properties.interrupts import born_deaf

__all__ = ["Done", "Keeping", "Task", "performed"]

_AHEAD = 32
"""Tasks that wait for each process, so that none is idle while others are slow."""


@dataclass(frozen=True, slots=True)
class Task:
    """One workload, explored or checked. `completes` is the length that is done with it, -1 if there is more of it."""

    kind: Literal["explore", "check"]
    workload: Workload
    completes: int = -1


@dataclass(frozen=True, slots=True)
class Done:
    """A task and what came of it; `is_kept` says that an earlier run did it."""

    task: Task
    what: Explored | Checked
    is_kept: bool = False


class Keeping(Protocol):
    """Where results of earlier runs come from, and those of this one go."""

    explored: dict[Workload, Explored]
    checked: dict[Workload, Checked]

    def add(self, done: Explored | Checked) -> None:
        """Keep one more."""


_Result = Explored | Checked | None
_Begin = Callable[[Task], Callable[[], _Result]]
"""Begins a task, or notes that it is to be done; what it returns waits for the end of it."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A task under way, or one that was done before."""

    task: Task
    result: Callable[[], _Result]
    is_kept: bool


def performed(
    tasks: Iterable[Task], plan: Plan, *, workers: int, deadline: float | None, kept: Keeping | None
) -> Generator[Done | None, None, None]:
    """Yield what came of each task, in order; None and no more when the deadline (`monotonic`) has passed before it.

    Tasks are taken as they are needed, some for each process ahead. Raises HarnessError if a process dies.
    """
    with _here(plan, deadline) if workers == 1 else _elsewhere(plan, workers, deadline) as begin:
        for begun in _ahead(_begun(tasks, begin, kept), 0 if workers == 1 else _AHEAD * workers):
            made = begun.result()
            if made is None:
                yield None
                return
            yield Done(begun.task, made, is_kept=begun.is_kept)


def _begun(tasks: Iterable[Task], begin: _Begin, kept: Keeping | None) -> Iterator[_Begun]:
    for task in tasks:
        known = _known(task, kept)
        if known is None:
            yield _Begun(task, begin(task), is_kept=False)
        else:
            yield _Begun(task, partial(_itself, known), is_kept=True)


def _itself(known: Explored | Checked) -> _Result:
    return known


def _ahead(begun: Iterable[_Begun], count: int) -> Iterator[_Begun]:
    """Yield each when so many behind it were begun."""
    waiting: deque[_Begun] = deque()
    for each in begun:
        waiting.append(each)
        if len(waiting) > count:
            yield waiting.popleft()
    yield from waiting


def _known(task: Task, kept: Keeping | None) -> Explored | Checked | None:
    if kept is None:
        return None
    return kept.explored.get(task.workload) if task.kind == "explore" else kept.checked.get(task.workload)


def _perform(task: Task, plan: Plan, tracker: DirtyTracker, is_over: Callable[[], bool]) -> Explored | Checked | None:
    if task.kind == "explore":
        return explore_workload(task.workload, plan, tracker=tracker, is_over=is_over)
    return check_workload(task.workload, plan.settings, plan.check_bound, tracker=tracker, is_over=is_over)


@contextmanager
def _here(plan: Plan, deadline: float | None) -> Iterator[_Begin]:
    with choose_tracker("auto") as tracker:
        yield lambda task: partial(
            _perform, task, plan, tracker, lambda: deadline is not None and monotonic() > deadline
        )


# ---- several processes -----------------------------------------------------------------------------------------------


@contextmanager
def _elsewhere(plan: Plan, workers: int, deadline: float | None) -> Iterator[_Begin]:
    spawn = multiprocessing.get_context("spawn")
    over = spawn.Event()
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin, initargs=(plan, deadline, over))
    try:
        with born_deaf():
            for _ in range(workers):
                pool.submit(_have_begun)  # each starts a process, as nobody is idle yet
        yield lambda task: pool.submit(_work, task).result
    except BrokenProcessPool as error:
        raise HarnessError(f"a process that explored has died: {error}") from error
    finally:
        over.set()
        pool.shutdown(cancel_futures=True)


class _Worker:
    """What a process has for all its tasks."""

    plan: Plan
    deadline: float | None
    over: Event
    tracker: DirtyTracker

    @classmethod
    def is_over(cls) -> bool:
        return cls.over.is_set() or (cls.deadline is not None and monotonic() > cls.deadline)


def _begin(plan: Plan, deadline: float | None, over: Event) -> None:
    import logging

    logging.getLogger("tornpage").addHandler(logging.NullHandler())
    _Worker.plan, _Worker.deadline, _Worker.over = plan, deadline, over
    _Worker.tracker = choose_tracker("auto")


def _have_begun() -> None:
    """Do nothing."""


def _work(task: Task) -> Explored | Checked | None:
    return _perform(task, _Worker.plan, _Worker.tracker, _Worker.is_over)
