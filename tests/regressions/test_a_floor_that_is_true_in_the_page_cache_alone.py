"""Symptom: behind a clean exit a queue on the disk lacked its units.

Cause: the queue was harmed, and made anew; the sync of that failed, and its pages counted as clean. The next open read
them from the page cache, found that they are what the derived floor says, and took them for durable. Fix: a derived
floor that is found untrue is forgotten before what it spoke of is made anew.
Found by: perturbed reproducers, with more faults (properties/planted/perturb.py).
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Close, Crash, HarmDerived, Open, Operation, Put
from tornpage.properties.program.case import Settings

LOST = AimFault("sync-lost")


@pytest.mark.parametrize("file", ["queue", "index"])
@pytest.mark.parametrize("harm", ["zeroed", "missing", "torn"])
@pytest.mark.parametrize("end", [(Open(),), (Close(),), (Close(), Crash()), (Crash(),)])
def test_what_was_made_anew_is_durable_behind_a_clean_exit(
    attempt: Attempt, file: str, harm: str, end: tuple[Operation, ...]
) -> None:
    harmed = HarmDerived(file=file, harm=harm)  # type: ignore[arg-type]
    program = (Put(properties="KEYS\x01k"), harmed, LOST, Open(), *end)
    assert attempt(program, Settings(file_bytes=1024)) is None
