"""Symptom: the lab said that damage at offset 0 goes unnoticed.

Cause: of the lab, not the store. A commit had failed, and with it the close: the record that was to be damaged had
never left its buffer. Fix: what is not on the disk is not damaged.
Found by: perturbed reproducers, with more faults (properties/planted/perturb.py).
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Close, Damage, FailSync, FailWrite, Operation, Put
from tornpage.properties.program.case import Settings


@pytest.mark.parametrize("fails", [FailWrite(), FailSync()])
@pytest.mark.parametrize("pool_buffers", [0, 1])
def test_what_never_reached_the_disk_is_not_damaged(attempt: Attempt, fails: Operation, pool_buffers: int) -> None:
    settings = Settings(file_bytes=1024, pool_buffers=pool_buffers)
    assert attempt((fails, Put(), Close(), Damage()), settings) is None
