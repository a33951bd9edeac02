"""Symptom: the lab said that a level is held up by a message that is due.

Cause: of the lab, not the store. The disk had broken dispatch off behind the unit of the message, so its level had not
heard of it; and the message has no copy, so no refusal of one explained that it was still there. Fix: a level passes a
message that dispatch has come behind.
Found by: perturbed reproducers, with more faults (properties/planted/perturb.py).
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Put, Step
from tornpage.properties.program.case import Settings

NO_COPY = Put(topic="RMQ_SYS_TRANS_HALF_TOPIC", properties="DELAY\x011")
ROUND = Step(service="schedule", after_ms=1000)


def test_it_is_not_held_up(attempt: Attempt) -> None:
    broken_off = (AimFault("no-space", "kind=index"), Step(service="reput"))
    program = (NO_COPY, Put(properties="KEYS\x01k1 k2"), *broken_off, ROUND, ROUND)
    assert attempt(program, Settings(file_bytes=1024, java_delays=True)) is None
