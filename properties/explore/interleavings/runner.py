"""Step a store's services in a stepped run, each in a task that waits until it is woken.

Nothing here takes time. A task that waits for an answer is parked until the answer is there. A task that stops a
service is parked until the step of the service ends.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tornpage.impl.service.runner import Service
from tornpage.properties.scheduler.task import current_task

__all__ = ["SteppedRunner"]

_STEPS_OF_A_WAIT_MAX = 4


class _Until:
    """Describe something that a task waits for."""

    def __init__(self, what: str, is_there: Callable[[], bool]) -> None:
        self._what = what
        self._is_there = is_there

    @property
    def is_free(self) -> bool:
        return self._is_there()

    def __str__(self) -> str:
        return self._what


class SteppedRunner:
    """Drive one service. Outside of a stepped run a waiting caller steps it itself.

    `failure` is the error with which the last step ended, an I/O error that the service retries separately.
    """

    def __init__(self, service: Service, clock: Callable[[], int]) -> None:
        self.name = service.name
        self.is_woken = False
        self.is_stopped = False
        self._steps = False
        self._service = service
        self._clock = clock

    def now_ms(self) -> int:
        """Return the virtual time."""
        return self._clock()

    def start(self, *, after_ms: int) -> None:
        """Do nothing. Rounds that are due run when a scenario says so."""

    def wake(self) -> None:
        """Note that there is work."""
        self.is_woken = True

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Let other tasks run until there is an answer."""
        task = current_task()
        if task is not None:
            if not answer.done():
                task.wait_for(_Until(f"an answer of {self.name}", answer.done))
            return True
        for _ in range(_STEPS_OF_A_WAIT_MAX):
            if answer.done() or not self.is_woken:
                break
            self.step()
        return answer.done()

    def step(self) -> bool:
        """Let the service do one round, without overlap. Return False once it was stopped."""
        task = current_task()
        if self._steps and task is not None:
            task.wait_for(_Until(f"the end of a step of {self.name}", lambda: not self._steps))
        if self.is_stopped:
            return False
        self.is_woken, self._steps = False, True
        try:
            self._service.step(self._clock())
        finally:
            self._steps = False
        return True

    def wait_for_work(self, is_over: Callable[[], bool]) -> bool:
        """Let other tasks run until there is work; return False if there will be none."""
        task = current_task()
        assert task is not None
        if not (self.is_woken or is_over()):
            task.wait_for(_Until(f"work for {self.name}", lambda: self.is_woken or self.is_stopped or is_over()))
        return self.is_woken and not self.is_stopped

    def stop(self) -> None:
        """Stop the service after the running step, if there is one."""
        self.is_stopped = True
        task = current_task()
        if self._steps and task is not None:
            task.wait_for(_Until(f"the last step of {self.name}", lambda: not self._steps))
