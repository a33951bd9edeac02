"""Test each machine by itself: it holds, it repeats, and all its rules run.

It also reports the rules that never ran.
"""

from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.properties.turns import counted, rules_of
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.machines.check import MACHINES, CheckResult, check


class Size(NamedTuple):
    """Length of a machine's run here: examples and steps."""

    examples: int
    steps: int


class Plan(NamedTuple):
    """Expectations about one machine.

    `short` is its run in the usual tests, and `whole` in the deep ones. In `turns` examples all its rules run.
    They are more than `rules`. A run of two steps omits `never`.
    """

    short: Size
    whole: Size
    repeated: Size
    turns: int
    rules: int
    never: str


PLANS = {
    "commit-log": Plan(Size(30, 20), Size(60, 20), Size(10, 20), turns=100, rules=10, never="damage"),
    "put": Plan(Size(20, 20), Size(40, 20), Size(10, 20), turns=200, rules=20, never="concurrent"),
    "flush": Plan(Size(15, 15), Size(30, 15), Size(10, 15), turns=200, rules=20, never="committed"),
    "queue": Plan(Size(8, 15), Size(20, 15), Size(3, 10), turns=200, rules=20, never="query_key"),
    "retention": Plan(Size(5, 8), Size(10, 8), Size(2, 6), turns=30, rules=12, never="hold_buffer"),
    "delay": Plan(Size(5, 8), Size(10, 8), Size(2, 6), turns=30, rules=12, never="change_role"),
    "consumer": Plan(Size(5, 8), Size(10, 8), Size(2, 6), turns=100, rules=15, never="pull_while_dispatching"),
    "failing-disk": Plan(Size(10, 15), Size(20, 15), Size(3, 8), turns=100, rules=10, never="aimed_no_space_fired"),
}

each_machine = pytest.mark.parametrize("name", PLANS)


def checked(name: str, size: Size, tracker: DirtyTracker, *, start_seed: int = 11) -> CheckResult:
    return check(
        bug="", examples=size.examples, steps=size.steps, start_seed=start_seed, tracker=tracker, machines=(name,)
    )


def test_every_machine_has_its_plan() -> None:
    assert PLANS.keys() == MACHINES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("size", ["short", pytest.param("whole", marks=pytest.mark.deep)])
@each_machine
def test_store_and_model_agree(name: str, size: str) -> None:
    examples, steps = getattr(PLANS[name], size)
    few = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(MACHINES[name], settings=few)


@pytest.mark.slow
@each_machine
def test_equal_seeds_take_equal_ways_and_others_do_not(name: str, tracker: DirtyTracker) -> None:
    size = PLANS[name].repeated
    first, second = checked(name, size, tracker), checked(name, size, tracker)
    assert (first.tally, first.result_hash) == (second.tally, second.result_hash)
    assert first.failure is None
    assert checked(name, size, tracker, start_seed=12).tally.fired != first.tally.fired


@each_machine
def test_a_run_in_which_something_never_happened_is_vacuous(name: str, tracker: DirtyTracker) -> None:
    result = checked(name, Size(1, 2), tracker)
    assert result.verdict is Verdict.VACUOUS
    assert PLANS[name].never in result.silent


@pytest.mark.deep
@each_machine
def test_every_rule_has_its_turn_and_everything_happens_in_few_examples(name: str) -> None:
    plan, machine = PLANS[name], MACHINES[name]
    seen, counting = counted(machine, examples=plan.turns)
    assert len(rules_of(machine)) > plan.rules
    assert set(seen) >= rules_of(machine)
    assert counting.missing() == []
