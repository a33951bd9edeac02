"""A killed first open is made durable by the second one.

Symptom: records answered as durable were gone after a kill during the first open and a later power loss.
Cause: the store directory had been made and not yet synced into its parent when the process died. The next opener saw
it there and synced nothing, so its name could be lost with all files in it.
Fix: every open syncs all its directories into their parents (impl/io/store_lock.py, make_directories).
Found by: the commit log machine.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.impl.io.files import Files
from tornpage.impl.log import log_directories
from tornpage.impl.recovery import opening
from tornpage.model.operations import Close, Crash, Flush, Open, Operation, Put
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=4096)


def kills_in_the_first_open() -> list[tuple[Operation, ...]]:
    return [(Crash(kill=True, back=back), Put(), Flush(), Close(), Open()) for back in range(1, 40)]


def make_missing_only(files: Files, path: str) -> None:
    """The mistake: existing directories count as durable."""
    if files.stat(path) is None:
        parent = path.rpartition("/")[0] or "/"
        make_missing_only(files, parent)
        files.make_directory(path)
        files.sync_directory(parent)


def test_whatever_the_first_open_had_done_the_second_makes_durable(attempt: Attempt) -> None:
    for operations in kills_in_the_first_open():
        assert attempt(operations, SETTINGS) is None


def test_taking_what_is_there_for_durable_loses_it(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (opening, log_directories):
        monkeypatch.setattr(module, "make_directories", make_missing_only)
    broken = [attempt(operations, SETTINGS) for operations in kills_in_the_first_open()]
    # No disk has the floor that a recovery leaves, which is noticed before the power fails and takes the rest.
    assert {error.contract for error in broken if error is not None} & {2, 6, 7}
