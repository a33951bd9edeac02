"""Tasks in threads of their own, of which one runs: who goes on at a yield point is read from a schedule.

1. At any moment at most one task runs. The others wait for a baton each; nobody polls or sleeps.
2. A task can be left at a yield point, while it waits for a cooperative lock, and when it ends; nowhere else. Yield
   points are the lines (or bytecodes) of watched modules as they begin, acquires and releases of cooperative locks,
   and calls of `yield_point`.
3. Where more than one task is runnable, the next integer of the schedule decides, modulo their number: 0 goes on
   with the current task, k takes the k-th other runnable one, by number. Where there is no current task that could
   go on (at the start, when it ended or waits), the integer counts the runnable ones from 0. Behind its end a
   schedule is zeros: the empty one runs the tasks one after the other.
4. Equal arguments and equal tasks give an equal trace. The cyclic garbage collector is off during a run: what it
   finalises would run at some allocation of some thread.
5. When a run returns or raises, its threads have ended, but for one that hangs outside all yield points.

What it leaves out: a lock the scheduler does not know (`threading.Lock`, `functools.cached_property`, an import) that
is waited for while its holder is parked; this is found by a watchdog, a verdict on the harness and the only use of
time. Threads that a task starts are not stepped. Memory orders weaker than the interpreter's are not tried.
"""

import gc
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar, cast

from tornpage.properties.contract import GuaranteeBroken, HarnessError
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
"""How often the supervising thread looks up: an interrupt just before it waits would not wake it."""


def run_stepped(
    tasks: Sequence[Callable[[], T]],
    schedule: Sequence[int],
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
        schedule: Any integers; ones that are left over are not used.
        modules: Whose code has yield points: modules, their names (a package means all below it) or source files.
        granularity: What a yield point is in that code.
        at_step: Actions that are called before the n-th yield point of the run, counted from 1, over all tasks.
        points_max: How many yield points a run may have.
        hang_seconds: How long the running task may stay away from all yield points.
        trace: Is filled with what happened, also when the run fails.

    Raises GuaranteeBroken of contract 16 when all tasks that have not ended wait; HarnessError when a bound is
    exceeded; what an action at a step raised; KeyboardInterrupt. In all these cases the tasks are ended first.
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
    """Start the threads, hand the first one the baton, wait for all of them; raise what ended the run."""
    # An interrupt waits until all threads stand; they inherit the mask, so that it always comes to this one.
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
    """Return when all threads have ended, or nothing more can be done for the ones that have not."""
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
    """End the run without the task that hangs; what it waits for may be given up by another one, parked."""
    hung = scheduler.running
    if hung is None:
        return
    frame = sys._current_frames().get(hung.thread.ident or 0)
    place = location(frame) if frame is not None else "its end"
    question = "does it wait for a lock the scheduler does not know?"
    scheduler.fail(HarnessError(f"task {hung.number} is at {place} for {hang_seconds} s: {question}"))
    hung.abandoned = hung.ended = True
    scheduler.hand_on()
