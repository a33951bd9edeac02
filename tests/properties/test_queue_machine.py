"""The queue machine, collected like any test: it holds, it repeats, and each of its rules has its turn."""

import sys
from collections import Counter
from typing import ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from properties.case import Operation
from properties.check import CheckResult, check
from properties.machine import TrialMachine
from properties.queue_machine import QueueMachine
from properties.recorder.dirty import DirtyTracker
from properties.verdict import Verdict

TestStore = QueueMachine.TestCase
TestStore.settings = settings(
    max_examples=20, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


def checked(tracker: DirtyTracker, *, examples: int = 10, steps: int = 10, start_seed: int = 11) -> CheckResult:
    return check(bug="", examples=examples, steps=steps, start_seed=start_seed, tracker=tracker, machines=("queue",))


def test_equal_seeds_take_equal_ways_and_others_do_not(tracker: DirtyTracker) -> None:
    first, second = checked(tracker), checked(tracker)
    assert first == second
    assert first.failure is None
    assert checked(tracker, start_seed=12).fired != first.fired


def test_a_run_in_which_something_never_happened_is_vacuous(tracker: DirtyTracker) -> None:
    result = checked(tracker, examples=1, steps=2)
    assert result.verdict is Verdict.VACUOUS
    assert "query_key" in result.silent


def rules_of(machine: type[TrialMachine]) -> set[str]:
    return {name for name, value in vars(machine).items() if callable(value) and not name.startswith("_")}


RULES = (rules_of(QueueMachine) | rules_of(TrialMachine)) - {"open_store", "start", "carry_out", "teardown"}


class Counting(QueueMachine):
    """Counts which rules carry out something, and what happened."""

    seen: ClassVar[Counter[str]] = Counter()
    fired: ClassVar[Counter[str]] = Counter()
    effects: ClassVar[Counter[str]] = Counter()

    def carry_out(self, operation: Operation) -> None:
        frame = sys._getframe().f_back
        while frame is not None and frame.f_locals.get("self") is self:
            self.seen[frame.f_code.co_name] += 1
            frame = frame.f_back
        super().carry_out(operation)


def test_every_rule_has_its_turn_and_everything_happens_in_few_examples() -> None:
    few = settings(
        max_examples=56,
        stateful_step_count=25,
        database=None,
        derandomize=True,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Counting, settings=few)
    assert len(RULES) > 20
    assert set(Counting.seen) >= RULES
    assert Counting.missing() == []
