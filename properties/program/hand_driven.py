"""A runner without threads: the services of a store step when the case says so."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from tornpage.impl.service.runner import Service

__all__ = ["HandDriven", "Round"]

_STEPS_OF_A_WAIT_MAX = 4
_PAUSE_AFTER_FAILURE_MS = 1_000


@dataclass(frozen=True, slots=True)
class Round:
    """One step of a service at `now_ms`.

    It has the time of the next step, and whether the disk failed.
    """

    now_ms: int
    due_ms: int | None
    failed: bool = False


class HandDriven:
    """Drives one service by hand; `clock` is the virtual time.

    A caller that waits for an answer steps the service, but only if it was woken or is due, as a thread would step.
    """

    def __init__(self, service: Service, clock: Callable[[], int]) -> None:
        self.is_woken = False
        self.is_stopped = False
        self.due_ms: int | None = None
        self._service = service
        self._clock = clock

    @property
    def name(self) -> str:
        """The name of the service."""
        return self._service.name

    def will_step(self, by_ms: int | None) -> bool:
        """Whether a thread would take another step by a time, without another wake-up."""
        return self.is_woken or (self.due_ms is not None and (by_ms is None or self.due_ms <= by_ms))

    @property
    def _is_due(self) -> bool:
        return self.due_ms is not None and self.due_ms <= self._clock()

    def now_ms(self) -> int:
        """Return the virtual time."""
        return self._clock()

    def start(self, *, after_ms: int) -> None:
        """Note when the first round is due."""
        self.due_ms = self._clock() + after_ms

    def wake(self) -> None:
        """Note the wake-up. The service is not stepped before the case says so."""
        self.is_woken = True

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Step the service while it is woken or due and has not answered; no time passes."""
        for _ in range(_STEPS_OF_A_WAIT_MAX):
            if answer.done() or not (self.is_woken or self._is_due):
                break
            self.step()
        return answer.done()

    def step(self) -> Round | None:
        """Run one round of the service, as a thread would; a disk error is retried after a pause.

        Returns None after the service was stopped.
        """
        if self.is_stopped:
            return None
        self.is_woken = False
        now_ms, failed = self._clock(), False
        try:
            self.due_ms = self._service.step(now_ms)
        except OSError:
            self.due_ms, failed = now_ms + _PAUSE_AFTER_FAILURE_MS, True
        return Round(now_ms, self.due_ms, failed)

    def stop(self) -> None:
        """Take no further steps."""
        self.is_stopped = True
