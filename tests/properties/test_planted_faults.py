"""Bugs that need a disk which fails, each with a small case that shows it, and that holds without the bug.

None of them shows without the fault: the same case holds when its aim is left out.
"""

from dataclasses import replace

import pytest

from properties.cases.case import (
    AimFault,
    Case,
    Clean,
    Close,
    CommitOffset,
    Crash,
    Flush,
    Open,
    Operation,
    Put,
    Settings,
    Step,
)
from properties.cases.replay import replay
from properties.planted import PLANTED, distrusting
from properties.recorder.dirty import DirtyTracker

PUT, REPUT, FLUSH, COMMIT = Put(), Step(service="reput"), Flush(), CommitOffset()
SAVE = Step(service="progress", after_ms=5_000)
SMALL, THREE_PAGES = Settings(file_bytes=1024), Settings(file_bytes=16_384)
BIG = Put(body_bytes=3_000)
THREE_FILES: tuple[Operation, ...] = (Put(queue_id=1, body_bytes=700), *[Put(body_bytes=700)] * 2, FLUSH, REPUT)
EXPIRED = Clean(after_hours=73, manual=True)
SECOND_STAYS = AimFault("unlink-error", "kind=marker or kind=queue and nth=2")
LOST = AimFault("sync-lost", "kind=log and nth=1")

CASES: dict[str, tuple[Settings, tuple[Operation, ...]]] = {
    "second-sync-trusted": (SMALL, (PUT, LOST, FLUSH, Crash())),
    "page-cache-believed": (SMALL, (PUT, LOST, FLUSH, Open())),
    "erasure-believed": (
        THREE_PAGES,
        (BIG, FLUSH, BIG, BIG, BIG, LOST, Crash(survived={"page /store/commitlog/00000000000000000000 2": 1})),
    ),
    "counts-what-is-gone": (replace(SMALL, queue_ext=True, queue_units=1), (SECOND_STAYS, PUT, PUT, Open())),
    "unread-is-empty": (
        SMALL,
        (PUT, REPUT, FLUSH, COMMIT, SAVE, AimFault("read-error", "path=consumerOffset.json and op=open"), Open()),
    ),
    "half-written-progress": (SMALL, (PUT, REPUT, COMMIT, AimFault("short-write", "kind=progress"), Close(), Open())),
    "not-renamed": (SMALL, (PUT, REPUT, COMMIT, AimFault("rename-error", "kind=progress"), Close(), Open())),
    "marker-stays": (SMALL, (PUT, AimFault("unlink-error", "kind=marker"), Close())),
    "who-stays-is-passed-over": (SMALL, (*THREE_FILES, AimFault("unlink-error", "nth=1"), EXPIRED)),
    "queues-flushed-if-possible": (SMALL, (*THREE_FILES, AimFault("sync-error", "kind=queue"), EXPIRED, Crash())),
}


def test_every_bug_of_a_failing_disk_has_its_case() -> None:
    assert {bug for bug, *_ in distrusting.BUGS} == CASES.keys()


@pytest.mark.parametrize("bug", CASES)
def test_its_case_breaks_a_promise_and_holds_without_the_bug_or_without_the_fault(
    bug: str, tracker: DirtyTracker
) -> None:
    settings, operations = CASES[bug]
    failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract in (PLANTED[bug].contract, 2, 17)
    assert replay(Case(settings, operations), tracker=tracker) is None
    sound = tuple(operation for operation in operations if not isinstance(operation, AimFault))
    assert replay(Case(replace(settings, bug=bug), sound), tracker=tracker) is None


@pytest.mark.parametrize("bug", ["second-sync-trusted", "page-cache-believed", "erasure-believed"])
def test_pages_that_stay_dirty_hide_what_pages_that_are_lost_show(bug: str, tracker: DirtyTracker) -> None:
    settings, operations = CASES[bug]
    dirty = tuple(replace(each, effect="sync-error") if each == LOST else each for each in operations)
    assert replay(Case(replace(settings, bug=bug), dirty), tracker=tracker) is None
