"""Symptom: after a restart a store took more light queues than it may have.

Cause: a message that is put into a light queue and names that queue too has one unit in it, which was told as one of
its own; so an open did not hear that the queue was named, and did not count it. Fix: a unit is told as named, be it in
the message's own queue or not.
Found by: the put machine, in hunting another bug that was planted.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Close, Crash, HarmDerived, Open, Operation, Put, Step
from tornpage.properties.program.case import Settings

LIMITED = Settings(file_bytes=1024, multi_dispatch=True, light_queues=True, light_queues_max=1)
OWN = Put(topic="%LMQ%a", properties="INNER_MULTI_DISPATCH\x01%LMQ%a")
ANOTHER = Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%c")
ANOTHER_IN_IT = Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b")
REPUT = Step(service="reput")


@pytest.mark.parametrize("put", [OWN, Put(topic="%LMQ%a", properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%a")])
@pytest.mark.parametrize("restart", [(Open(),), (REPUT, Close(), Open()), (Crash(kill=True),), (Crash(others="kept"),)])
def test_it_counts_after_a_restart(attempt: Attempt, put: Put, restart: tuple[Operation, ...]) -> None:
    assert attempt((put, *restart, ANOTHER, OWN, *restart, ANOTHER), LIMITED) is None


@pytest.mark.parametrize("bit_maps", [False, True])
def test_units_with_an_extension_follow_those_without(attempt: Attempt, bit_maps: bool) -> None:
    """A first mend joined them to one run, and the store did not open."""
    extended = Settings(file_bytes=1024, multi_dispatch=True, queue_ext=True, bit_maps=bit_maps)
    for queue in range(3):
        for then in (Open(), Crash(others="kept"), HarmDerived(number=queue)):
            assert attempt((OWN, ANOTHER_IN_IT, OWN, ANOTHER_IN_IT, REPUT, then, OWN, Open()), extended) is None


def test_it_makes_none_of_a_queue_that_nobody_names(attempt: Attempt) -> None:
    assert attempt((Put(topic="%LMQ%a"), Open(), ANOTHER), LIMITED) is None
