"""Symptom: a store that lost its last log file after a clean exit opened for writing.

The queues were cut to the shorter log and offsets were given a second time. Zeros up to the border of a record did the
same.
Cause: without a durable floor nothing said how long the log had been.
Fix: after a clean exit every queue unit points into the log, and the last record is as new as the checkpoint says, less
three seconds. Otherwise records are missing: damage, and the store changes nothing.
"""

import shutil
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import bodies, change, config, forget_our_files, put
from tests.support.impl.killed import codes
from tests.support.impl.stores import SetClock, open_store, snapshot

FILE_BYTES = 1024


def closed(directory: Path, *, step_ms: int = 1) -> list[int]:
    """Write twenty messages over several log files and close; return their physical offsets."""
    clock = SetClock(1_700_000_000_000)
    with open_store(directory, config=config(file_bytes=FILE_BYTES), clock=clock) as store:
        offsets = []
        for number in range(20):
            clock.now_ms += step_ms
            offsets.append(put(store, number).offset)
    forget_our_files(directory)
    return offsets


def assert_missing(directory: Path) -> list[bytes]:
    """Open a store twice that has to be read-only, and return what it serves."""
    before = snapshot(directory)
    served: list[bytes] = []
    for _ in range(2):
        with open_store(directory, config=config(file_bytes=FILE_BYTES), clock=SetClock(1_800_000_000_000)) as store:
            assert store.read_only_reason is not None
            assert codes(store)[0] == ("damage", "missing_records")
            served = bodies(store)
        assert snapshot(directory) == before
    return served


@pytest.mark.parametrize("files", [1, 2, 3])
def test_lost_last_files(files: int, tmp_path: Path) -> None:
    offsets = closed(tmp_path)
    for path in sorted((tmp_path / "commitlog").iterdir())[-files:]:
        path.unlink()
    end = len(list((tmp_path / "commitlog").iterdir())) * FILE_BYTES
    assert assert_missing(tmp_path) == [f"{n:03d}".encode() for n, offset in enumerate(offsets) if offset < end]


@pytest.mark.parametrize("kept", [0, 10, 19])
def test_zeros_up_to_the_border_of_a_record(kept: int, tmp_path: Path) -> None:
    offsets = closed(tmp_path)
    for base in range(offsets[kept] // FILE_BYTES * FILE_BYTES, offsets[-1] + 1, FILE_BYTES):
        start = max(base, offsets[kept])
        change(tmp_path, start, bytes(base + FILE_BYTES - start), file_bytes=FILE_BYTES)
    assert assert_missing(tmp_path) == [f"{number:03d}".encode() for number in range(kept)]


def test_the_checkpoint_alone(tmp_path: Path) -> None:
    offsets = closed(tmp_path, step_ms=2_000)
    shutil.rmtree(tmp_path / "consumequeue")
    change(tmp_path, offsets[-3], bytes(FILE_BYTES - offsets[-3] % FILE_BYTES), file_bytes=FILE_BYTES)
    assert_missing(tmp_path)


def test_a_whole_log_is_opened_for_writing(tmp_path: Path) -> None:
    closed(tmp_path)
    shutil.rmtree(tmp_path / "consumequeue")
    with open_store(tmp_path, config=config(file_bytes=FILE_BYTES)) as store:
        assert store.read_only_reason is None
        assert len(bodies(store)) == 20


def test_a_checkpoint_of_the_future_is_damaged_itself(tmp_path: Path) -> None:
    closed(tmp_path)
    with open(tmp_path / "checkpoint", "r+b") as file:
        file.write((1 << 62).to_bytes(8, "big"))
    with open_store(tmp_path, config=config(file_bytes=FILE_BYTES), clock=SetClock(1_800_000_000_000)) as store:
        assert store.read_only_reason is None
        assert len(bodies(store)) == 20


def test_a_damaged_last_unit_misses_no_record(tmp_path: Path) -> None:
    closed(tmp_path)
    queue_file = max((tmp_path / "consumequeue" / "T" / "0").iterdir())
    with open(queue_file, "r+b") as file:
        file.seek(20 * (19 - int(queue_file.name) // 20))
        file.write((1 << 40).to_bytes(8, "big"))
    with open_store(tmp_path, config=config(file_bytes=FILE_BYTES), clock=SetClock(1_800_000_000_000)) as store:
        assert store.read_only_reason is None
        assert len(bodies(store)) == 20
