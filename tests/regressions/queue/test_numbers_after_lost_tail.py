"""A queue keeps its last durable number when its tail is lost.

Symptom: after a power loss a queue would begin at number 0 again although it had messages (contract 4, 10).
Cause: a clean-up removed a queue file whose messages had all expired. The only units after it belonged to records that
were not durable and were lost. No file had the last number.
Fix: a queue file stays while no record after it is durable (impl/queue/consume_queue.py, drop_expired).
Found by: the crash campaign.
"""

from tests.support.regressions import Attempt
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.model.operations import Clean, Crash, Flush, Operation, Put, Step
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024, queue_units=1)
OLD, OTHER = Put(body_bytes=800), Put(topic="U", body_bytes=800)
REPUT = Step(service="reput")
BEFORE: tuple[Operation, ...] = (OLD, OTHER, REPUT, Flush(), Put(), REPUT, Clean(percent=88))


class GoesWithItsMessages(ConsumeQueue):
    """The mistake: units after a file are taken for durable."""

    def drop_expired(self, log_min: int, log_durable_end: int) -> tuple[int, bool]:
        return super().drop_expired(log_min, 1 << 62)


def losses() -> list[tuple[Operation, ...]]:
    gone = "unlink /store/consumequeue/T/0/00000000000000000000"
    return [(*BEFORE, Crash(back=back, survived={gone: 1})) for back in range(4)]


def test_a_queue_keeps_the_file_with_its_last_durable_number(attempt: Attempt) -> None:
    for operations in losses():
        assert attempt(operations, SETTINGS) is None


def test_a_file_that_goes_too_early_takes_the_number_along(attempt: Attempt) -> None:
    broken = [attempt(operations, SETTINGS, Parts({ConsumeQueue: GoesWithItsMessages})) for operations in losses()]
    assert 4 in {error.contract for error in broken if error is not None}
