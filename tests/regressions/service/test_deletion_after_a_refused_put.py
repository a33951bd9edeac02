"""A close refused puts some time before it refused deletions.

Symptom: `tornpage explore interleavings` reported that no order of whole calls explains the answers: a put was refused
because of a close, and a deletion of topics by the same client took effect afterwards (contract 17).
Cause: each part of the store was stopped in turn, and each refused calls from its own stop on.
Fix: a close begins to refuse puts while it keeps deletions out (`Retention.refusing_deletions`).
Found by: a trial of a mutant that has nothing to do with it.
"""

from itertools import islice

import pytest

from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.interleavings.operations import PartCall
from tornpage.properties.explore.interleavings.programs.bench import call, program
from tornpage.properties.explore.interleavings.programs.running import modules_of
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving
from tornpage.properties.scheduler import PreemptionSearch


@pytest.mark.slow
@pytest.mark.parametrize("calls", [[call("put", 2), call("delete")], [call("delete"), call("put", 2)]])
def test_what_a_close_refuses_it_refuses_from_one_moment_on(calls: list[PartCall]) -> None:
    scenario = program("store", [call("close")], calls, before=[call("put", 1), call("dispatch")])
    search = PreemptionSearch(1)
    with choose_tracker("auto") as tracker:
        for schedule in islice(search.schedules(), 400):
            interleaving = Interleaving(scenario, (0, 1), schedule, modules_of(scenario), "line")
            ran = run_interleaving(interleaving, tracker=tracker)
            assert ran.broken is None, ran.broken
            search.ran(ran.trace)
