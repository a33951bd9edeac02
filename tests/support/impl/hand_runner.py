"""Services that step when the test tells them, at the time that it sets."""

from concurrent.futures import Future
from typing import Any

from tornpage.impl.service.runner import Service

__all__ = ["HandDriven", "HandRunner"]


class HandDriven:
    """Drives one service when the test asks.

    A waiting caller steps it, or lets time pass while it `hangs`.
    """

    def __init__(self, service: Service, runner: "HandRunner") -> None:
        self.wakes = 0
        self.stopped = False
        self.hangs = False
        self.due_ms: int | None = None
        self._service = service
        self._runner = runner

    def now_ms(self) -> int:
        """The time of the runner."""
        return self._runner.now_ms

    def start(self, *, after_ms: int) -> None:
        """Record the time of the first round."""
        self.due_ms = self._runner.now_ms + after_ms

    def wake(self) -> None:
        """Count the call."""
        self.wakes += 1

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Step the service until it has answered, at most a few times."""
        if self.hangs:
            self._runner.now_ms += timeout_ms
            return answer.done()
        for _ in range(4):
            if answer.done():
                break
            self.step()
        return answer.done()

    def step(self) -> int | None:
        """Run one round of the service unless it was stopped; return the next wanted time."""
        if not self.stopped:
            self.due_ms = self._service.step(self._runner.now_ms)
        return self.due_ms

    def stop(self) -> None:
        """Record the call."""
        self.stopped = True


class HandRunner:
    """Steps the services of one store when the test asks; give it to `Parts.runner`.

    The time is `now_ms`.
    """

    def __init__(self, *, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.services: dict[str, HandDriven] = {}

    def __call__(self, service: Service) -> HandDriven:
        """Take over a service."""
        driven = self.services[service.name] = HandDriven(service, self)
        return driven

    def __getitem__(self, name: str) -> HandDriven:
        return self.services[name]

    def step(self, name: str = "group-commit", *, after_ms: int = 0) -> int | None:
        """Advance the time and run one round of the service; return the next wanted time."""
        self.now_ms += after_ms
        return self.services[name].step()
