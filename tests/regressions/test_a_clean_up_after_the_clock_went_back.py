"""Symptom: the lab called a store broken whose clean-up kept a file that was not old enough.

Cause: of the lab, not the store. The clean-up takes ages from the wall clock, and the model was handed monotonic time,
which does not know that the clock was set back by two hours. Fix: the model is handed both.
Found by: a review of what the model is handed.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, ClockStep, Flush, Put, Step
from tornpage.properties.program.case import Settings

PUT = Put(body_bytes=800)
SETTINGS = Settings(file_bytes=1024)
BACK = (PUT, PUT, ClockStep(by_ms=-2 * 3_600_000), PUT, PUT, PUT, Step(service="reput"), Flush())


@pytest.mark.parametrize("hours", [71, 72, 73, 75])
def test_ages_are_those_of_the_wall_clock(attempt: Attempt, hours: int) -> None:
    assert attempt((*BACK, Clean(after_hours=hours, manual=True)), SETTINGS) is None


def test_a_fault_rule_changes_nothing_about_that(attempt: Attempt) -> None:
    nowhere = AimFault("rename-error", "path=nowhere")
    assert attempt((*BACK, nowhere, Clean(after_hours=73, manual=True)), SETTINGS) is None
