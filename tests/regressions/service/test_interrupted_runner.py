"""A runner of a service is usable after an interrupt of any of its methods.

Symptom: after a Ctrl-C in a method of a store, its close waited forever, or a service did no more work.
Cause: an interrupt between the two steps of `Condition.notify` keeps the waiting thread in the list of the condition.
The next `notify` took that stale entry, and the thread slept on. An interrupt of `wake` after it had noted the request
made later calls return at once. An interrupt of the start of a thread left one that never ran.
Fix: all entries are notified, and a request is noted last (impl/service/runner.py, `ThreadRunner`).
Found by: `test_an_interrupt_does_not_keep_the_runner` on a busy machine.
"""

import os
import threading
import time

import pytest

from tests.support.impl.interrupts import is_interrupted
from tornpage.impl.service.runner import ThreadRunner

PATIENCE_S = 30
RETURN_S = 0.05
"""A thread that was woken without work waits again after much less."""


class Steps:
    """A service that counts its rounds and wants no other."""

    name = "test-interrupted"

    def __init__(self) -> None:
        self.count = threading.Semaphore(0)

    def step(self, now_ms: int) -> None:
        """Count."""
        self.count.release()


def require_use(runner: ThreadRunner, steps: Steps) -> None:
    """Require that a request leads to a step and that the runner can be stopped."""
    while steps.count.acquire(blocking=False):
        pass
    runner.wake()
    assert steps.count.acquire(timeout=PATIENCE_S)
    stopping = threading.Thread(target=runner.stop, daemon=True)
    stopping.start()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()


def entries(runner: ThreadRunner) -> list[object]:
    """Return the entries of waiting threads in the condition of a runner."""
    with runner._guard:
        return list(runner._state._waiters)  # type: ignore[attr-defined]


def wait_for_change(runner: ThreadRunner, before: list[object], patience_s: float) -> bool:
    """Return whether the condition gets other entries in time.

    That happens when the thread waits for the first time, or again.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if entries(runner) != before:
            return True
        os.sched_yield()
    return False


def sleeping(steps: Steps) -> ThreadRunner:
    """Return a runner whose thread waits."""
    runner = ThreadRunner(steps)
    runner.wake()
    assert steps.count.acquire(timeout=PATIENCE_S)
    assert wait_for_change(runner, [], PATIENCE_S)
    return runner


@pytest.mark.parametrize("is_asleep", [True, False])
@pytest.mark.parametrize("act", ["wake", "start"])
def test_an_interrupt_at_any_place_keeps_the_runner_usable(act: str, is_asleep: bool) -> None:
    place, is_over = 0, False
    while not is_over:
        steps = Steps()
        runner = sleeping(steps) if is_asleep else ThreadRunner(steps)
        before = entries(runner)
        method = runner.wake if act == "wake" else lambda runner=runner: runner.start(after_ms=60_000)
        is_over = not is_interrupted(method, place)
        wait_for_change(runner, before, RETURN_S)
        require_use(runner, steps)
        place += 1
    assert place > 5


def test_an_interrupted_stop_can_be_repeated() -> None:
    place, is_over = 0, False
    while not is_over:
        runner = sleeping(Steps())
        is_over = not is_interrupted(runner.stop, place)
        stopping = threading.Thread(target=runner.stop, daemon=True)
        stopping.start()
        stopping.join(PATIENCE_S)
        assert not stopping.is_alive()
        place += 1
    assert place > 5
