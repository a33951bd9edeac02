"""Symptom: the lab said that a queue ends at 1 where it may end anywhere from 1 to 0.

Cause: of the lab. A round of dispatch had failed half-way; then a sync of the log failed, and readers may go no further
than what is durable. Queues were held to that end too, and no queue goes back. Fix: where the log is poisoned they are
held to the end of the log.
Found by: the queue machine.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import FailSync, Flush, Put, RefuseFile, Step
from tornpage.properties.program.case import Settings

REPUT = Step(service="reput")
HALF_A_ROUND = (Put(topic="U"), REPUT, RefuseFile(), FailSync(), Put(), REPUT)


def test_a_queue_keeps_what_it_had(attempt: Attempt) -> None:
    assert attempt((*HALF_A_ROUND, Flush()), Settings(file_bytes=1024)) is None
