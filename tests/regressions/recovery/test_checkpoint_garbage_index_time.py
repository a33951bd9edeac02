"""A corrupt index time in the checkpoint does not stay.

Symptom: a checkpoint kept a time of the index from before 1970 forever, in a store that keeps no index.
Cause: without an index the checkpoint took the older of two times, and the corrupt one was older than any.
Fix: a time below 0 counts as 0 (impl/io/checkpoint.py, `note_dispatched`).
Found by: the queue machine, `tornpage check --machine queue --examples 60 --seed 1`.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import FaultyFiles
from tests.support.regressions import Attempt
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.model.operations import Close, HarmDerived, Put
from tornpage.properties.program.case import Settings

OPERATIONS = (
    Put(properties="TAGS\x01TagZZZ"),
    HarmDerived("checkpoint", "misdirected", 11),
    HarmDerived("checkpoint", "resized"),
    Close(),
)
SETTINGS = Settings(file_bytes=1024, disk="journal", index=False)


def test_it_says_nothing_after_an_open(attempt: Attempt) -> None:
    assert attempt(OPERATIONS, SETTINGS) is None


@pytest.mark.parametrize("found", [-7719685019949596672, -1])
def test_no_time_says_less_than_nothing(tmp_path: Path, found: int) -> None:
    checkpoint = Checkpoint(FaultyFiles(), str(tmp_path / "checkpoint"), keeps_index=False)
    checkpoint.index_msg_timestamp = found
    checkpoint.note_dispatched(2000)
    assert (checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp) == (2000, 0)
