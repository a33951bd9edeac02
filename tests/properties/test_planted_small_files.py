"""Bugs of the small files, each with the smallest case that shows it, and that holds without the bug."""

from dataclasses import replace

import pytest

from properties.cases.case import Case, Close, Crash, Flush, Operation, Put, Settings, Step
from properties.cases.replay import replay
from properties.planted import PLANTED, small_files
from properties.recorder.dirty import DirtyTracker

DISPATCHED = (Step(service="reput"), Step(service="flush-queues", after_ms=60_000))
BEHIND_THE_RENAME = Crash(back=2)

CASES: dict[str, tuple[Operation, ...]] = {
    "floor-in-two-writes": (Put(), Flush(), Crash(back=2, others="kept")),
    "floor-not-synced": (Put(), Crash(kill=True)),
    "derived-floor-renamed-first": (Put(), Flush(), *DISPATCHED, BEHIND_THE_RENAME),
    "checkpoint-of-its-times": (Close(), Crash()),
}


def test_every_bug_of_small_files_has_its_case() -> None:
    assert {bug for bug, *_ in small_files.BUGS} == CASES.keys()


@pytest.mark.parametrize("bug", CASES)
def test_its_smallest_case_shows_it_and_holds_without_it(bug: str, tracker: DirtyTracker) -> None:
    settings = Settings(file_bytes=1024)
    failure = replay(Case(replace(settings, bug=bug), CASES[bug]), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].contract
    assert failure.case.operations == CASES[bug]
    assert replay(Case(settings, CASES[bug]), tracker=tracker) is None
