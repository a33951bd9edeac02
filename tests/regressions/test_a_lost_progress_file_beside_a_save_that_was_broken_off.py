"""Symptom: the lab said that a progress file which is lost is not named, where it had never had a backup.

Cause: of the lab, not the store. It took what a save that was broken off had left, NAME.tmp, for a backup.
Found by: the consumer machine.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import CommitOffset, Crash, HarmProgress, Step
from tornpage.properties.program.case import Settings

SAVE = Step(service="progress", after_ms=5_000)


def test_leftovers_are_no_backup(attempt: Attempt) -> None:
    for back in range(12):
        operations = (CommitOffset(), SAVE, CommitOffset(), SAVE, Crash(back=back), HarmProgress())
        broken = attempt(operations, Settings(file_bytes=1024, disk="journal"))
        assert broken is None, f"{back} events before the answer: {broken}"
