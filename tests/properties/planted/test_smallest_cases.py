"""Test the minimal reproducer of each planted bug: it breaks a promise only with the bug.

This covers the bugs that one thread can show.
"""

from dataclasses import replace

import pytest

from tornpage.model.operations import AimFault, Concurrent, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted import (
    CLUSTER_REPRODUCERS,
    GROUP_REPRODUCERS,
    PLANTED,
    RAFT_REPRODUCERS,
    REPRODUCERS,
)
from tornpage.properties.program.case import Case, Settings

AT_ONCE = {"RMQ-B29": Settings(pool_buffers=1), "RMQ-B31": Settings(sync_flush=True)}
"""Bugs that show when two producers meet at one line of many."""
OF_THREADS = {*AT_ONCE, "RMQ-B76", *(bug.id for bug in PLANTED.values() if bug.needs_threads)}
"""Bugs that need threads to meet: here, and in test_planted_races.py."""
OF_FAILING_DISKS = [bug.id for bug in PLANTED.values() if bug.machine == "failing-disk"]


def without_the_bug(case: Case) -> Case:
    return replace(case, settings=replace(case.settings, bug=""))


def test_every_bug_has_its_case_unless_threads_have_to_meet() -> None:
    of_groups = CLUSTER_REPRODUCERS.keys() | GROUP_REPRODUCERS.keys() | RAFT_REPRODUCERS.keys()
    assert REPRODUCERS.keys() == PLANTED.keys() - OF_THREADS - of_groups
    assert all(bug.breaks_first != bug.contract for bug in PLANTED.values())


@pytest.mark.parametrize("bug", REPRODUCERS)
def test_the_smallest_case_shows_the_bug_and_holds_without_it(bug: str, tracker: DirtyTracker) -> None:
    case = REPRODUCERS[bug]
    failure = replay(case, tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].shown_contract
    assert failure.case.operations == case.operations, "it shows with the last operation and not before"
    assert replay(without_the_bug(case), tracker=tracker) is None


# ---- failing disks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", OF_FAILING_DISKS)
def test_a_bug_of_failing_disks_does_not_show_without_the_fault(bug: str, tracker: DirtyTracker) -> None:
    case = REPRODUCERS[bug]
    sound = tuple(operation for operation in case.operations if not isinstance(operation, AimFault))
    assert len(sound) < len(case.operations)
    assert replay(replace(case, operations=sound), tracker=tracker) is None


@pytest.mark.parametrize("bug", ["second-sync-trusted", "page-cache-believed", "erasure-believed"])
def test_pages_that_stay_dirty_hide_what_pages_that_are_lost_show(bug: str, tracker: DirtyTracker) -> None:
    case = REPRODUCERS[bug]
    dirty = tuple(
        replace(each, effect="sync-error") if isinstance(each, AimFault) else each for each in case.operations
    )
    assert replay(replace(case, operations=dirty), tracker=tracker) is None


# ---- two producers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", AT_ONCE)
def test_one_meeting_of_two_producers_shows_it_and_all_hold_without_it(bug: str, tracker: DirtyTracker) -> None:
    put, settings = Put(advance_ms=0), AT_ONCE[bug]
    contracts = set()
    for late in range(50, 90):
        both = Concurrent(first=(put,), second=(put,), schedule=(*(0,) * late, 1), commits=True)
        operations = (Put(), both)
        assert replay(Case(settings, operations), tracker=tracker) is None
        failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
        contracts |= {failure.broken.contract} if failure is not None else set()
    assert contracts == {PLANTED[bug].contract}
