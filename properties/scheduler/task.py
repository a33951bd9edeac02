"""One task of a stepped run: its thread, its baton, what it waits for, and how it ended."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Generic, Protocol, TypeVar, cast

from tornpage.properties.scheduler.accesses import NOTHING, Access

__all__ = ["Outcome", "Stepper", "Task", "Waited", "current_task", "yield_point"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """How a task ended: the exception that left it, or its value."""

    value: T | None = None
    error: BaseException | None = None

    def unwrap(self) -> T:
        """Return the value, or raise the exception."""
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


class Waited(Protocol):
    """What a task can wait for; its text names it and its holder."""

    @property
    def is_free(self) -> bool:
        """Whether a task that waits for it could continue."""


class Stepper(Protocol):
    """The run as a task sees it."""

    is_quiet: bool

    def live(self, task: "Task") -> None:
        """Be the body of a task's thread."""

    def point(self, task: "Task", where: FrameType | str) -> None:
        """Pass a yield point."""

    def block(self, task: "Task", waited: Waited) -> None:
        """Return when something is free."""

    def quietly(self, call: Callable[[], T]) -> T:
        """Call something without yield points."""
        ...

    def touch(self, task: "Task", access: Access) -> None:
        """Add to what the current step of a task may have touched."""


class Task:
    """Owned by its run. A task is runnable if it has not ended and what it waits for is free.

    `is_ending`: it was made to end early. `abandoned`: the run continues without its baton. `locks` is the number of
    scheduler's locks that it holds.
    """

    def __init__(self, run: Stepper, number: int, call: Callable[[], object]) -> None:
        self.run = run
        self.number = number
        self.call = call
        self.outcome: Outcome[object] = Outcome()
        self.waits_for: Waited | None = None
        self.ended = self.is_ending = self.abandoned = False
        self.points_of_turn = 0
        self.points_since_end = 0
        self.locks = 0
        self.access = NOTHING
        self.baton = threading.Lock()
        self.baton.acquire()
        self.thread = threading.Thread(target=run.live, args=(self,), name=f"stepped-{number}", daemon=True)

    def point(self, where: str) -> None:
        """Pass a yield point of this name."""
        self.run.point(self, where)

    def touch(self, access: Access) -> None:
        """Add to what the current step may have touched."""
        self.run.touch(self, access)

    def wait_for(self, waited: Waited) -> None:
        """Let others run until something is free."""
        self.run.block(self, waited)

    def begin(self) -> None:
        """Wait for the first turn, in the task's own thread."""
        self.baton.acquire()
        _HERE.task = self


class _Here(threading.local):
    task: Task | None = None


_HERE = _Here()


def current_task() -> Task | None:
    """Return the task that runs this code; None outside a run and in an action at a step."""
    task = _HERE.task
    return None if task is None or task.run.is_quiet else task


def yield_point(label: str) -> None:
    """Let the schedule choose the next task. Does nothing outside a stepped run."""
    task = current_task()
    if task is not None:
        task.point(label)
