"""Symptom: the lab said that a unit of a queue is wrong, whose message had expired and whose end was zeroed at rest.

Cause: of the lab, not the store. It asked for the unit as dispatch had written it; the log has no record to make it
again from, no reader is given it, and it still points in front of the log. Fix: of a store that was harmed that is
enough.
Found by: an hour of `tornpage explore`, in 1 of 584,048 counted states.
"""

import pytest

from properties.cases.case import Clean, Flush, HarmDerived, Operation, Put, Settings, Step
from tests.regressions.conftest import Attempt

SETTINGS = Settings(file_bytes=1024, queue_units=2)
TAGGED = Put(queue_id=1, body_bytes=600, properties="TAGS\x01TagA")
EXPIRED: tuple[Operation, ...] = (
    *(TAGGED, Put(body_bytes=600), TAGGED, Put(), Flush(), Step(service="reput")),
    Clean(after_hours=73, manual=True),
)


@pytest.mark.parametrize("byte", range(9, 21))
def test_it_may_say_what_it_likes(attempt: Attempt, byte: int) -> None:
    assert attempt((*EXPIRED, HarmDerived(file="queue", harm="zeroed", number=1, amount=byte)), SETTINGS) is None
