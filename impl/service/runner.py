"""Who steps the services of a store: a thread for each in production, the test itself in a test."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

__all__ = ["Runner", "RunnerFactory", "Service", "ThreadRunner"]

_LOG = logging.getLogger("tornpage.store")

_PAUSE_AFTER_FAILURE_MS = 1_000


class Service(Protocol):
    """One background duty of a store. It never sleeps, and knows no clock but the one it is told."""

    @property
    def name(self) -> str:
        """What threads and log lines call it."""

    def step(self, now_ms: int) -> int | None:
        """Do one round; return when the next one is wanted, None for not before somebody wakes it."""


class Runner(Protocol):
    """Drives one service. Times are milliseconds of a clock that never goes back."""

    def now_ms(self) -> int:
        """The time that the service is told."""

    def start(self, *, after_ms: int) -> None:
        """Have the first round after a while, and then as the service wants it."""

    def wake(self) -> None:
        """Say that there is work: a step that begins after this call will be taken."""

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Wait until the service, or somebody else, has answered; return whether that has happened."""

    def stop(self) -> None:
        """End the driving; no step runs any more when this returns. Work that is left is the caller's. Idempotent."""


RunnerFactory = Callable[[Service], Runner]


class ThreadRunner:
    """One daemon thread; it begins with the first start or wake. Source: `ServiceThread`.

    A step that fails is logged and tried again after a second: what waits for a later one must not wait for ever.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = threading.RLock()  # `with` takes it, and no condition: an interrupt may leave that one locked
        self._state = threading.Condition(self._guard)
        self._has_work = False
        self._stopped = False
        self._due_ms: int | None = None
        self._thread: threading.Thread | None = None

    def now_ms(self) -> int:
        """Source: clock_gettime(2), CLOCK_MONOTONIC."""
        return time.monotonic_ns() // 1_000_000

    def start(self, *, after_ms: int) -> None:
        """Let the thread begin; where there are no more threads to be had, only those who wake make steps."""
        with self._guard:
            if not self._stopped:
                self._due_ms = self.now_ms() + after_ms
                self._thread_runs()
                self._state.notify()

    def wake(self) -> None:
        """Let the thread step once more."""
        if self._has_work:
            return  # that step has not begun yet
        with self._guard:
            self._has_work = True
            running = self._stopped or self._thread_runs()
            self._state.notify()
        if not running:
            self._has_work = False
            self._step()  # no more threads to be had: the caller does the work

    def _thread_runs(self) -> bool:
        if self._thread is not None:
            return True
        thread = threading.Thread(target=self._run, name=f"tornpage-{self._service.name}", daemon=True)
        self._thread = thread  # first: an interrupt of the start leaves one that stop() ends
        try:
            thread.start()
        except RuntimeError:
            self._thread = None
            return False
        return True

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Sleep until then."""
        try:
            answer.exception(timeout_ms / 1_000)
        except TimeoutError:
            return answer.done()
        return True

    def stop(self) -> None:
        """End the thread after the step it may be in."""
        with self._guard:
            self._stopped = True
            self._state.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            with suppress(RuntimeError):  # an interrupt came before it was started
                thread.join()

    def _run(self) -> None:
        while self._sleep():
            self._step()

    def _sleep(self) -> bool:
        """Wait for work or for the next round; False when there is no next one."""
        with self._guard:
            while not (self._has_work or self._stopped):
                left_ms = None if self._due_ms is None else self._due_ms - self.now_ms()
                if left_ms is not None and left_ms <= 0:
                    break
                self._state.wait(None if left_ms is None else left_ms / 1_000)
            self._has_work = False
            return not self._stopped

    def _step(self) -> None:
        now_ms = self.now_ms()
        try:
            self._due_ms = self._service.step(now_ms)
        except OSError as error:
            _LOG.warning("step_failed service=%s error=%s", self._service.name, error)
            self._due_ms = now_ms + _PAUSE_AFTER_FAILURE_MS
        except BaseException:
            _LOG.exception("step_failed service=%s", self._service.name)
            self._due_ms = now_ms + _PAUSE_AFTER_FAILURE_MS
