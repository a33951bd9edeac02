"""A start after a stop begins no thread, and a start wakes a sleeping one.

Symptom: a service that was stopped and then started had a thread again, and a running one was not told when to step.
Cause: `start` looked neither at the end of the service nor at its sleeping thread.
Fix: it begins no thread after `stop`, and wakes a sleeping one (impl/service/runner.py, `ThreadRunner.start`).
Found by: a review.
"""

import threading

import pytest

from tornpage.impl.service.runner import ThreadRunner


class Steps:
    """A service that counts its rounds and wants no other."""

    name = "test-start"

    def __init__(self) -> None:
        self.count = threading.Semaphore(0)

    def step(self, now_ms: int) -> None:
        """Count."""
        self.count.release()


def test_start_behind_stop_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: begun.append(thread.name))
    runner = ThreadRunner(Steps())
    runner.stop()
    runner.start(after_ms=0)
    assert begun == []


def test_start_reaches_the_thread_that_sleeps() -> None:
    steps = Steps()
    runner = ThreadRunner(steps)
    runner.wake()
    assert steps.count.acquire(timeout=30)
    runner.start(after_ms=0)
    assert steps.count.acquire(timeout=30)
    runner.stop()
