"""Bugs of progress files, each with the smallest case that shows it, and that holds without the bug."""

from dataclasses import replace

import pytest

from properties.cases.case import (
    Case,
    Close,
    CommitOffset,
    Crash,
    DeleteTopics,
    FailSync,
    Flush,
    HarmProgress,
    Open,
    Operation,
    Put,
    QueryOffsets,
    Settings,
    Step,
)
from properties.cases.replay import replay
from properties.planted import PLANTED, progressing
from properties.recorder.dirty import DirtyTracker

PUT, REPUT, FLUSH, COMMIT = Put(), Step(service="reput"), Flush(), CommitOffset()
SAVE = Step(service="progress", after_ms=5_000)
READ = (PUT, REPUT, COMMIT)
POWER_LOSS = Crash()

CASES: dict[str, tuple[Operation, ...]] = {
    "RMQ-B63": (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS),
    "backup-overwritten": (
        PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, HarmProgress(harm="empty"), COMMIT, SAVE,
        Crash(back=2),
    ),
    "progress-not-synced": (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS),
    "progress-name-not-synced": (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS),
    "progress-saved-in-place": (
        PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, Crash(back=5, others="kept"),
    ),
    "correction-not-durable": (*READ, SAVE, POWER_LOSS),
    "correction-left-out": (*READ, SAVE, POWER_LOSS),
    "offset-beyond-the-end": (PUT, REPUT, CommitOffset(behind=-1)),
    "offset-never-back": (*READ, CommitOffset(behind=1)),
    "deleted-offsets-kept": (*READ, DeleteTopics(), PUT, REPUT, QueryOffsets()),
    "deleted-offsets-not-durable": (*READ, SAVE, FLUSH, DeleteTopics(), POWER_LOSS),
    "filter-deletes-offsets": (*READ, QueryOffsets()),
    "offsets-not-saved-at-close": (*READ, Close(), Open()),
    "failed-save-forgotten": (*READ, FailSync(), SAVE, Close(), Open()),
    "progress-saved-once": (SAVE,),
}  # fmt: skip


def test_every_bug_of_progress_has_its_case() -> None:
    assert {bug for bug, *_ in progressing.BUGS} == CASES.keys()


@pytest.mark.parametrize("bug", CASES)
def test_its_case_breaks_the_promise_and_holds_without_the_bug(bug: str, tracker: DirtyTracker) -> None:
    settings, operations = Settings(file_bytes=1024), CASES[bug]
    failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].contract
    assert replay(Case(settings, operations), tracker=tracker) is None
