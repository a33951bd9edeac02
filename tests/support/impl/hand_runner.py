"""Services that take their steps when the test says so, at the time that it says."""

from concurrent.futures import Future
from typing import Any

from tornpage.impl.service.runner import Service

__all__ = ["HandDriven", "HandRunner"]


class HandDriven:
    """Drives one service when the test says so; who waits steps it, or lets the time pass while it `hangs`."""

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
        """Note when the first round is due."""
        self.due_ms = self._runner.now_ms + after_ms

    def wake(self) -> None:
        """Count it."""
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
        """Let the service do one round, unless it was stopped; return when it wants the next."""
        if not self.stopped:
            self.due_ms = self._service.step(self._runner.now_ms)
        return self.due_ms

    def stop(self) -> None:
        """Note it."""
        self.stopped = True


class HandRunner:
    """Steps the services of one store when the test says so; hand it to `Parts.runner`. The time is `now_ms`."""

    def __init__(self, *, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.services: dict[str, HandDriven] = {}

    def __call__(self, service: Service) -> HandDriven:
        """Take a service to drive."""
        driven = self.services[service.name] = HandDriven(service, self)
        return driven

    def __getitem__(self, name: str) -> HandDriven:
        return self.services[name]

    def step(self, name: str = "group-commit", *, after_ms: int = 0) -> int | None:
        """Let so much time pass, then let the service do one round; return when it wants the next."""
        self.now_ms += after_ms
        return self.services[name].step()
