"""Test that pruning and brute force agree, and that unsound rules are noticed."""

from collections.abc import Iterator
from itertools import islice

import pytest

from tornpage.model.operations import Choice
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.explore.exhaustive import outcomes
from tornpage.properties.explore.exhaustive.checking import check_workload
from tornpage.properties.explore.exhaustive.choices import bounded_facts, chosen_within
from tornpage.properties.explore.exhaustive.operation_set import settings_of
from tornpage.properties.explore.exhaustive.workload import Bound, WorkloadStates
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case

ASYNC = settings_of("async", disk="posix-strict")


def test_pruned_and_brute_force_enumeration_are_equal(tracker: DirtyTracker) -> None:
    for workload in (("flush",), ("put",)):
        checked = check_workload(workload, ASYNC, Bound(1, recovery_facts=-1), tracker=tracker)
        assert checked is not None
        assert checked.differences == []
        assert checked.states > checked.pruned_states > 0


def test_they_are_equal_where_recovery_is_crashed_too(tracker: DirtyTracker) -> None:
    """An image met inside a recovery does not spare the same image of a first crash.

    The recovery of the latter has to be crashed too.
    """
    checked = check_workload(("queues",), ASYNC, Bound(0, recovery_facts=0), tracker=tracker)
    assert checked is not None
    assert checked.differences == []
    assert checked.states > checked.pruned_states > 0


def without_sizes(state: DiskState, bound: int, beyond: int = -1) -> Iterator[dict[str, Choice]]:
    """Unsound: the size of a file is taken not to matter, because its pages have the content."""
    facts = [fact for fact in bounded_facts(state) if not fact.name.startswith("size")]
    return chosen_within(facts, bound, beyond=beyond)


def test_an_unsound_rule_about_facts_is_noticed(tracker: DirtyTracker) -> None:
    checked = check_workload(("flush",), ASYNC, Bound(1), tracker=tracker, choices=without_sizes)
    assert checked is not None
    assert any("pruned away" in each for each in checked.differences), checked.differences


def test_an_unsound_rule_about_verdicts_is_noticed(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsound: an image that held once is taken to hold always.

    After the flush the put has to be there.
    """
    lying = settings_of("async", disk="posix-strict", bug="lying-flush")
    monkeypatch.setattr(outcomes, "_holds_too", lambda known, legal, versions: True)
    checked = check_workload(("put", "flush"), lying, Bound(0), tracker=tracker)
    assert checked is not None
    assert any("breaks (" in each and "pruned" in each for each in checked.differences), checked.differences
    monkeypatch.undo()
    checked = check_workload(("put", "flush"), lying, Bound(0), tracker=tracker)
    assert checked is not None
    assert checked.differences == []


def test_each_state_is_a_case_that_meets_the_same_crash_again(tracker: DirtyTracker) -> None:
    states = WorkloadStates(("consume",), ASYNC, Bound(1, recovery_facts=0), tracker)
    kinds = set()
    for state in islice(states.everywhere(), 0, None, 41):
        trial = lockstep_of(ASYNC, tracker=tracker)
        for operation in Case.from_token(Case(ASYNC, state.done).token()).operations:
            trial.run(operation)
        assert tuple(trial.performed) == state.done, "no choice had to be fitted to what was open"
        kinds.add(state.kind)
    assert kinds == {"power", "kill", "recovery"}


def test_a_check_that_is_over_says_nothing(tracker: DirtyTracker) -> None:
    assert check_workload(("flush",), ASYNC, Bound(0), tracker=tracker, is_over=lambda: True) is None
