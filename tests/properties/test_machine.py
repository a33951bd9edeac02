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


def test_a_run_in_which_something_never_happened_is_vacuous(tracker: DirtyTracker) -> None:
    assert check(bug="", examples=1, steps=2, start_seed=0, tracker=tracker).verdict is Verdict.VACUOUS


@pytest.mark.deep
def test_the_deep_profile_holds(tracker: DirtyTracker) -> None:
    examples, steps = PROFILES["deep"]
    assert check(bug="", examples=examples, steps=steps, start_seed=0, tracker=tracker).verdict is Verdict.HOLDS
