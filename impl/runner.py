"""Who steps the services of a store: a thread in production, the test itself in a test."""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

__all__ = ["Runner", "Step", "ThreadRunner"]

_LOG = logging.getLogger("tornpage.store")

Step = Callable[[], None]
"""One round of a service."""


class Runner(Protocol):
    """Drives one service."""

    def wake(self) -> None:
        """Say that there is work: a step that begins after this call will be taken."""

    def stop(self) -> None:
        """End the driving; no step runs any more when this returns. Work that is left is the caller's. Idempotent."""


class ThreadRunner:
    """One daemon thread that steps when woken; it is started by the first wake. Source: `ServiceThread`."""

    def __init__(self, step: Step, *, name: str) -> None:
        self._step = step
        self._name = name
        self._state = threading.Condition()
        self._has_work = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Let the thread step once more."""
        with self._state:
            self._has_work = True
            running = self._stopped or self._thread is not None or self._start()
            self._state.notify()
        if not running:
            self._step()  # no more threads to be had: the caller does the work

    def _start(self) -> bool:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def stop(self) -> None:
        """End the thread after the step it may be in."""
        with self._state:
            self._stopped = True
            self._state.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._state:
                while not (self._has_work or self._stopped):
                    self._state.wait()
                if self._stopped:
                    return
                self._has_work = False
            try:
                self._step()
            except BaseException:  # what waits for a later step must not wait for ever
                _LOG.exception("step_failed service=%s", self._name)
