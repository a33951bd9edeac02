"""Test runs of machines: counters, vacuous runs, and shared runs.

test_machines.py tests each machine by itself.
"""

from collections import Counter
from collections.abc import Callable
from typing import NoReturn
from unittest.mock import Mock

import pytest
from hypothesis.errors import FlakyStrategyDefinition

import tornpage.properties.explore.machines.check as runs
from tornpage.model.operations import Flush, Operation, Put
from tornpage.properties.contract import GuaranteeBroken, Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.machines.check import MACHINES, PROFILES, SHORT_TURNS, check
from tornpage.properties.explore.machines.machine import TrialMachine, planted_machine
from tornpage.properties.explore.machines.put_machine import PutMachine
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.program.case import Settings


@pytest.mark.slow
def test_examples_are_counted_up_to_the_last(tracker: DirtyTracker) -> None:
    told: list[int] = []
    check(bug="", examples=23, steps=5, start_seed=1, tracker=tracker, turn_examples_max=4, progress=told.append)
    assert told == sorted(told)
    assert set(told) >= set(range(20))
    assert told[-1] <= 23


def test_each_machine_has_turns_of_its_own_length() -> None:
    """With four examples for each, the queue machine took a third of the time."""
    turns = [(turn.machine, turn.examples) for turn in runs._turns({"put": 6, "queue": 1}, 16, 7)]
    assert turns == [("put", 6), ("queue", 1), ("put", 6), ("queue", 1), ("put", 2)]
    assert SHORT_TURNS.keys() == MACHINES.keys()


@pytest.mark.slow
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
def test_a_run_in_which_an_effect_never_happened_is_vacuous(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PutMachine, "must_happen", (*PutMachine.must_happen, ("batches_stored", "neither"), ("never",)))
    result = check(bug="", examples=30, steps=20, start_seed=11, tracker=tracker, machines=("put",))
    assert (result.verdict, result.silent) == (Verdict.VACUOUS, ["never"])


def test_machines_share_a_small_run_equally(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: Counter[str] = Counter()

    def run(machine: type[TrialMachine], examples: int, *, steps: int, start_seed: int) -> None:
        turns[machine.__name__] += examples

    monkeypatch.setattr(runs, "_run", run)
    check(bug="", examples=2 * len(MACHINES) + 1, steps=20, start_seed=5, tracker=tracker)
    assert sorted(turns.values()) == [2] * (len(MACHINES) - 1) + [3]


@pytest.mark.deep
def test_the_deep_profile_holds(tracker: DirtyTracker) -> None:
    examples, steps = PROFILES["deep"]
    assert check(bug="", examples=examples, steps=steps, start_seed=0, tracker=tracker).verdict is Verdict.HOLDS


def test_of_a_verb_that_is_interrupted_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store left in the middle of a call was closed and called broken.

    A Ctrl-C ended in a traceback.
    """
    monkeypatch.setattr(
        "tornpage.properties.explore.machines.machine.note", lambda told: None
    )  # for examples of Hypothesis alone
    machine = planted_machine(PutMachine, bug="")()
    machine.start(Settings())
    carried_out: list[Operation] = []

    def interrupted(operation: Operation) -> None:
        carried_out.append(operation)
        raise KeyboardInterrupt

    monkeypatch.setattr(machine.trial, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        machine.carry_out(Flush())
    machine.teardown()
    assert carried_out == [Flush()]


def interrupting_at(example: int) -> Callable[[int], None]:
    def progress(done: int) -> None:
        if done == example:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_check_says_what_it_has(tracker: DirtyTracker) -> None:
    result = check(
        bug="", examples=40, steps=5, start_seed=0, tracker=tracker, machines=["put"], progress=interrupting_at(12)
    )
    assert (result.verdict, result.interrupted, result.failure) == (Verdict.UNKNOWN, True, None)
    assert result.tally.examples == 12
    assert result.tally.fired["put"]


def test_an_interrupt_in_the_last_run_of_a_failure_is_one(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Lockstep.run
    seen: list[Operation] = []

    def run(trial: Lockstep, operation: Operation) -> None:
        if seen:
            raise KeyboardInterrupt
        if isinstance(operation, Put):
            seen.append(operation)
            raise GuaranteeBroken(1, "a hole")
        real(trial, operation)

    monkeypatch.setattr(Lockstep, "run", run)
    found = check(bug="", examples=40, steps=5, start_seed=0, tracker=tracker, machines=["put"])
    assert seen
    assert found.interrupted


def test_an_interrupt_that_hypothesis_takes_for_a_flaky_example_is_one(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in a traceback: "the second run stopped drawing earlier than the first"."""

    def run(machine: type[TrialMachine], settings: object) -> NoReturn:
        machine.is_interrupted = True
        raise FlakyStrategyDefinition("stopped drawing earlier")

    monkeypatch.setattr(runs, "run_state_machine_as_test", run)
    assert check(bug="", examples=5, steps=5, start_seed=0, tracker=tracker).interrupted


def test_an_example_that_is_flaky_by_itself_is_told(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "run_state_machine_as_test", Mock(side_effect=FlakyStrategyDefinition("really")))
    with pytest.raises(FlakyStrategyDefinition):
        check(bug="", examples=5, steps=5, start_seed=0, tracker=tracker)
