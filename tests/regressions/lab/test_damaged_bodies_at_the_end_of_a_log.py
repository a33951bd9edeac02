"""Damaged bodies at the end of a log end it before them.

Symptom: `contract 9: the log ends at 225, and its records end at 338` for an unchanged store.
Cause: `harm_field` changed a body in the first and in the last record. It expected the log to end after the last
record, although a log ends after its last valid one.
Fix: the damage after the last intact record ends the log (properties/lockstep/copies/field_harm.py).
Found by: `tornpage explore crashes --seconds 400 --seed 7101 --compiled`, which also fails without `--compiled`.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import DiskUsed, HarmField, Put
from tornpage.properties.program.case import Settings


def test_first_and_last_body_are_damaged(attempt: Attempt) -> None:
    operations = (Put(body_bytes=1), Put(), DiskUsed(), Put(body_bytes=1), HarmField("body", value=1))
    assert attempt(operations, Settings(file_bytes=1024)) is None
