"""Symptom: the lab said that consumer offsets, or those of delivery, are neither the old nor the new ones, behind a
damaged log and then a crash.

Cause: of the lab, not the store. The log is damaged behind a clean exit, which saves progress; the disk that followed
was believed to have what was saved before. Fix: what the files say then is where their history begins.
Found by: programs beside the smallest cases of planted bugs.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import CommitOffset, Crash, Damage, Operation, Put, Step
from tornpage.properties.program.case import Settings

DELIVERED = (Put(properties="DELAY\x012"), Step(service="reput"), Step(service="schedule", after_ms=3_000))


@pytest.mark.parametrize("saved", [(Put(), CommitOffset()), DELIVERED], ids=["consumers", "delivery"])
@pytest.mark.parametrize("light", [False, True])
def test_what_the_exit_has_saved_is_there(attempt: Attempt, saved: tuple[Operation, ...], light: bool) -> None:
    settings = Settings(file_bytes=1024, light_queues=light)
    assert attempt((*saved, Damage(), Crash(others="kept")), settings) is None
    assert attempt((*saved, Damage(), Crash(others="lost")), settings) is None
