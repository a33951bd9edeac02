"""Test the checkpoint file: its bytes both ways, and a missing or damaged file."""

import json
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, SetClock, open_store
from tornpage.impl.io.checkpoint import CHECKPOINT_BYTES, Checkpoint

VECTOR = next(
    vector
    for vector in json.loads((Path(__file__).parents[2] / "data" / "vectors.json").read_text(encoding="utf-8"))
    if vector["name"] == "V11"
)
BYTES = bytes.fromhex(VECTOR["hex"]).ljust(4096, b"\0")


def times(checkpoint: Checkpoint) -> tuple[int, int, int]:
    return checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp


def test_vector_v11_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    files = FaultyFiles()
    checkpoint = Checkpoint(files, str(path))
    checkpoint.load()
    assert times(checkpoint) == (0, 0, 0)
    checkpoint.start()
    checkpoint.physic_msg_timestamp = VECTOR["physicTimestamp"]
    checkpoint.logics_msg_timestamp = VECTOR["logicsTimestamp"]
    checkpoint.index_msg_timestamp = VECTOR["indexTimestamp"]
    checkpoint.flush()
    checkpoint.close()
    checkpoint.close()
    assert path.read_bytes() == BYTES
    assert files.calls[-2:] == [("pwrite", str(path)), ("sync", str(path))]
    again = Checkpoint(files, str(path))
    again.load()
    assert times(again) == times(checkpoint)


@pytest.mark.parametrize("size_bytes", [0, 1, 23])
def test_short_file_reads_as_zeros_and_is_made_whole(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(BYTES[:size_bytes])
    checkpoint = Checkpoint(FaultyFiles(), str(path))
    checkpoint.load()
    assert times(checkpoint) == (0, 0, 0)
    checkpoint.start()
    checkpoint.close()
    assert path.stat().st_size == CHECKPOINT_BYTES


def test_start_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(BYTES[:100])
    checkpoint = Checkpoint(FaultyFiles(), str(path))
    checkpoint.load()
    checkpoint.start()
    checkpoint.close()
    assert times(checkpoint) == (VECTOR["physicTimestamp"], VECTOR["logicsTimestamp"], VECTOR["indexTimestamp"])
    assert path.read_bytes() == BYTES


def test_store_notes_the_time_of_what_a_flush_covered(tmp_path: Path) -> None:
    clock = SetClock(1000)
    store = open_store(tmp_path, clock=clock)
    store.put(MESSAGE)
    store.flush()
    clock.now_ms = 2000
    store.put(MESSAGE)
    clock.now_ms = 500  # the clock went back, and the checkpoint does not
    store.put(MESSAGE)
    store.close()
    checkpoint = Checkpoint(FaultyFiles(), str(tmp_path / "checkpoint"))
    checkpoint.load()
    assert checkpoint.physic_msg_timestamp in (1000, 2000)
    assert checkpoint.logics_msg_timestamp == checkpoint.index_msg_timestamp == 2000


def test_store_does_not_note_what_no_flush_covered(tmp_path: Path) -> None:
    files = FaultyFiles()
    store = open_store(tmp_path, files=files)
    store.put(MESSAGE)
    files.fail("sync", part="/commitlog/")
    store.close()
    assert (tmp_path / "checkpoint").read_bytes() == bytes(4096)


def test_nothing_new_is_said_of_an_index_that_is_not_kept(tmp_path: Path) -> None:
    checkpoint = Checkpoint(FaultyFiles(), str(tmp_path / "checkpoint"), keeps_index=False)
    checkpoint.note_dispatched(2000)
    assert times(checkpoint)[1:] == (2000, 0)
    checkpoint.index_msg_timestamp = 1500  # of a time when it was
    checkpoint.note_dispatched(3000)
    assert checkpoint.index_msg_timestamp == 1500
    checkpoint.note_dispatched(0)
    assert checkpoint.index_msg_timestamp == 0
