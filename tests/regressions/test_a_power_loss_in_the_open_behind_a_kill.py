"""Symptom: the lab said that a progress file is neither old nor new, after a kill in a save and a power loss in the
open behind it.

Cause: of the lab, not the store. It took what the open had found for durable from the begin of the open on, while the
killed process had not synced the name; the open does, and the power went before. Fix: until the open has returned, what
was legal at the kill is legal still.
Found by: campaigns on two disks.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import CommitOffset, Crash, Step
from tornpage.properties.program.case import Settings


def test_the_version_before_may_be_back(attempt: Attempt) -> None:
    for back in range(14):
        lost = (Crash(kill=True, back=2), Crash(back=back))
        operations = (CommitOffset(), Step(service="progress", after_ms=5_000), *lost)
        broken = attempt(operations, Settings(file_bytes=1024))
        assert broken is None, f"{back} events before the answer of the open: {broken}"
