"""A durable floor in a file of another size is rewritten.

Symptom: a store used a durable floor that no other reader could read; `judge` and `audit` called it unreadable.
Cause: the file had been made longer. An open read only the first sector, trusted it, and wrote its own floor there. The
format says that a floor of another size than one sector counts as absent.
Fix: the size is checked, and a longer file is rewritten.
Found by: the judge of small files (`small_files_are_whole`), `check --machine queue`.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.model.operations import HarmDerived, Put
from tornpage.properties.program.case import Settings

OPERATIONS = (Put(), HarmDerived(file="floor", harm="resized", amount=938), Put())
SETTINGS = Settings(file_bytes=1024)


def _write_into(floor: DurableFloor, offset: int) -> None:
    """Write the floor to the begin of any existing file."""
    there = floor._files.stat(floor._path) is not None
    floor._file = floor._files.open(floor._path, writable=True) if there else floor._files.create(floor._path)
    floor._offset = -1
    floor.raise_to(offset)
    floor.sync()
    floor._files.sync_directory(floor._path.rpartition("/")[0])


def test_a_longer_file_is_made_anew(attempt: Attempt) -> None:
    assert attempt(OPERATIONS, SETTINGS) is None


def test_one_that_stays_as_long_is_noticed(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DurableFloor, "start", _write_into)
    broken = attempt(OPERATIONS, SETTINGS)
    assert broken is not None
    assert broken.contract == 13
