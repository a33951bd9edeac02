"""Tasks of an exhaustive run, done by this process or by several, results in the order of the tasks.

Each process has a tracker of its own and is started afresh: what watches pages does not survive a fork. They end by
themselves when the run is over, at the next state; a keyboard interrupt is the business of the process that was asked.
"""

import multiprocessing
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from time import monotonic
from typing import Literal, Protocol

from properties.exhausting.alphabet import Workload
from properties.exhausting.checking import Checked, check_workload
from properties.exhausting.explored import Explored, Plan, explore_workload
from properties.recorder.dirty import DirtyTracker, choose_tracker
from properties.verdict import HarnessError

__all__ = ["Done", "Keeping", "Task", "performed"]


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


def performed(
    tasks: Sequence[Task], plan: Plan, *, workers: int, deadline: float | None, kept: Keeping | None
) -> Generator[Done | None, None, None]:
    """Yield what came of each task, in order; None and no more when the deadline (`monotonic`) has passed before it.

    Raises HarnessError if a process dies.
    """
    known = [_known(task, kept) for task in tasks]
    left = [task for task, done in zip(tasks, known, strict=True) if done is None]
    with closing((_here if workers == 1 or not left else _elsewhere)(left, plan, workers, deadline)) as doing:
        for task, done in zip(tasks, known, strict=True):
            made = next(doing) if done is None else done
            if made is None:
                yield None
                return
            yield Done(task, made, is_kept=done is not None)


def _known(task: Task, kept: Keeping | None) -> Explored | Checked | None:
    if kept is None:
        return None
    return kept.explored.get(task.workload) if task.kind == "explore" else kept.checked.get(task.workload)


def _perform(task: Task, plan: Plan, tracker: DirtyTracker, is_over: Callable[[], bool]) -> Explored | Checked | None:
    if task.kind == "explore":
        return explore_workload(task.workload, plan, tracker=tracker, is_over=is_over)
    return check_workload(task.workload, plan.settings, plan.check_bound, tracker=tracker, is_over=is_over)


def _here(
    tasks: Sequence[Task], plan: Plan, workers: int, deadline: float | None
) -> Generator[Explored | Checked | None, None, None]:
    with choose_tracker("auto") as tracker:
        for task in tasks:
            yield _perform(task, plan, tracker, lambda: deadline is not None and monotonic() > deadline)


# ---- several processes -----------------------------------------------------------------------------------------------


def _elsewhere(
    tasks: Sequence[Task], plan: Plan, workers: int, deadline: float | None
) -> Generator[Explored | Checked | None, None, None]:
    spawn = multiprocessing.get_context("spawn")
    over = spawn.Event()
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin, initargs=(plan, deadline, over))
    try:
        futures = [pool.submit(_work, task) for task in tasks]
        for future in futures:
            yield future.result()
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

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("tornpage").addHandler(logging.NullHandler())
    _Worker.plan, _Worker.deadline, _Worker.over = plan, deadline, over
    _Worker.tracker = choose_tracker("auto")


def _work(task: Task) -> Explored | Checked | None:
    return _perform(task, _Worker.plan, _Worker.tracker, _Worker.is_over)
