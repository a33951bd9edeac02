"""The commit log machine, collected like any test; the deep run of all machines is behind its marker."""

import pytest
from hypothesis import HealthCheck, settings

from properties.machines.check import PROFILES, check
from properties.machines.machine import CommitLogMachine
from properties.recorder.dirty import DirtyTracker
from properties.verdict import Verdict

TestStore = CommitLogMachine.TestCase
TestStore.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_equal_seeds_take_equal_ways(tracker: DirtyTracker) -> None:
    only = ("commit-log",)
    first, second = (
        check(bug="", examples=10, steps=20, start_seed=11, tracker=tracker, machines=only) for _ in range(2)
    )
    assert first == second
    assert first.failure is None


def test_examples_are_counted_up_to_the_last(tracker: DirtyTracker) -> None:
    told: list[int] = []
    check(bug="", examples=23, steps=5, start_seed=1, tracker=tracker, turn_examples_max=4, progress=told.append)
    assert told == sorted(told)
    assert set(told) >= set(range(20))
    assert told[-1] <= 23


def test_replays_are_counted_while_a_failure_is_made_small(tracker: DirtyTracker) -> None:
    replays: list[int] = []
    check(
        bug="lying-flush", examples=50, steps=25, start_seed=0, tracker=tracker, machines=("commit-log",),
        making_small=lambda tries, operations, losses: replays.append(tries),
    )  # fmt: skip
    assert replays == sorted(replays)
    assert len(replays) > 3


def test_a_run_in_which_something_never_happened_is_vacuous(tracker: DirtyTracker) -> None:
    assert check(bug="", examples=1, steps=2, start_seed=0, tracker=tracker).verdict is Verdict.VACUOUS


@pytest.mark.deep
def test_the_deep_profile_holds(tracker: DirtyTracker) -> None:
    examples, steps = PROFILES["deep"]
    assert check(bug="", examples=examples, steps=steps, start_seed=0, tracker=tracker).verdict is Verdict.HOLDS
