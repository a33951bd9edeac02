"""Symptom: behind a recovery a queue file held the unit of a message that a power loss had taken.

Cause: where the disk refused to remove a queue file, the file was forgotten all the same, and the open went on: nobody
would erase it before the next one. Fix: a file is one of a queue's until it has been removed, so that whoever ends the
recovery tries again, and the open is refused if that fails too; a clean-up that is refused goes on with the same file.
Found by: `tornpage check --machine failing-disk --examples 800 --seed 41`.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Crash, Operation, Put, Step
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=8192, queue_units=1, queue_ext=True)
DISPATCHED: tuple[Operation, ...] = (Put(body_bytes=1125), Put(body_bytes=3000), Step(service="reput"))
SECOND_LOST = Crash(survived={"page /store/commitlog/00000000000000000000 1": 0}, others="kept")


@pytest.mark.parametrize("where", ["nth=1", "nth=2", "nth=3", "every=2", ""])
def test_it_is_gone_or_the_open_is_refused(attempt: Attempt, where: str) -> None:
    assert attempt((*DISPATCHED, AimFault("unlink-error", where), SECOND_LOST), SETTINGS) is None
