"""Bugs of the log that catalogues have, each with the smallest case that shows it, and that holds without the bug."""

from dataclasses import replace

import pytest

from properties.cases.case import Case, Concurrent, Crash, Flush, Get, Operation, Put, Settings
from properties.cases.replay import replay
from properties.planted import PLANTED
from properties.recorder.dirty import DirtyTracker

SMALL = Settings(file_bytes=1024)
FULL = Put(body_bytes=800)

CASES: dict[str, tuple[Settings, tuple[Operation, ...]]] = {
    "RMQ-B14": (Settings(), (Put(body_bytes=8, body_kind="sums to zero"), Get())),
    "RMQ-B26": (SMALL, (FULL, Flush(), FULL, Crash())),
    "RMQ-B27": (SMALL, (FULL, Flush(), FULL, FULL, Crash())),
}

AT_ONCE = {"RMQ-B29": Settings(pool_buffers=1), "RMQ-B31": Settings(sync_flush=True)}
"""Bugs that show when two producers meet at one line of many."""


@pytest.mark.parametrize("bug", CASES)
def test_its_smallest_case_shows_it_and_holds_without_it(bug: str, tracker: DirtyTracker) -> None:
    settings, operations = CASES[bug]
    failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].contract
    assert failure.case.operations == operations
    assert replay(Case(settings, operations), tracker=tracker) is None


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
