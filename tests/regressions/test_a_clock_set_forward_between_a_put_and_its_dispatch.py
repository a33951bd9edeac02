"""Symptom: the lab said that nobody wakes delivery for a message that is due before it would look.

Cause: of the lab, not the store. The clock was set forward between the put and its dispatch, by which the message was
due earlier; delivery notices that within a second (docs/statuses.md). Fix: so long it may take, and no longer.
Found by: programs beside the smallest cases of planted bugs.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import ClockStep, Operation, Put, Step
from tornpage.properties.program.case import Settings

REPUT, ROUND = Step(service="reput"), Step(service="schedule")
WAITS: tuple[Operation, ...] = (Put(properties="DELAY\x013"), REPUT, ROUND)


@pytest.mark.parametrize("before", [(), WAITS], ids=["first", "beside one that waits"])
@pytest.mark.parametrize("by_ms", [2, 100, 999, 3_600_000])
def test_delivery_looks_within_a_second(attempt: Attempt, before: tuple[Operation, ...], by_ms: int) -> None:
    program = (*before, Put(properties="DELAY\x011"), ClockStep(by_ms=by_ms), REPUT, Step(service="schedule"))
    assert attempt(program, Settings(file_bytes=4096)) is None
