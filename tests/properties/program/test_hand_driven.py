"""Test the hand runner: it steps on request and waits and wakes as a thread would."""

from concurrent.futures import Future

import pytest

from tornpage.properties.program.hand_driven import HandDriven, Round


class Counting:
    """A service that answers at its third step and wants the set next one.

    It may meet a failing disk.
    """

    name = "counting"

    def __init__(self, due_ms: int | None = None, *, error: Exception | None = None) -> None:
        self.steps: list[int] = []
        self.answer: Future[None] = Future()
        self._due_ms = due_ms
        self._error = error

    def step(self, now_ms: int) -> int | None:
        self.steps.append(now_ms)
        if len(self.steps) == 3:
            self.answer.set_result(None)
        if self._error is not None:
            raise self._error
        return self._due_ms


def test_nothing_runs_on_its_own() -> None:
    service = Counting()
    runner = HandDriven(service, lambda: 7)
    runner.start(after_ms=0)
    runner.wake()
    assert service.steps == []
    assert runner.step() == Round(now_ms=7, due_ms=None)
    runner.stop()
    runner.wake()
    assert runner.step() is None
    assert service.steps == [7]


@pytest.mark.parametrize(
    ("due_ms", "woken", "steps"),
    [(None, False, 0), (None, True, 1), (8, True, 1), (7, True, 3), (3, True, 3)],
    ids=["asleep", "woken", "woken and due later", "due at once", "overdue"],
)
def test_who_waits_steps_a_service_as_long_as_a_thread_would(due_ms: int | None, woken: bool, steps: int) -> None:
    service = Counting(due_ms)
    runner = HandDriven(service, lambda: 7)
    if woken:
        runner.wake()
    assert runner.wait(service.answer, timeout_ms=5_000) is (steps == 3)
    assert service.steps == [7] * steps


def test_a_service_will_step_when_woken_or_due() -> None:
    runner = HandDriven(Counting(), lambda: 7)
    assert not runner.will_step(None)
    runner.start(after_ms=10)
    assert runner.will_step(None)
    assert runner.will_step(17)
    assert not runner.will_step(16)
    runner.wake()
    assert runner.will_step(16)
    runner.step()
    assert not runner.will_step(None)


def test_an_error_of_the_disk_is_tried_again_and_any_other_comes_out() -> None:
    runner = HandDriven(Counting(error=OSError()), lambda: 7)
    assert runner.step() == Round(now_ms=7, due_ms=1_007, failed=True)
    with pytest.raises(RuntimeError):
        HandDriven(Counting(error=RuntimeError()), lambda: 7).step()
