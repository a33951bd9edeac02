"""Symptom: on disk the checkpoint named a time of queues that were not there, after a power loss behind two opens.

Cause: an open lets the checkpoint say nothing of queues and index, since it may make them anew. The sync of that failed
and the open was refused; the next one read in memory that the checkpoint says nothing, and had nothing to write.
Fix: after an unclean exit that is written and synced whatever the checkpoint says.
Found by: aimed faults (`sync-error: kind=checkpoint`) at an open.
"""

import pytest

from tests.regressions.conftest import Attempt
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
    """Write nothing when the checkpoint that was read says nothing."""
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
