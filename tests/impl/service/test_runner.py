"""Test the thread of a service: it steps at each wake and due round, and not after stop.

All waits are bounded. No test waits for a time to pass, except for rounds that are wanted at once.
"""

import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from tornpage.impl.service.runner import ThreadRunner

PATIENCE_S = 30


class Steps:
    """A service that runs the given work and counts its rounds.

    `due_ms` is the next wanted round.
    """

    name = "test-runner"

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self.count = threading.Semaphore(0)
        self.times: list[int] = []
        self.due_ms: int | None = None
        self._work = work

    def step(self, now_ms: int) -> int | None:
        """Do the work."""
        self.times.append(now_ms)
        try:
            self._work()
        finally:
            self.count.release()
        return self.due_ms


def threads() -> list[threading.Thread]:
    """Return the living threads of such services."""
    return [thread for thread in threading.enumerate() if thread.name == "tornpage-test-runner"]


def test_each_wake_is_followed_by_a_step() -> None:
    steps = Steps()
    runner = ThreadRunner(steps)
    for _ in range(5):
        runner.wake()
        assert steps.count.acquire(timeout=PATIENCE_S)
    runner.stop()


def test_an_interrupt_does_not_keep_the_runner() -> None:
    """A Ctrl-C during a wake left the runner locked: its thread and stop() waited forever."""

    class Interrupted(Exception):
        pass

    def ring(_number: int, _frame: object) -> None:
        raise Interrupted

    steps, rng = Steps(), random.Random(0)
    runner = ThreadRunner(steps)
    runner.wake()
    assert steps.count.acquire(timeout=PATIENCE_S)
    before = signal.signal(signal.SIGALRM, ring)
    for _ in range(200):
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 2e-4))
            while True:
                runner.start(after_ms=60_000)  # takes the lock with or without work, unlike a wake
        except Interrupted:
            pass
    signal.signal(signal.SIGALRM, before)
    stopping = threading.Thread(target=runner.stop, daemon=True)
    stopping.start()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()


def test_a_wake_during_a_step_is_not_lost() -> None:
    inside, go = threading.Event(), threading.Event()

    def work() -> None:
        inside.set()
        assert go.wait(PATIENCE_S)

    steps = Steps(work)
    runner = ThreadRunner(steps)
    runner.wake()
    assert inside.wait(PATIENCE_S)
    runner.wake()
    go.set()
    assert steps.count.acquire(timeout=PATIENCE_S)
    assert steps.count.acquire(timeout=PATIENCE_S)
    runner.stop()


def test_wakes_before_a_step_begins_are_one() -> None:
    inside, go = threading.Event(), threading.Event()

    def work() -> None:
        inside.set()
        assert go.wait(PATIENCE_S)

    steps = Steps(work)
    runner = ThreadRunner(steps)
    runner.wake()
    assert inside.wait(PATIENCE_S)
    for _ in range(10):
        runner.wake()
    go.set()
    for _ in range(2):
        assert steps.count.acquire(timeout=PATIENCE_S)
    runner.stop()
    assert len(steps.times) == 2


def test_a_started_service_steps_when_it_is_due_and_again_as_it_wants() -> None:
    steps = Steps()
    steps.due_ms = 0  # long ago: the next round follows at once
    runner = ThreadRunner(steps)
    began_ms = runner.now_ms()
    runner.start(after_ms=1)
    for _ in range(3):
        assert steps.count.acquire(timeout=PATIENCE_S)
    runner.stop()
    assert began_ms + 1 <= steps.times[0]
    assert steps.times == sorted(steps.times)


def test_a_service_that_wants_no_round_waits_for_a_wake() -> None:
    steps = Steps()
    runner = ThreadRunner(steps)
    runner.start(after_ms=0)
    assert steps.count.acquire(timeout=PATIENCE_S)
    runner.wake()
    assert steps.count.acquire(timeout=PATIENCE_S)
    runner.stop()
    assert len(steps.times) == 2


@pytest.mark.parametrize("begun", [False, True])
def test_nothing_steps_after_stop(begun: bool) -> None:
    steps = Steps()
    runner = ThreadRunner(steps)
    if begun:
        runner.start(after_ms=3_600_000)
        assert len(threads()) == 1
    runner.stop()
    runner.wake()
    runner.start(after_ms=0)
    runner.stop()
    assert steps.times == []
    assert threads() == []


def test_stop_waits_for_the_step_that_is_under_way() -> None:
    inside, go = threading.Event(), threading.Event()
    done: list[bool] = []

    def work() -> None:
        inside.set()
        assert go.wait(PATIENCE_S)
        done.append(True)

    runner = ThreadRunner(Steps(work))
    runner.wake()
    assert inside.wait(PATIENCE_S)
    stopper = threading.Thread(target=runner.stop)
    stopper.start()
    assert stopper.is_alive()
    go.set()
    stopper.join(PATIENCE_S)
    assert not stopper.is_alive()
    assert done == [True]


def test_a_step_may_stop_its_own_runner() -> None:
    steps = Steps(lambda: runner.stop())
    runner = ThreadRunner(steps)
    runner.wake()
    assert steps.count.acquire(timeout=PATIENCE_S)
    runner.stop()
    assert threads() == []


def test_wait_ends_with_the_answer_or_with_the_time() -> None:
    answer: Future[None] = Future()
    runner = ThreadRunner(Steps(lambda: answer.set_result(None)))
    assert not runner.wait(answer, timeout_ms=0)
    runner.wake()
    assert runner.wait(answer, timeout_ms=PATIENCE_S * 1_000)
    runner.stop()


def test_wait_for_an_answer_that_is_a_failure_says_that_there_is_one() -> None:
    answer: Future[None] = Future()
    answer.set_exception(TimeoutError())
    assert ThreadRunner(Steps()).wait(answer, timeout_ms=0)


def test_a_failed_step_is_tried_again_after_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        raise ValueError("broken")

    steps = Steps(work)
    runner = ThreadRunner(steps)
    runner.wake()
    assert steps.count.acquire(timeout=PATIENCE_S)
    runner.stop()
    assert runner._due_ms == steps.times[0] + 1_000
    assert "step_failed service=test-runner" in caplog.text
