"""Symptom: a queue that was made anew held a zero unit in front of its first message; RocketMQ ends a queue at that.

Cause: units of expired messages, or pre-fill, in front of the first number that the log has were not looked at as long
as the files reached that number. Fix: where one of them is none, the queue is begun anew.
Found by: the retention machine, with a queue that is zeroed again after it was lost.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import Clean, Flush, HarmDerived, Put, Step
from tornpage.properties.program.case import Settings

PUTS = (Put(body_bytes=100), Put(body_bytes=100), Put(body_bytes=300)) * 2
SETTINGS = Settings(file_bytes=1024, queue_units=2)
EXPIRED = (*PUTS, Step(service="reput"), Flush(), Clean(percent=88))


def test_prefill_that_was_zeroed_is_there_again(attempt: Attempt) -> None:
    lost, zeroed = HarmDerived(), HarmDerived(harm="zeroed", amount=40)
    assert attempt((*EXPIRED, lost, HarmDerived(harm="zeroed", amount=20), zeroed), SETTINGS) is None


def test_a_unit_of_an_expired_message_that_was_zeroed_is_no_obstacle(attempt: Attempt) -> None:
    assert attempt((*EXPIRED, HarmDerived(harm="zeroed")), SETTINGS) is None
