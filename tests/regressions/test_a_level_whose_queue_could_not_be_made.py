"""Symptom: the lab said that delivery goes on elsewhere than it may.

Cause: of the lab, not the store. A full disk refused the queue file of a level to an open, which brought the progress
of the level within the bounds it knew of; dispatch made the queue a moment later, and the first message that is left in
it was behind that progress. Fix: such a level may stay where it was saved until its next round, which delivers the same
message either way.
Found by: 16 minutes of `tornpage explore`, behind 616,551 counted states.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, Close, Crash, Open, Operation, Put, Step
from tornpage.properties.program.case import Settings

REPUT, ROUND = Step(service="reput"), Step(service="schedule", after_ms=1000)
DELAYED = Put(properties="DELAY\x011")
EXPIRES: tuple[Operation, ...] = (
    *(DELAYED, REPUT, ROUND, Put(properties="DELAY\x011", body_bytes=56), Put(body_bytes=1252), DELAYED, Open()),
    *(AimFault("no-space", "op=allocate"), Clean(after_hours=73, manual=True), Crash(others="kept")),
)


@pytest.mark.parametrize("then", [(), (ROUND,), (REPUT, ROUND, Close(), Open()), (Open(),), (Crash(), ROUND)])
def test_it_goes_on_with_its_next_round(attempt: Attempt, then: tuple[Operation, ...]) -> None:
    assert attempt((*EXPIRES, *then), Settings(file_bytes=2048, queue_ext=True)) is None
