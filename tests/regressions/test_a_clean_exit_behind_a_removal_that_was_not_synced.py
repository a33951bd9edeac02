"""Symptom: the lab said that a clean exit leaves files that a log has no use for, behind a clean-up whose sync of the
directory had failed.

Cause: of the lab, not the store. A log file that is removed may be back with the power until its directory is synced,
and an exit that says nothing of it is clean all the same: it is whole, and in its place. Fix: the judge of clean exits
lets such files be there.
Found by: `tornpage explore --fault`.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, Close, Crash, Flush, Open, Operation, Put, Step
from tornpage.properties.program.case import Settings

THREE_FILES: tuple[Operation, ...] = (*[Put(body_bytes=700)] * 3, Flush(), Step(service="reput"))
REMOVED = (AimFault("directory-sync-error", "path=commitlog"), Clean(after_hours=73, manual=True))
ENDINGS: tuple[tuple[Operation, ...], ...] = ((), (Open(),), (Close(), Open()), (Close(), Crash()), (Crash(),))


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_file_may_be_there(attempt: Attempt, ending: tuple[Operation, ...]) -> None:
    assert attempt((*THREE_FILES, *REMOVED, *ending, *ending), Settings(file_bytes=1024)) is None
