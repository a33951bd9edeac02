"""Two acquisitions of the put lock in one millisecond count as two.

Symptom: the crash lab reported a wrong answer to page-cache busy, with the put lock held for 2,000 ms.
Cause: a mistake of the lab. It distinguished two acquisitions of the put lock by the time of their begin. The clock
reading of the first one counted for a second one that began in the same millisecond and had read nothing yet.
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
