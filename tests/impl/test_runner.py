"""The thread that drives a service: it steps after each wake, and not after stop. All waits are bounded."""

import threading

from impl.runner import ThreadRunner


def test_each_wake_is_followed_by_a_step() -> None:
    stepped = threading.Semaphore(0)
    runner = ThreadRunner(stepped.release, name="test-runner")
    for _ in range(5):
        runner.wake()
        assert stepped.acquire(timeout=30)
    runner.stop()


def test_a_wake_during_a_step_is_not_lost() -> None:
    inside, go, steps = threading.Event(), threading.Event(), threading.Semaphore(0)

    def step() -> None:
        inside.set()
        assert go.wait(30)
        steps.release()

    runner = ThreadRunner(step, name="test-runner")
    runner.wake()
    assert inside.wait(30)
    runner.wake()
    go.set()
    assert steps.acquire(timeout=30)
    assert steps.acquire(timeout=30)
    runner.stop()


def test_nothing_steps_after_stop() -> None:
    steps: list[int] = []
    runner = ThreadRunner(lambda: steps.append(1), name="test-runner")
    runner.stop()
    runner.wake()
    runner.stop()
    assert steps == []
    assert not [thread for thread in threading.enumerate() if thread.name == "test-runner"]


def test_a_step_may_stop_its_own_runner() -> None:
    done = threading.Event()

    def step() -> None:
        runner.stop()
        done.set()

    runner = ThreadRunner(step, name="test-runner")
    runner.wake()
    assert done.wait(30)
    runner.stop()
