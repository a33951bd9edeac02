"""Symptom: a queue began at a number that no message has, until the store was opened again.

Cause: the disk refused to remove the second of three old queue files in a recovery, so that units of expired messages
alone were left. Dispatch went on behind them with pre-fill, and the queue's minimum stayed in front of it. Fix: a queue
without a message begins behind the pre-fill that is written to it.
Found by: the failing-disk machine, as soon as it let clean-ups fail.
"""

from properties.cases.case import AimFault, Clean, Crash, Flush, Operation, Put, Settings, Step
from tests.regressions.conftest import Attempt

SETTINGS = Settings(file_bytes=1024, queue_units=1, queue_ext=True, disk="journal")
IN_TWO_LOG_FILES: tuple[Operation, ...] = (Put(body_bytes=672), Put(), Put(body_bytes=10))


def test_it_begins_with_the_first_message(attempt: Attempt) -> None:
    fails = (AimFault("unlink-error", "every=2"), Clean(after_hours=73, manual=True), Crash(others="kept"))
    assert attempt((*IN_TWO_LOG_FILES, Flush(), Step(service="reput"), *fails), SETTINGS) is None
