"""The failing-disk machine, collected like any test: it holds, it repeats, and each of its rules has its turn."""

import pytest
from hypothesis import HealthCheck, settings

from properties.machines.check import CheckResult, check
from properties.machines.failing_disk_machine import FailingDiskMachine
from properties.recorder.dirty import DirtyTracker
from properties.verdict import Verdict
from tests.properties.turns import counted, rules_of

TestStore = FailingDiskMachine.TestCase
TestStore.settings = settings(
    max_examples=20, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


def checked(tracker: DirtyTracker, *, examples: int = 3, steps: int = 8, start_seed: int = 11) -> CheckResult:
    machines = ("failing-disk",)
    return check(bug="", examples=examples, steps=steps, start_seed=start_seed, tracker=tracker, machines=machines)


def test_equal_seeds_take_equal_ways_and_others_do_not(tracker: DirtyTracker) -> None:
    first, second = checked(tracker), checked(tracker)
    assert first == second
    assert first.failure is None
    assert checked(tracker, start_seed=12).fired != first.fired


def test_a_run_in_which_something_never_happened_is_vacuous(tracker: DirtyTracker) -> None:
    result = checked(tracker, examples=1, steps=1)
    assert result.verdict is Verdict.VACUOUS
    assert "commit_offset" in result.silent


@pytest.mark.deep
def test_every_rule_has_its_turn_and_everything_happens_in_few_examples() -> None:
    seen, counting = counted(FailingDiskMachine, examples=100)
    assert set(seen) >= rules_of(FailingDiskMachine)
    assert counting.missing() == []
