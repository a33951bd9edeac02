"""Run tasks in threads, one at a time; a schedule decides at each yield point.

1. At any moment at most one task runs. The others wait for a baton each; no task polls or sleeps.
2. A task can be switched away at a yield point, while it waits for a cooperative lock, and at its end. Yield points are
   the begins of lines (or bytecodes) of watched modules, acquires and releases of cooperative locks, and calls of
   `yield_point`.
3. If more than one task is runnable, the next integer of the schedule decides, modulo their number: 0 continues with
   the current task, k takes the k-th other runnable task, by number. Without a current task that can continue (at the
   start, after its end, or while it waits), the integer counts the runnable tasks from 0. Past its end a schedule is
   zeros: the empty one runs the tasks one after the other.
4. Equal arguments and equal tasks give an equal trace. The cyclic garbage collector is off during a run, because
   finalisers would run at some allocation of some thread.
5. When a run returns or raises, its threads have ended, except one that hangs outside all yield points.

Not covered: waits for a lock that the scheduler does not know (`threading.Lock`, `functools.cached_property`, an
import) whose holder is parked. A watchdog finds them, which is a verdict on the harness and the only use of time.
Threads that a task starts are not stepped. Weaker memory orders than the interpreter's are not tried.
"""

import gc
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar, cast

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.scheduler.choosers import Chooser
from tornpage.properties.scheduler.scheduler import Scheduler
from tornpage.properties.scheduler.task import Outcome, Task
from tornpage.properties.scheduler.trace import StepTrace
from tornpage.properties.scheduler.watch import Granularity, Watch, location

__all__ = ["HANG_SECONDS", "POINTS_MAX", "run_stepped"]

T = TypeVar("T")

POINTS_MAX: Final = 200_000
HANG_SECONDS: Final = 60.0
_TASKS_MAX: Final = 255
_LOOK_SECONDS: Final = 0.2
"""Poll interval of the supervising thread: an interrupt just before its wait would not wake it."""


def run_stepped(
    tasks: Sequence[Callable[[], T]],
    schedule: Sequence[int] | Chooser,
    *,
    modules: Iterable[ModuleType | str | Path] = (),
    granularity: Granularity = "line",
    at_step: Mapping[int, Callable[[], None]] | None = None,
    points_max: int = POINTS_MAX,
    hang_seconds: float = HANG_SECONDS,
    trace: StepTrace | None = None,
) -> list[Outcome[T]]:
    """Run the tasks as the schedule says; return how each of them ended.

    Args:
        tasks: At most 255, numbered from 0; each is called once, in a new thread.
        schedule: Any integers; superfluous ones are not used. Or a function object that chooses during the run.
        modules: The code with yield points: modules, their names (a package means all below it) or source files.
        granularity: What a yield point is in that code.
        at_step: Actions that are called before the n-th yield point of the run, counted from 1, over all tasks.
        points_max: How many yield points a run may have.
        hang_seconds: How long the running task may stay away from all yield points.
        trace: Is filled with what happened, also if the run fails.

    Raises GuaranteeBroken of contract 16 if all tasks that have not ended wait; HarnessError if a bound is exceeded;
    the exception of an action at a step; KeyboardInterrupt. In all these cases the tasks are ended first.
    """
    if len(tasks) > _TASKS_MAX:
        raise ValueError(f"{len(tasks)} tasks, at most {_TASKS_MAX}")
    actions = dict(at_step or {})
    if any(step < 1 for step in actions):
        raise ValueError(f"steps are counted from 1: {min(actions)}")
    trace = StepTrace() if trace is None else trace
    trace.clear()
    scheduler = Scheduler(tasks, schedule, Watch(modules, granularity), actions, points_max, trace)
    collecting = gc.isenabled()
    gc.disable()
    try:
        _supervise(scheduler, hang_seconds)
    finally:
        if collecting:
            gc.enable()
    return [cast(Outcome[T], task.outcome) for task in scheduler.tasks]


def _supervise(scheduler: Scheduler, hang_seconds: float) -> None:
    """Start the threads, hand on the first baton, and wait for all; raise what ended the run."""
    # An interrupt waits until all threads run. They inherit the mask, so that it always comes to this thread.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    started: list[Task] = []
    try:
        for task in scheduler.tasks:
            task.thread.start()
            started.append(task)
    except BaseException as error:
        scheduler.fail(error)
        for task in scheduler.tasks[len(started) :]:
            task.ended = True
    scheduler.hand_on()
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _wait(scheduler, started, hang_seconds)
    except BaseException as error:
        scheduler.fail(error)
        _wait(scheduler, started, hang_seconds)
        raise
    if isinstance(scheduler.failure, GuaranteeBroken | HarnessError):
        scheduler.failure.add_note(str(scheduler.trace))
    if scheduler.failure is not None:
        raise scheduler.failure


def _wait(scheduler: Scheduler, started: Sequence[Task], hang_seconds: float) -> None:
    """Return when all threads have ended, or when the others cannot be ended."""
    look_seconds = min(hang_seconds, _LOOK_SECONDS)
    still_seconds, seen = 0.0, (-1, scheduler.running)
    while not scheduler.over.wait(look_seconds):
        before, seen = seen, (scheduler.trace.steps, scheduler.running)
        still_seconds = still_seconds + look_seconds if seen == before else 0.0
        if still_seconds >= hang_seconds:
            if any(task.abandoned for task in scheduler.tasks):
                break
            _abandon(scheduler, hang_seconds)
            still_seconds = 0.0
    for task in started:
        task.thread.join(hang_seconds)


def _abandon(scheduler: Scheduler, hang_seconds: float) -> None:
    """End the run without the hanging task; another parked task may release what it waits for."""
    hung = scheduler.running
    if hung is None:
        return
    frame = sys._current_frames().get(hung.thread.ident or 0)
    place = location(frame) if frame is not None else "its end"
    question = "does it wait for a lock the scheduler does not know?"
    scheduler.fail(HarnessError(f"task {hung.number} is at {place} for {hang_seconds} s: {question}"))
    hung.abandoned = hung.ended = True
    scheduler.hand_on()
