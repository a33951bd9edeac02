"""Running the services of a store: in threads in production, by the test in tests."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

__all__ = ["Runner", "RunnerFactory", "Service", "ThreadRunner"]

_LOG = logging.getLogger("tornpage.store")

_PAUSE_AFTER_FAILURE_MS = 1_000


class Service(Protocol):
    """One background service of a store.

    It never sleeps, and its only clock is the time passed to `step`. An attribute `rest_ms` is optional: the pause in
    milliseconds between the end of a round and the begin of the next one. Requests of the pause share that round.
    """

    @property
    def name(self) -> str:
        """The name used for threads and log lines."""

    def step(self, now_ms: int) -> int | None:
        """Run one round; return when the next is due, None to wait for a wake-up.

        Times are milliseconds.
        """


class Runner(Protocol):
    """Runs one service. Times are milliseconds of a monotonic clock."""

    def now_ms(self) -> int:
        """The time passed to the service."""

    def start(self, *, after_ms: int) -> None:
        """Run the first round after a while, and later rounds as the service requests."""

    def wake(self) -> None:
        """Request a step that begins after this call."""

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Wait until a future is done; return whether it is done within the time."""

    def stop(self) -> None:
        """Stop; no step runs after this returns. The caller completes unfinished work. Idempotent."""


RunnerFactory = Callable[[Service], Runner]


class ThreadRunner:
    """Runs a service in one daemon thread, started at the first start or wake.

    Source: `ServiceThread`. A failed step is logged and repeated after a second, so that later work is done in the end.
    An exception of a signal handler, as Ctrl-C raises one, may end any method. The runner can be used afterwards.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._rest_s: float = getattr(service, "rest_ms", 0) / 1_000
        self._guard = threading.RLock()  # used in `with` instead of the condition, which an interrupt may leave locked
        self._state = threading.Condition(self._guard)
        self._has_work = False
        self._stopped = False
        self._due_ms: int | None = None
        self._thread: threading.Thread | None = None
        self._thread_key: object = None  # the thread that has it may run

    def now_ms(self) -> int:
        """Return the monotonic time in milliseconds. Source: clock_gettime(2), CLOCK_MONOTONIC."""
        return time.monotonic_ns() // 1_000_000

    def start(self, *, after_ms: int) -> None:
        """Start the thread.

        If no thread can be created, steps run in the threads that call `wake`.
        """
        with self._guard:
            if not self._stopped:
                self._due_ms = self.now_ms() + after_ms
                self._thread_runs()
                self._state.notify_all()

    def wake(self) -> None:
        """Request one more step."""
        if self._has_work:
            return  # a requested step has not begun yet
        with self._guard:
            running = self._stopped or self._thread_runs()
            if running:
                # An interrupted `notify` keeps a thread in its list, and another `notify` takes only that one.
                self._state.notify_all()
                self._has_work = True  # last, since later calls do nothing if it is set
        if not running:
            self._step()  # no thread can be created: the caller does the work

    def _thread_runs(self) -> bool:
        """Return whether there is a thread; start it if there is none yet.

        The caller holds the lock.
        """
        if self._thread is not None:
            return True
        self._thread_key = key = object()
        thread = threading.Thread(target=partial(self._run, key), name=f"tornpage-{self._service.name}", daemon=True)
        try:
            thread.start()
        except BaseException as error:
            self._thread_key = None  # a thread that was created before the exception ends at once
            if not isinstance(error, RuntimeError):
                raise
            return False
        self._thread = thread
        return True

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Wait for the future."""
        try:
            answer.exception(timeout_ms / 1_000)
        except TimeoutError:
            return answer.done()
        return True

    def stop(self) -> None:
        """End the thread after its current step."""
        with self._guard:
            self._stopped = True
            self._state.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self, key: object) -> None:
        with self._guard:  # `_thread_runs` holds it until it knows how the start ended
            if key is not self._thread_key:
                return
        while self._sleep():
            self._step()
            if self._rest_s:
                time.sleep(self._rest_s)

    def _sleep(self) -> bool:
        """Wait for work or for the next round; return False after `stop`."""
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
