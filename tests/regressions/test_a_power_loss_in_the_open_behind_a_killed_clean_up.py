"""Symptom: the lab said that the log begins elsewhere than what was deleted, after a kill behind the removal of a log
file and a power loss in the open behind it.

Cause: of the lab, not the store. It took what the open had found removed for gone, while the killed process had not
synced the directory; the open does, and the power went before, so that the file is back. A file that hung on its
readers was forgotten in the same place. Fix: until the open has returned, the log begins where it did before the kill,
or behind.
Found by: the retention machine, in two of 217 trials of a scoreboard.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Clean, Crash, HoldBuffer, Operation, Put, Step
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024, sync_flush=True, disk="journal")
THREE_FILES: tuple[Operation, ...] = (*[Put(body_bytes=500)] * 3, Step(service="reput"))
EXPIRED: tuple[Operation, ...] = (*THREE_FILES, Clean(after_hours=73, manual=True))
HANGING: tuple[Operation, ...] = (*THREE_FILES, HoldBuffer(), Clean(percent=88), Clean(after_hours=1))


@pytest.mark.parametrize("operations", [EXPIRED, HANGING], ids=["expired", "hanging"])
def test_the_removed_file_may_be_back(attempt: Attempt, operations: tuple[Operation, ...]) -> None:
    for killed in range(6):
        for back in range(14):
            power = Crash(back=back, survived={"directory operations": 0}, others="kept")
            broken = attempt((*operations, Crash(kill=True, back=killed), power), SETTINGS)
            assert broken is None, f"killed {killed} events before the answer, power lost {back}: {broken}"
