"""Two services meet a call of another thread between two steps of theirs.

Symptom: a step of the requests for replicas ended with TypeError during a close. A put that needed a log file reported
"not ready after 5000 ms" at once, in place of the failed creation.
Cause: the step read its next deadline twice, and a close removed it between the reads. The service that creates log
files noted a failure first and answered later. A put that began to wait between these two cleared the failure.
Fix: the deadline is read once (impl/replication/requests.py, `step`). Failure and answer change under one lock
(impl/log/allocation.py, `_answer`).
Found by: `tornpage explore interleavings`, with a preemption before any bytecode that may touch shared state.
"""

from contextlib import suppress

import pytest

from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.interleavings.part_searches import PartTally, first_search
from tornpage.properties.explore.interleavings.programs.bench import call, program
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.scenario import Scenario

PROGRAMS = {
    "a step beside a close": program("replicas", [call("step", 10)], [call("close")], before=[call("request", 5)]),
    "a put after a failed creation": program(
        "allocation", [call("take_next")], [call("fail", 2)], [call("serve", 2)], before=[call("take_next")]
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_single_preemption_breaks_the_program(name: str) -> None:
    scenario: Scenario = PROGRAMS[name]
    tally, runs = PartTally(), 0
    search = first_search(scenario, tally)
    interleaving = next(search)
    with choose_tracker("auto") as tracker:
        while not tally.completed[1]:
            ran = run_interleaving(interleaving, tracker=tracker)
            assert ran.broken is None, ran.broken
            runs += 1
            with suppress(StopIteration):
                interleaving = search.send(ran)
    assert runs > 40
