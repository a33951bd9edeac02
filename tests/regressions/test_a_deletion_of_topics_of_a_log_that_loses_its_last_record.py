"""Symptom: the lab said that a queue holds units of no surviving record.

Cause: of the lab, not the store. The messages of a topic had expired; a power loss inside its deletion took the last
record that was left. Whether the topic was deleted then, the lab asked the records, of which there are none. Fix: of
a log without a record it asks the queues: those of a deleted topic are gone, and those of another one keep their
numbers.
Found by: an hour of `tornpage explore`, behind 448,948 counted states.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Clean, Crash, DeleteTopics, Operation, Put, Step
from tornpage.properties.program.case import Settings

FLUSH = Step(service="flush")
EXPIRED: tuple[Operation, ...] = (
    *(Put(body_bytes=14_000), FLUSH, Put(properties="DELAY\x011", body_bytes=4_963), FLUSH),
    *(Step(service="reput"), Clean(percent=88)),
)
LAST_RECORD = "page /store/commitlog/00000000000000016384 0"


@pytest.mark.parametrize("others", ["kept", "lost"])
def test_its_queues_tell_whether_it_was_deleted(attempt: Attempt, others: str) -> None:
    for back in range(16):
        crash = Crash(back=back, survived={LAST_RECORD: 0}, others="kept" if others == "kept" else "lost")
        for then in ((), (Put(),)):
            broken = attempt((*EXPIRED, DeleteTopics(), crash, *then), Settings())
            assert broken is None, f"{back} events before the answer"
