"""Symptom: the lab said that a put into a full disk is answered otherwise than by the model, which had looked at it.

Cause: of the lab, not the store. The store looks again after some seconds by the clock that somebody then set back by
less than those; and that clock had taken with it the time that nobody sets. Fix: a put at an earlier time sets the
clock alone, and the disk is full for long enough to be seen.
Found by: programs beside the smallest cases of planted bugs.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import DiskUsed, Put
from tornpage.properties.program.case import Settings


@pytest.mark.parametrize("back_ms", [1, 1_500, 4_900, 100_000])
def test_the_full_disk_is_seen(attempt: Attempt, back_ms: int) -> None:
    program = (Put(), DiskUsed(percent=100), Put(advance_ms=-back_ms), Put(), DiskUsed(percent=10), Put())
    assert attempt(program, Settings(file_bytes=1024)) is None
