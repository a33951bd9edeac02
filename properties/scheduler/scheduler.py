"""The scheduler as its tasks see it: yield points, blocking, the baton, and the end.

All of this runs in the thread with the baton, which must not touch shared state after it has handed the baton on. The
supervising thread may only end the run (`fail`), read the state, and replace a task that hangs.
"""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Final, NoReturn, TypeVar, cast

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.scheduler.accesses import Access
from tornpage.properties.scheduler.choosers import Chooser
from tornpage.properties.scheduler.task import Outcome, Task, Waited
from tornpage.properties.scheduler.trace import Step, StepTrace, Turn
from tornpage.properties.scheduler.watch import TraceFunction, Watch, location

__all__ = ["Scheduler"]

T = TypeVar("T")

_LIVENESS: Final = 16
_POINTS_SINCE_END_MAX: Final = 10_000
"""How many yield points a task that is being ended may pass in its cleanup before it is ended again."""


class _Ended(BaseException):
    """Raised in a task whose run is over; never leaves its thread."""


class Scheduler:
    """The state that all tasks share.

    `running` has the baton; `over` is set when all tasks have ended.
    """

    def __init__(
        self,
        calls: Sequence[Callable[[], object]],
        schedule: Sequence[int] | Chooser,
        watch: Watch,
        actions: Mapping[int, Callable[[], None]],
        points_max: int,
        trace: StepTrace,
    ) -> None:
        self.trace = trace
        self.running: Task | None = None
        self.failure: BaseException | None = None
        self.over = threading.Event()
        self.is_quiet = False
        self._chooser = None if isinstance(schedule, Sequence) else schedule
        self._schedule: Sequence[int] = schedule if isinstance(schedule, Sequence) else ()
        self._watch = watch
        self._actions = actions
        self._points_max = points_max
        self._ending = False
        self.tasks = [Task(self, number, call) for number, call in enumerate(calls)]

    def live(self, task: Task) -> None:
        """Wait for the first turn, call the task, and hand the baton on."""
        task.begin()
        if not self._ending:
            task.outcome = self._call(task)
        if not self._ending:
            self._leave(task, "end")
            if self.trace.records_accesses:
                self.trace.accesses.append(Step(task.number, task.access))
        task.ended = True
        if not task.abandoned:
            self.hand_on()

    def _call(self, task: Task) -> Outcome[object]:
        before = cast(TraceFunction | None, sys.gettrace())
        touch = partial(self.touch, task) if self.trace.records_accesses else None
        if self._watch or touch is not None:
            sys.settrace(self._watch.tracer(partial(self.point, task), touch))
        try:
            return Outcome(value=task.call())
        except BaseException as error:
            return Outcome(error=error)
        finally:
            sys.settrace(before)

    def point(self, task: Task, where: FrameType | str) -> None:
        """Count a yield point of the running task, run a due action, and let the schedule choose."""
        if self._ending:
            self._end(task)
            return
        if self.is_quiet:
            return
        trace = self.trace
        trace.steps += 1
        task.points_of_turn += 1
        if trace.steps > self._points_max:
            self._stop(task, where, HarnessError(f"more than {self._points_max} yield points: {location(where)}"))
        if trace.steps in self._actions:
            try:
                self.quietly(self._actions[trace.steps])
            except BaseException as error:
                self._stop(task, where, error)
        if trace.records_accesses:
            self._end_step(task, where)
        if self._chooser is not None:
            others = [other for other in self._runnable() if other is not task]
            chosen = self._decide([task, *others], is_forced=False)
            if chosen is not task:
                self._switch(task, chosen, where)
            return
        count = 0
        self.is_quiet = True  # what a task waits for may be a method of watched code
        for other in self.tasks:
            if other is not task and not other.ended and (other.waits_for is None or other.waits_for.is_free):
                count += 1
        self.is_quiet = False
        if count:
            number = self._choose(count + 1, is_forced=False, is_locked=bool(task.locks))
            if number:
                others = [other for other in self._runnable() if other is not task]
                self._switch(task, others[number - 1], where)

    def block(self, task: Task, waited: Waited) -> None:
        """Mark a task as waiting and let others run.

        Returns when it has the baton and what it waited for.
        """
        if self._ending:
            raise _Ended
        task.waits_for = waited
        runnable = self._runnable()
        if not runnable:
            self._stop(task, f"waits for {waited}", self._deadlock())
        where = f"waits for {waited}"
        if self.trace.records_accesses:
            self._end_step(task, where)
        self._switch(task, self._decide(runnable, is_forced=True), where)
        task.waits_for = None

    def quietly(self, call: Callable[[], T]) -> T:
        """Call something without yield points."""
        before, self.is_quiet = self.is_quiet, True
        try:
            return call()
        finally:
            self.is_quiet = before

    # ---- turns ---------------------------------------------------------------------------------------------------

    def _runnable(self) -> list[Task]:
        before, self.is_quiet = self.is_quiet, True
        try:
            return [
                task for task in self.tasks if not task.ended and (task.waits_for is None or task.waits_for.is_free)
            ]
        finally:
            self.is_quiet = before

    def _decide(self, tasks: Sequence[Task], *, is_forced: bool) -> Task:
        """Return the task that runs next.

        If the decision is not forced, the first of `tasks` is the current one.
        """
        if self._chooser is None:
            return tasks[self._choose(len(tasks), is_forced=is_forced)]
        current = None if is_forced else tasks[0].number
        number = self._chooser.choose(current, [task.number for task in tasks], self.trace)
        at = next(at for at, task in enumerate(tasks) if task.number == number)
        if len(tasks) > 1:
            is_locked = not is_forced and bool(tasks[0].locks)
            self.trace.decided(len(tasks), at, is_forced=is_forced, is_locked=is_locked)
        return tasks[at]

    def _choose(self, options: int, *, is_forced: bool, is_locked: bool = False) -> int:
        if options == 1:
            return 0
        trace = self.trace
        number = 0
        if trace.integers_used < len(self._schedule):
            number = self._schedule[trace.integers_used] % options
            trace.integers_used += 1
        trace.decided(options, number, is_forced=is_forced, is_locked=is_locked)
        return number

    def touch(self, task: Task, access: Access) -> None:
        """Add to what the current step of a task may have touched."""
        task.access = task.access.joined(access)

    def _end_step(self, task: Task, where: FrameType | str) -> None:
        """Record what the step of a task may have touched, and begin the next one at a place."""
        self.trace.accesses.append(Step(task.number, task.access))
        task.access = self._watch.access_of_stack() if isinstance(where, str) else self._watch.access_at(where)

    def _leave(self, task: Task, where: FrameType | str) -> None:
        self.trace.add(Turn(task.number, task.points_of_turn, location(where)))
        task.points_of_turn = 0

    def _switch(self, task: Task, chosen: Task, where: FrameType | str) -> None:
        self._leave(task, where)
        self.running = chosen
        chosen.baton.release()  # from here on the other task runs: no shared state is touched
        task.baton.acquire()
        if self._ending:
            self._end(task)

    def hand_on(self) -> None:
        """Give the baton to a task when none has it: at the start, and after an end.

        While the run ends, each task gets it in turn.
        """
        alive = [task for task in self.tasks if not task.ended]
        if not alive:
            self.over.set()
            return
        runnable = self._runnable()
        if not runnable and not self._ending:
            self.fail(self._deadlock())
        self.running = alive[0] if self._ending else self._decide(runnable, is_forced=True)
        self.running.baton.release()

    # ---- the end -------------------------------------------------------------------------------------------------

    def _deadlock(self) -> GuaranteeBroken:
        waiting = "; ".join(f"task {task.number} waits for {task.waits_for}" for task in self.tasks if not task.ended)
        sentence, expected = "all producers wait for each other", "one that can continue"
        return GuaranteeBroken(_LIVENESS, sentence, expected=expected, found=waiting)

    def fail(self, error: BaseException) -> None:
        """Keep the first reason, and end the run."""
        if self.failure is None:
            self.failure = error
        self._ending = True

    def _stop(self, task: Task, where: FrameType | str, error: BaseException) -> NoReturn:
        """End the run from inside, beginning with the current task."""
        self._leave(task, where)
        self.fail(error)
        task.is_ending = True
        raise _Ended

    def _end(self, task: Task) -> None:
        """Raise in a task whose run is over.

        It is raised again if the cleanup of the task takes too long.
        """
        task.points_since_end += task.is_ending
        if not task.is_ending or task.points_since_end > _POINTS_SINCE_END_MAX:
            task.is_ending = True
            raise _Ended
