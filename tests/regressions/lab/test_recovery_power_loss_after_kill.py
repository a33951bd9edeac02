"""A power loss in the recovery after a kill may restore an older progress file.

Symptom: the crash lab reported that a progress file is neither old nor new, after a kill in a save and a power loss in
the recovery after it.
Cause: a mistake of the lab. Inside a recovery it allowed the version that the recovery had read and the version that it
would leave. But the killed process had not synced the name of the file, so the power loss restores the version before.
Fix: a version that was legal at the kill is legal in the recovery after it.
Found by: comparing what `tornpage exhaust` and campaigns allow.
"""

import random

from tornpage.model.operations import CommitOffset, Operation, Put, Step
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.sampling import Chances
from tornpage.properties.explore.crashes.crash_states import CrashStates
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

SAVED: tuple[Operation, ...] = (
    *[Put(body_bytes=40)] * 12,
    Step(service="reput"),
    CommitOffset(),
    Step(service="progress", after_ms=5_000),
)
KILLS = Chances(kill=1.0, crash_in_recovery=1.0)


def test_the_version_before_may_be_back_inside_the_recovery() -> None:
    tally = Tally()
    with choose_tracker("auto") as tracker:
        trial = lockstep_of(Settings(file_bytes=1024), tracker=tracker)
        for operation in SAVED:
            trial.run(operation)
        for seed in (2, 3):
            states = CrashStates(trial, trial.performed, 0, rng=random.Random(seed), tally=tally, chances=KILLS)
            assert all(failure is None for failure in states.everywhere())
    assert tally.hit["crash_in_recovery"] > 0 < tally.hit["progress_being_saved"]
