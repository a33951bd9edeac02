"""Symptom: the lab said that a clean-up deletes what may not go, behind a commit that a short write had broken off.

Cause: of the lab, not the store. How old a log file is, the first record of the next one says. Half of a buffer had
been written, with that record whole in it; the lab took it for one that is in the buffer alone. Fix: under a fault a
record may have come into its file, committed or not.
Found by: an hour of `tornpage explore`, in 1 of 1,029,827 counted states.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Clean, Crash, Open, Operation, Put, Step
from tornpage.properties.program.case import Settings

FIRST_FILE_ENDS: tuple[Operation, ...] = (Put(body_bytes=27), Open(), Put(body_bytes=770), Crash(others="kept"))
HALF_A_BUFFER = (Put(), AimFault("short-write"), Put(), Step(service="commit"))


def test_its_record_tells_how_old_the_file_in_front_is(attempt: Attempt) -> None:
    settings = Settings(file_bytes=1024, pool_buffers=1)
    for ending in ((), (Crash(),), (Crash(kill=True),), (Crash(others="kept"),)):
        operations = (*FIRST_FILE_ENDS, *HALF_A_BUFFER, Clean(after_hours=73, manual=True), *ending)
        assert attempt(operations, settings) is None
