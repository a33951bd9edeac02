"""Symptom: the lab said that a delayed message has been passed, and that its copy is lost.

Cause: of the lab, not the store. The message had expired before it was due, and delivery went on at the first one there
was; but a reader kept the log file from being removed, and the power loss brought it back. Fix: behind messages that
had left the log a level goes on for good.
Found by: an hour of `tornpage explore`, behind 965,074 counted states.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, Crash, Flush, HoldBuffer, Operation, Put, Step
from tornpage.properties.program.case import Settings

REPUT, ROUND, SAVE = Step(service="reput"), Step(service="schedule"), Step(service="progress")
DELAYED = Put(properties="DELAY\x013")
EXPIRES: tuple[Operation, ...] = (
    *(Put(properties="DELAY\x013", body_bytes=412), Put(body_bytes=237), Put(), Flush(), REPUT, DELAYED),
)
EXPIRED = Clean(after_hours=73, manual=True)
NOT_SYNCED = AimFault("directory-sync-error", "path=*commitlog*")


@pytest.mark.parametrize("others", ["kept", "lost"])
@pytest.mark.parametrize("stays", [HoldBuffer(), NOT_SYNCED], ids=["a reader", "a disk"])
def test_the_level_goes_on_behind_it(attempt: Attempt, stays: Operation, others: str) -> None:
    for back in range(12):
        crash = Crash(back=back, others="kept" if others == "kept" else "lost")
        program = (*EXPIRES, stays, EXPIRED, REPUT, ROUND, SAVE, crash)
        assert attempt(program, Settings(file_bytes=1024)) is None, f"{back} events before the answer"
