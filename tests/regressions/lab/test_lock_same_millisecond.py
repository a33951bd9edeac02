"""Symptom: the lab said that page-cache busy was answered wrongly, with the put lock held for 2,000 ms.

Cause: of the lab, not the store. It told two turns in the put lock apart by the time at which each began, so that the
reading of the clock in the first counted for a second one that began in the same millisecond and had read nothing yet.
Fix: acquisitions are counted.
Found by: 5,000 examples of the put machine.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import Concurrent, Put
from tornpage.properties.program.case import Settings

BEFORE = Concurrent(first=(Put(topic="U"),))


def test_a_clock_that_jumps_at_any_step_of_the_second_turn(attempt: Attempt) -> None:
    for step in range(1, 80):
        both = Concurrent((Put(topic="U"),), (Put(),), schedule=(*(0,) * step, 1), jump_step=step, jump_ms=2_000)
        broken = attempt((BEFORE, both), Settings(file_bytes=1024, trailer=False))
        assert broken is None, f"step {step}: {broken}"
