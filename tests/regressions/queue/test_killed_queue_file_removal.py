"""A killed deletion of a queue is made durable by the next open.

Symptom: the queue of a deleted topic could reappear after a power loss, long after the deletion (contract 10).
Cause: the deletion was killed between removing a queue file and syncing its directory. The next opener found no file
there and synced nothing, and the list of deleted topics was forgotten later.
Fix: after an unclean exit the directories of queues without a file are synced too (impl/queue/queue_files.py, load).
Found by: the retention machine; this is its shrunk case.
"""

from functools import partial

from tests.support.regressions import Attempt
from tornpage.impl.log.loading import Finding
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.model.operations import Close, Crash, DeleteTopics, Open, Operation, Put
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024)


def kills_in_deletion() -> list[tuple[Operation, ...]]:
    return [(Put(), Open(), DeleteTopics(), Crash(kill=True, back=back), Close()) for back in range(1, 12)]


class EmptyDirectoryIsNotSynced(QueueFiles):
    """The mistake: without a file there is nothing to sync."""

    def load(self, *, durable: bool) -> list[Finding]:
        findings = super().load(durable=durable)
        self._names_pending &= bool(self.mapped)
        return findings


def test_a_killed_deletion_is_made_durable_by_the_next_open(attempt: Attempt) -> None:
    for operations in kills_in_deletion():
        assert attempt(operations, SETTINGS) is None


def test_a_deletion_left_to_chance_can_come_back(attempt: Attempt) -> None:
    mistake = Parts({ConsumeQueues: partial(ConsumeQueues, queue_files=EmptyDirectoryIsNotSynced)})
    broken = [attempt(operations, SETTINGS, mistake) for operations in kills_in_deletion()]
    assert {error.contract for error in broken if error is not None} == {4}
