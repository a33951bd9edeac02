"""The consumer machine, collected like any test: it holds, it repeats, and each of its rules has its turn."""

import pytest
from hypothesis import HealthCheck, settings

from properties.machines.check import CheckResult, check
from properties.machines.consumer_machine import ConsumerMachine
from properties.recorder.dirty import DirtyTracker
from properties.verdict import Verdict
from tests.properties.turns import counted, rules_of

TestStore = ConsumerMachine.TestCase
TestStore.settings = settings(
    max_examples=5, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)
)


def checked(tracker: DirtyTracker, *, examples: int = 2, steps: int = 6, start_seed: int = 11) -> CheckResult:
    return check(bug="", examples=examples, steps=steps, start_seed=start_seed, tracker=tracker, machines=("consumer",))


def test_equal_seeds_take_equal_ways_and_others_do_not(tracker: DirtyTracker) -> None:
    first, second = checked(tracker), checked(tracker)
    assert first == second
    assert first.failure is None
    assert checked(tracker, start_seed=12).fired != first.fired


def test_a_run_in_which_something_never_happened_is_vacuous(tracker: DirtyTracker) -> None:
    result = checked(tracker, examples=1, steps=2)
    assert result.verdict is Verdict.VACUOUS
    assert "pull_while_dispatching" in result.silent


@pytest.mark.deep
def test_every_rule_has_its_turn_and_everything_happens_in_few_examples() -> None:
    seen, counting = counted(ConsumerMachine, examples=100)
    assert len(rules_of(ConsumerMachine)) > 15
    assert set(seen) >= rules_of(ConsumerMachine)
    assert counting.missing() == []
