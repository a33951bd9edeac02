"""Symptom: the lab said that a level without a message goes on.

Cause: of the lab, not the store. The message had expired with its log file, and a clean-up that the disk had broken off
had left its unit in the queue; the level passed it by, as it has to. Fix: a level may go on to the end of its queue
where no message is left of it.
Found by: perturbed reproducers, with more faults (properties/planted/perturb.py).
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, Flush, Operation, Put, Step
from tornpage.properties.program.case import Settings

DELAYED, REPUT, ROUND = Put(properties="DELAY\x011"), Step(service="reput"), Step(service="schedule", after_ms=1000)
MESSAGES: tuple[Operation, ...] = (Put(body_bytes=800), Put(), REPUT, Flush())


@pytest.mark.parametrize("seed", [*range(16), 23294])
def test_it_goes_on_to_the_end_of_its_queue(attempt: Attempt, seed: int) -> None:
    fails = AimFault("directory-sync-error", "path=commitlog and probability=0.5", seed=seed)
    program = (DELAYED, fails, *MESSAGES, Clean(percent=86), ROUND, ROUND)
    assert attempt(program, Settings(file_bytes=1024)) is None
