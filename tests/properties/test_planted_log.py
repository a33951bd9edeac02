"""Bugs of the log that catalogues have, each with the smallest case that shows it, and that holds without the bug."""

from dataclasses import replace

import pytest

from properties.case import Case, Crash, Flush, Get, Operation, Put, Settings
from properties.planted import PLANTED
from properties.recorder.dirty import DirtyTracker
from properties.replay import replay

SMALL = Settings(file_bytes=1024)
FULL = Put(body_bytes=800)

CASES: dict[str, tuple[Settings, tuple[Operation, ...]]] = {
    "RMQ-B14": (Settings(), (Put(body_bytes=8, body_kind="sums to zero"), Get())),
    "RMQ-B26": (SMALL, (FULL, Flush(), FULL, Crash())),
    "RMQ-B27": (SMALL, (FULL, Flush(), FULL, FULL, Crash())),
}


@pytest.mark.parametrize("bug", CASES)
def test_its_smallest_case_shows_it_and_holds_without_it(bug: str, tracker: DirtyTracker) -> None:
    settings, operations = CASES[bug]
    failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].contract
    assert failure.case.operations == operations
    assert replay(Case(settings, operations), tracker=tracker) is None
