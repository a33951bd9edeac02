"""The checkpoint of a failed open is made durable by the next one.

Symptom: after two opens and a power loss the checkpoint on disk named a time of queues that were not there.
Cause: an open withdraws the promise of the checkpoint about queues and index, because it may rebuild them. Its sync
failed, and so did the open. The next one read in memory that the checkpoint promises nothing, and wrote nothing.
Fix: after an unclean exit the checkpoint is written and synced with any content.
Found by: I/O fault rules (`sync-error: kind=checkpoint`) at an open.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.model.operations import AimFault, Crash, Open, Put, Step
from tornpage.properties.program.case import Settings

OPERATIONS = (
    AimFault("sync-error", "kind=checkpoint and nth=3"),
    Put(),
    Step(service="flush-queues"),
    Put(),
    Open(),
    Crash(survived={"directory operations": 4}),
)
SETTINGS = Settings(file_bytes=1024, disk="journal", queue_ext=True)


def _only_news(directory: OpenDirectory, *, clean_exit: bool) -> None:
    """Write nothing when the checkpoint promises nothing already."""
    if directory.checkpoint.logics_msg_timestamp or directory.checkpoint.index_msg_timestamp:
        directory.checkpoint.note_dispatched(0)
        directory.checkpoint.flush()


def test_a_checkpoint_that_says_nothing_says_so_on_the_disk(attempt: Attempt) -> None:
    assert attempt(OPERATIONS, SETTINGS) is None


def test_one_that_is_left_as_it_was_read_is_noticed(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenDirectory, "_clear_derived_times", _only_news)
    broken = attempt(OPERATIONS, SETTINGS)
    assert broken is not None
    assert broken.contract == 9
