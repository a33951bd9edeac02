"""Who steps a store's services in a stepped run: a task of their own that waits until they are woken, as a thread does.

Nothing here takes time. Who waits for an answer is parked until it is there; who stops a service, until its step ends.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tornpage.impl.service.runner import Service
from tornpage.properties.scheduler.task import current_task

__all__ = ["SteppedRunner"]

_STEPS_OF_A_WAIT_MAX = 4


class _Until:
    """Something a task waits for."""

    def __init__(self, what: str, is_there: Callable[[], bool]) -> None:
        self._what = what
        self._is_there = is_there

    @property
    def is_free(self) -> bool:
        return self._is_there()

    def __str__(self) -> str:
        return self._what


class SteppedRunner:
    """Drives one service. Outside of a stepped run whoever waits steps it himself.

    `failure` is what left its last step, an error of the disk that the service means to try again apart.
    """

    def __init__(self, service: Service, clock: Callable[[], int]) -> None:
        self.name = service.name
        self.is_woken = False
        self.is_stopped = False
        self._steps = False
        self._service = service
        self._clock = clock

    def now_ms(self) -> int:
        """The virtual time."""
        return self._clock()

    def start(self, *, after_ms: int) -> None:
        """Nothing: rounds that are due are taken when a scenario says so."""

    def wake(self) -> None:
        """Say that there is work."""
        self.is_woken = True

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Let others run until there is an answer."""
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
        """Let the service do one round, alone; False once it was stopped."""
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
        """Let others run until there is work, and return True; False when there will be none any more."""
        task = current_task()
        assert task is not None
        if not (self.is_woken or is_over()):
            task.wait_for(_Until(f"work for {self.name}", lambda: self.is_woken or self.is_stopped or is_over()))
        return self.is_woken and not self.is_stopped

    def stop(self) -> None:
        """End the driving once the step under way, if there is one, is over."""
        self.is_stopped = True
        task = current_task()
        if self._steps and task is not None:
            task.wait_for(_Until(f"the last step of {self.name}", lambda: not self._steps))
