"""Minimal reproducers of the RocketMQ 4.9.3 defects C3 to C16, which hold in this store.

Each one breaks a promise when its defect is planted. The other defects of queues have theirs in
tests/properties/planted/test_smallest_cases.py.
Found by: `tornpage bugs holes --hunt` (docs/holes.md), then made smaller by hand.
"""

from tests.support.regressions import Attempt, breaks_only_with
from tornpage.model.operations import Clean, Close, Crash, Flush, HarmDerived, Open, Put, Step
from tornpage.properties.program.case import Settings

REPUT = Step(service="reput")
FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)
KEYED = Put(properties="KEYS\x01k")
A_FILE_EACH = Settings(file_bytes=1024)
FILLS_A_FILE = Put(body_bytes=700)
FIRST_IS_DELETED = (
    FILLS_A_FILE,
    FILLS_A_FILE,
    REPUT,
    Flush(),
    FLUSH_QUEUES,
    Clean(after_hours=73, manual=True, percent=10),
)
QUEUE_IS_LOST = HarmDerived(file="queue", harm="lost")
SECOND_UNIT = "/store/consumequeue/T/0/00000000000000000020"


def test_c3_index_does_not_speak_for_queues(attempt: Attempt) -> None:
    """An index file is full. The power loss takes units that were never flushed."""
    operations = (KEYED, KEYED, KEYED, Flush(), REPUT, Crash())
    breaks_only_with("C3", attempt, operations, Settings(index_entries=2), contract=9)


def test_c5_prefill_is_not_the_furthest_record(attempt: Attempt) -> None:
    """The queue of a log that begins with message 1 is rebuilt and loses all but its pre-fill."""
    loses_its_unit = HarmDerived(file="queue", harm="zeroed", amount=20)
    breaks_only_with("C5", attempt, (*FIRST_IS_DELETED, QUEUE_IS_LOST, loses_its_unit), A_FILE_EACH, contract=4)


def test_c6_prefill_is_no_message(attempt: Attempt) -> None:
    """The queue of a log that begins with message 1 is rebuilt."""
    breaks_only_with("C6", attempt, (*FIRST_IS_DELETED, QUEUE_IS_LOST), A_FILE_EACH, contract=17)


def test_c7_file_of_zeros_has_no_unit(attempt: Attempt) -> None:
    """Of a second message only name and size of its queue file survive."""
    survived = {f"link {SECOND_UNIT}": 1}
    operations = (Put(), Flush(), REPUT, FLUSH_QUEUES, Put(), REPUT, Crash(survived=survived))
    breaks_only_with("C7", attempt, operations, Settings(queue_units=1), contract=17)


def test_c8_dispatch_does_not_begin_behind_the_log(attempt: Attempt) -> None:
    """The log loses a record and its queue keeps the unit.

    The next message is dispatched anyway.
    """
    breaks_only_with("C8", attempt, (Put(), REPUT, FLUSH_QUEUES, Crash(), Put()), contract=16)


def test_c11_light_queues_go_on_counting(attempt: Attempt) -> None:
    """A named queue gets a message before a restart, and one after it."""
    naming = Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a")
    settings = Settings(multi_dispatch=True, light_queues=True)
    breaks_only_with("C11", attempt, (naming, Close(), Open(), naming), settings, contract=1)


def test_c13_lost_queue_comes_back_whole(attempt: Attempt) -> None:
    """The log has two files; nothing of its queue is durable."""
    breaks_only_with("C13", attempt, (FILLS_A_FILE, FILLS_A_FILE, Flush(), Crash()), A_FILE_EACH, contract=4)


def test_c16_fourth_file_from_the_end_is_compared(attempt: Attempt) -> None:
    """The first of four queue files is zeros."""
    operations = (*(Put(),) * 4, HarmDerived(file="queue", harm="zeroed"))
    breaks_only_with("C16", attempt, operations, Settings(queue_units=1), contract=4)
