"""A copy that has lost every log file is not judged by where its log ends.

Symptom: `contract 9: the log ends at 0, and its records end at 163840` for an unchanged store.
Cause: `harm_field` with `end` took away the first record of a log that began past offset 0, and with it every log file.
Without a log file nothing says where the log was.
Fix: such a copy is not judged (properties/lockstep/copies/field_harm.py).
Found by: a mutant whose failure the original had as well.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import Clean, Flush, HarmField, Operation, Put, Step
from tornpage.properties.program.case import Settings

PUTS = [Put(body_bytes=600, fill=number) for number in range(4)]
DELETED = Clean(after_hours=73, manual=True, percent=10)


def test_whole_log_is_lost_after_retention(attempt: Attempt) -> None:
    operations: tuple[Operation, ...] = (*PUTS, Flush(), Step("reput"), DELETED, HarmField("end"))
    assert attempt(operations, Settings(file_bytes=1024, trailer=False)) is None
