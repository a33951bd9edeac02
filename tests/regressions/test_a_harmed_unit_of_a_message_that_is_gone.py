"""Symptom: the lab said that a unit of a queue is wrong, whose message had expired and whose end was zeroed at rest;
the same of pre-fill in the place of such a unit.

Cause: of the lab, not the store. It asked for the unit as dispatch had written it; the log has no record to make it
again from, no reader is given it, and it still points in front of the log. Fix: of a store that was harmed that is
enough, whatever length the unit speaks of: pre-fill has the greatest there is.
Found by: an hour of `tornpage explore`, in 1 of 584,048 counted states; the pre-fill by a planted bug that was made
small until nothing but this was left.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Clean, Flush, HarmDerived, Operation, Put, Step
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024, queue_units=2)
TAGGED = Put(queue_id=1, body_bytes=600, properties="TAGS\x01TagA")
EXPIRED: tuple[Operation, ...] = (
    *(TAGGED, Put(body_bytes=600), TAGGED, Put(), Flush(), Step(service="reput")),
    Clean(after_hours=73, manual=True),
)


@pytest.mark.parametrize("byte", range(9, 21))
def test_it_may_say_what_it_likes(attempt: Attempt, byte: int) -> None:
    assert attempt((*EXPIRED, HarmDerived(file="queue", harm="zeroed", number=1, amount=byte)), SETTINGS) is None


@pytest.mark.parametrize("byte", range(9, 13))
def test_so_may_pre_fill(attempt: Attempt, byte: int) -> None:
    full = Put(body_bytes=800)
    expired = (full, full, Step(service="reput"), Flush(), Clean(percent=88))
    prefilled = (*expired, HarmDerived(harm="lost"))
    assert attempt((*prefilled, HarmDerived(harm="zeroed", amount=byte)), Settings(file_bytes=1024)) is None
