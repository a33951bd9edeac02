"""Damage is judged by reads that verify.

Symptom: `contract 4: a pull from queue T of a damaged store returns a wrong record` for an unchanged store, and
`contract 7: the record at 0 is served with a wrong body` for a copy with a changed body.
Cause: the factor `verify_reads` had the level `never` in runs that end with damage. Reads may return damage then.
Fix: a damaged store and a damaged copy are opened with `verify_reads="always"` (properties/lockstep/corruption.py and
field_harm.py).
Found by: tests/properties/campaign/test_campaign.py and `explore crashes --seed 33`, after the factor was new.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Damage, HarmField, Put
from tornpage.properties.program.case import Settings


@pytest.mark.parametrize("beside", ["", "queue"])
def test_damaged_record_may_be_returned_without_verification(attempt: Attempt, beside: str) -> None:
    for amount in range(0, 900, 60):
        damage = Damage("flip", amount=amount, beside="queue" if beside else "")
        settings = Settings(file_bytes=1024, verify_reads="never")
        assert attempt((Put(body_bytes=60), damage), settings) is None


def test_changed_body_of_copy_may_be_returned_without_verification(attempt: Attempt) -> None:
    settings = Settings(file_bytes=1024, verify_reads="never")
    assert attempt((Put(body_bytes=1), Put(), Put(advance_ms=5000), HarmField("body")), settings) is None
