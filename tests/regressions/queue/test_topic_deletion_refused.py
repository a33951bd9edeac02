"""A failed deletion of topics is reverted, or it has happened.

Symptom: topics whose deletion had failed with "nothing has changed" were gone at the next start (contract 10).
Cause: the list of deleted topics had replaced the old one, and the sync of its directory failed. The store kept the
topics, and the next open trusted the list. Where messages had arrived meanwhile, it also kept the older messages in
their queues.
Fix: the old list is written again, at the latest before a clean exit or the removal of a log file. After an earlier
crash the topics are deleted, and a queue begins with the later messages.
Found by: the first search for deletions on failing disks.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.model.operations import AimFault, Clean, Close, Crash, DeleteTopics, Flush, Open, Operation, Put, Step
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024)
REPUT = Step(service="reput")
FIRST_SYNC_FAILS = AimFault("directory-sync-error", "path=config and nth=1")
ALL_FAIL = AimFault("directory-sync-error", "path=config")
REFUSED: tuple[Operation, ...] = (Put(), REPUT, Flush(), ALL_FAIL, DeleteTopics(), Put(), REPUT)
ENDINGS: dict[str, tuple[Operation, ...]] = {
    "exit": (Close(), Crash()),
    "open": (Open(),),
    "kill": (Crash(kill=True), Put(), REPUT),
    "power loss": (Crash(others="kept"), Put(), REPUT),
    "expiry": (Put(body_bytes=700), Put(body_bytes=700), Flush(), REPUT, Clean(after_hours=73, manual=True), Crash()),
}


class ListNotWrittenAgain(DeletedTopics):
    """The first half of the mistake: no code rewrites a list that does not count."""

    def write_if_doubtful(self) -> None:
        """Pass."""


class DeletedUnitsStay(ConsumeQueue):
    """The second half: units of deleted messages stay before the first valid unit."""

    def erase_deleted(self, deleted_below: int, log_min: int) -> None:
        """Pass."""


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_is_taken_back_or_has_happened(attempt: Attempt, ending: str) -> None:
    assert attempt((*REFUSED, *ENDINGS[ending]), SETTINGS) is None


def test_it_is_taken_back_at_once(attempt: Attempt) -> None:
    operations = (Put(), REPUT, FIRST_SYNC_FAILS, DeleteTopics(), Put(), Crash(kill=True))
    assert attempt(operations, SETTINGS) is None


def test_a_list_that_nobody_writes_again_counts_behind_an_exit(attempt: Attempt) -> None:
    broken = attempt(
        (Put(), FIRST_SYNC_FAILS, DeleteTopics(), Close(), Crash(others="kept")),
        SETTINGS,
        Parts({DeletedTopics: ListNotWrittenAgain}),
    )
    assert broken is not None
    assert broken.contract == 10


def test_units_that_nobody_erases_are_in_the_queue_again(attempt: Attempt) -> None:
    mistakes = Parts({DeletedTopics: ListNotWrittenAgain, ConsumeQueue: DeletedUnitsStay})
    broken = attempt((*REFUSED, Crash(kill=True)), SETTINGS, mistakes)
    assert broken is not None
    assert broken.contract == 4
