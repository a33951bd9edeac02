"""Symptom: a queue began at a number that no message has, or had no message at all, until the store was opened again.

Cause: the disk refused to remove one of several old queue files in a recovery, so that units of expired messages alone
were left. Dispatch went on behind them: with pre-fill, which the minimum stayed in front of, or, where a file has less
room than the gap, not at all. Fix: a queue that has expired units alone begins anew with the message that comes.
Found by: the failing-disk machine, as soon as it let clean-ups fail.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, Crash, Flush, Operation, Put, Step
from tornpage.properties.program.case import Settings

PRE_FILLED: tuple[Operation, ...] = (Put(body_bytes=672), Put(), Put(body_bytes=10))
LEFT_OUT: tuple[Operation, ...] = (Put(body_bytes=126), Put(), Put(), *[Put(body_bytes=80)] * 3)
REFUSED = (AimFault("unlink-error", "every=2"), Clean(after_hours=73, manual=True), Crash(others="kept"))


@pytest.mark.parametrize(("puts", "queue_units"), [(PRE_FILLED, 1), (LEFT_OUT, 2)], ids=["pre-filled", "left out"])
def test_it_begins_with_the_first_message(attempt: Attempt, puts: tuple[Operation, ...], queue_units: int) -> None:
    settings = Settings(file_bytes=1024, queue_units=queue_units, queue_ext=True, disk="journal")
    assert attempt((*puts, Flush(), Step(service="reput"), *REFUSED), settings) is None
