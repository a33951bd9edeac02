"""Minimal reproducers of the RocketMQ 4.9.3 defects I3 to I6, which hold in this store.

Each one breaks a promise when its defect is planted. I1, I2 and I7 have theirs in
tests/properties/planted/test_smallest_cases.py.
Found by: `tornpage bugs holes --hunt` (docs/holes.md), then made smaller by hand.
"""

from tests.support.regressions import Attempt, breaks_only_with
from tornpage.model.operations import Crash, Flush, Put, Step

REPUT = Step(service="reput")
FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)
KEYED = Put(properties="KEYS\x01k")


def test_i3_index_does_not_outlive_the_log(attempt: Attempt) -> None:
    """The second record is lost and its entry is not."""
    operations = (KEYED, Flush(), KEYED, REPUT, FLUSH_QUEUES, Crash())
    breaks_only_with("I3", attempt, operations, contract=5)


def test_i4_empty_log_has_an_empty_index(attempt: Attempt) -> None:
    """The only record is lost and its entry is not."""
    breaks_only_with("I4", attempt, (KEYED, REPUT, FLUSH_QUEUES, Crash()), contract=5)


def test_i5_header_is_not_believed(attempt: Attempt) -> None:
    """A kill between the slot of the second entry and the header that counts it."""
    two_keys = Put(properties="KEYS\x01Aa k")
    breaks_only_with("I5", attempt, (two_keys, REPUT, Crash(kill=True, back=2)), contract=5)


def test_i6_record_in_its_queue_is_indexed_too(attempt: Attempt) -> None:
    """A kill between the unit of a record and the first entry of the index."""
    operations = (Put(), KEYED, REPUT, Crash(kill=True, back=7))
    breaks_only_with("I6", attempt, operations, contract=5)
