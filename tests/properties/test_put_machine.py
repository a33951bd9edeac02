"""The put machine, collected like any test: it holds, it repeats, and each of its rules has its turn."""

import pytest
from hypothesis import HealthCheck, settings

from properties.machines.check import CheckResult, check
from properties.machines.put_machine import PutMachine
from properties.recorder.dirty import DirtyTracker
from properties.verdict import Verdict
from tests.properties.turns import counted, rules_of

TestStore = PutMachine.TestCase
TestStore.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


def checked(tracker: DirtyTracker, *, examples: int = 10, steps: int = 20, start_seed: int = 11) -> CheckResult:
    return check(bug="", examples=examples, steps=steps, start_seed=start_seed, tracker=tracker, machines=("put",))


def test_equal_seeds_take_equal_ways_and_others_do_not(tracker: DirtyTracker) -> None:
    first, second = checked(tracker), checked(tracker)
    assert first == second
    assert first.failure is None
    assert checked(tracker, start_seed=12).fired != first.fired


def test_a_run_in_which_something_never_happened_is_vacuous(tracker: DirtyTracker) -> None:
    result = checked(tracker, examples=1, steps=2)
    assert result.verdict is Verdict.VACUOUS
    assert any(not result.fired[name] for name in PutMachine.must_run)


@pytest.mark.deep
def test_a_run_in_which_an_effect_never_happened_is_vacuous(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checked(tracker, examples=30).verdict is Verdict.HOLDS
    monkeypatch.setattr(PutMachine, "must_happen", (*PutMachine.must_happen, ("batches_stored", "neither"), ("never",)))
    result = checked(tracker, examples=30)
    assert (result.verdict, result.silent) == (Verdict.VACUOUS, ("never",))


@pytest.mark.deep
def test_machines_share_a_small_run_equally(tracker: DirtyTracker) -> None:
    """Each has operations of its own, or nearly so: damage, two producers at once, steps of services, clean-ups."""
    result = check(bug="", examples=35, steps=20, start_seed=5, tracker=tracker)
    assert result.failure is None
    assert all(result.fired[name] for name in ("damage", "concurrent", "step", "harm_derived", "clean"))


def test_every_rule_has_its_turn_in_few_examples() -> None:
    seen, _ = counted(PutMachine, examples=200)
    assert len(rules_of(PutMachine)) > 20
    assert set(seen) >= rules_of(PutMachine)
