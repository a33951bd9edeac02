"""Symptom: arming a second fault, the lab found queues that are not what the model says.

Cause: of the lab. Under a fault no single answer is right, yet the operation that arms another one was compared with
one answer. Fix: it is carried out under the first one, as everything else.
Found by: the failing-disk machine in its first run.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Crash, Put, Step
from tornpage.properties.program.case import Settings

REPUT = Step(service="reput")


def test_no_single_answer_is_asked_for_while_one_is_armed(attempt: Attempt) -> None:
    program = (AimFault("unlink-error"), Put(), REPUT, AimFault("rename-error"), Put(), Crash())
    assert attempt(program, Settings(file_bytes=1024)) is None
