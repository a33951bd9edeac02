"""Symptom: the lab said that a put is refused by a disk that lets nothing fail.

Cause: of the lab, not the store. The next append was to be refused, and then a fault was aimed: that forgot what else
was to fail, but the refusal of appends. Fix: that too.
Found by: programs beside the smallest cases of planted bugs.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, FailAppend, Put
from tornpage.properties.program.case import Settings


def test_the_put_is_stored(attempt: Attempt) -> None:
    assert attempt((FailAppend(), AimFault("rename-error"), Put()), Settings(file_bytes=1024)) is None
