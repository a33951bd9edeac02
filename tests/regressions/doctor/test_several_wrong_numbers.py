"""Symptom: after damage of several queue offsets, consumers did not reach messages.

1. A record far before the others kept its number. The queue began with it and could not take the others past the gap,
   but their numbers counted as used. Puts got numbers past the gap, which no consumer reached.
2. A record that followed a record of several queues counted as one of several queues. Its unit
   then did not contradict it, and it kept a wrong number.
3. A record with a wrong queue id claimed the number 0 of another queue, whose unit stated the right record. The next
   put to that queue got the number 1. At the next open both were taken for a new numbering, and the right record had no
   number.

Cause: a record before the chain could be any distance away from it. Of a claim without its last record, both parts were
taken for records that name the queue. A claim of the number 0 that another one continues began a new numbering,
whatever the units say.
Fix: such a record is at most one queue file before the chain. A claim keeps for its first and its last record whether
they name the queue. A claim that is continued begins a numbering only if no unit states another record with the number
0 (`QueueNumbers`).
Found by: `tornpage explore crashes`, factors `end_numbers` and `end_field`.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import HarmField, HarmNumbers, Operation, Put, Step, WrongClaim
from tornpage.properties.program.case import Settings

SETTINGS = Settings(trailer=False, queue_units=16)
NAMING = Put(topic="T", properties="INNER_MULTI_DISPATCH\x01U")


def test_a_record_far_before_the_others(attempt: Attempt) -> None:
    harm = HarmNumbers((WrongClaim(1, "from_here", 40),), "lost")
    operations: tuple[Operation, ...] = (Put(), Put(), Put(), Put(), Step("reput"), harm)
    assert attempt(operations, SETTINGS) is None


def test_a_record_after_one_that_names_the_queue(attempt: Attempt) -> None:
    harm = HarmNumbers((WrongClaim(2, "number", 17),), "shifted")
    operations: tuple[Operation, ...] = (NAMING, Put(topic="U"), Put(topic="U"), Step("reput"), harm)
    assert attempt(operations, Settings(trailer=False, queue_units=16, multi_dispatch=True)) is None


def test_a_record_of_another_queue_with_the_number_0(attempt: Attempt) -> None:
    operations: tuple[Operation, ...] = (Put(), Put(topic="U"), Put(topic="U", queue_id=3), HarmField("queue_id", 2))
    assert attempt(operations, SETTINGS) is None
