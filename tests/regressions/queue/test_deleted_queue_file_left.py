"""A queue file left by a deletion does not return to its queue.

Symptom: units of a deleted topic were in a queue again after a restart long after the deletion (contract 4, 10).
Cause: a file of the queue could not be removed, and the next open was to remove it. By then the log had no message of
the topic and the deletion was forgotten, or the exit had been clean. A file that could be neither made nor removed
belonged to no queue.
Fix: the next clean-up removes the files before the topic is forgotten, or the next message of the queue does, or the
close. An open removes the files of a topic that is still on the list before it reads them.
Found by: the first search for deletions on failing disks.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, Close, Crash, DeleteTopics, Flush, Open, Operation, Put, Step
from tornpage.properties.planted import PLANTED
from tornpage.properties.program.case import Settings

REPUT, EXPIRED = Step(service="reput"), Clean(after_hours=73, manual=True)
SETTINGS = Settings(file_bytes=1024, queue_units=1)
COUNTS = {"once": " and nth=1", "twice": " and (nth=1 or nth=2)", "always": ""}
FAULTS = {count: AimFault("unlink-error", f"kind=queue{where}") for count, where in COUNTS.items()}
KEPT: tuple[Operation, ...] = (Put(topic="U"), Put(topic="U"), REPUT, Step(service="flush-queues", after_ms=60_000))
BEHIND: tuple[Operation, ...] = (Put(body_bytes=700), Put(body_bytes=700), REPUT, Flush())
ENDINGS: dict[str, tuple[Operation, ...]] = {
    "exit": (Close(), Open(), Put(topic="U"), REPUT),
    "expiry": (*BEHIND, EXPIRED, Open(), Put(topic="U"), REPUT),
    "power loss": (*BEHIND, EXPIRED, Crash(), Put(topic="U"), REPUT),
    "new messages": (Put(topic="U"), REPUT, REPUT, Put(topic="U"), REPUT, Crash(kill=True)),
    "new messages that expire": (Put(topic="U"), *BEHIND, EXPIRED, Crash(kill=True), Put(topic="U"), REPUT),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_it_is_in_no_queue(attempt: Attempt, ending: str, count: str) -> None:
    assert attempt((*KEPT, FAULTS[count], DeleteTopics(in_use=("T",)), *ENDINGS[ending]), SETTINGS) is None


@pytest.mark.parametrize("ending", ["exit", "expiry"])
def test_it_comes_back_where_nobody_removes_it(attempt: Attempt, ending: str) -> None:
    mistake = PLANTED["deleted-queue-left-behind"].parts
    broken = attempt((*KEPT, FAULTS["once"], DeleteTopics(in_use=("T",)), *ENDINGS[ending]), SETTINGS, mistake)
    assert broken is not None
    assert broken.contract == 4


def test_a_file_that_could_not_be_made_goes_too(attempt: Attempt) -> None:
    refused = (AimFault("read-error", "kind=queue and nth=1"), FAULTS["once"], REPUT, DeleteTopics(in_use=("T",)))
    for ending in ((Close(), Open()), (*BEHIND, EXPIRED, Crash(kill=True)), (*BEHIND, EXPIRED, Open())):
        assert attempt((Put(topic="U"), *refused, *ending), SETTINGS) is None
