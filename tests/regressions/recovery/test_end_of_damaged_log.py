"""The log of a store that opens read-only ends where its records end.

Symptom: `max_offset` of a read-only store counted files of zeros. It was 49,152 for a log that ended at 4,792.
Cause: recovery took every file as full and set the end only for a log that it could change.
Fix: recovery ends a damaged log after its last valid record, also past the damage, or after the blank of that record.
Found by: crash states of RocketMQ's own writes, judged by our store.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.killed import BODY_BYTES, FILE_BYTES, Killed, MakeKilled, message, numbers
from tests.support.impl.stores import caught_up, open_store, snapshot

RECORDS = 7
"""Three records and a blank in each of two files, and one record in the third file."""


@pytest.fixture
def killed(tmp_path: Path) -> MakeKilled:
    """Return a maker of killed stores with `puts` records, all of them durable."""

    def make(puts: int = RECORDS) -> Killed:
        with open_store(tmp_path / "live") as store:
            results = [store.put(message(number)) for number in range(puts)]
            store.flush()
            caught_up(store)
            shutil.copytree(tmp_path / "live", tmp_path / "killed")
        return Killed(tmp_path / "killed", tuple(results))

    return make


def end_of(found: Killed, number: int) -> int:
    return found.results[number].offset + found.results[number].size_bytes


def _first_record_bad(found: Killed) -> tuple[int, list[int]]:
    found.overwrite(100, b"rot")
    return end_of(found, 6), [1, 2, 3, 4, 5, 6]


def _last_record_bad(found: Killed) -> tuple[int, list[int]]:
    found.overwrite(end_of(found, 6) - BODY_BYTES // 2, b"rot")
    return 2 * FILE_BYTES, [0, 1, 2, 3, 4, 5]


def _middle_file_missing(found: Killed) -> tuple[int, list[int]]:
    found.log(FILE_BYTES).unlink()
    return end_of(found, 6), [0, 1, 2, 6]


def _middle_file_missing_and_zeros(found: Killed) -> tuple[int, list[int]]:
    found.log(FILE_BYTES).unlink()
    found.log(2 * FILE_BYTES).write_bytes(bytes(FILE_BYTES))
    return FILE_BYTES, [0, 1, 2]


def _middle_file_short(found: Killed) -> tuple[int, list[int]]:
    found.log(FILE_BYTES).write_bytes(found.log(FILE_BYTES).read_bytes()[:400])
    return end_of(found, 6), [0, 1, 2, 3, 6]


def _files_of_zeros_follow(found: Killed) -> tuple[int, list[int]]:
    found.overwrite(100, b"rot")
    for base in (3 * FILE_BYTES, 4 * FILE_BYTES):
        found.log(base).write_bytes(bytes(FILE_BYTES))
    return end_of(found, 6), [1, 2, 3, 4, 5, 6]


def _everything_zeros(found: Killed) -> tuple[int, list[int]]:
    for base in (0, FILE_BYTES, 2 * FILE_BYTES):
        found.log(base).write_bytes(bytes(FILE_BYTES))
    return 0, []


@pytest.mark.parametrize(
    "harm",
    [
        _first_record_bad,
        _last_record_bad,
        _middle_file_missing,
        _middle_file_missing_and_zeros,
        _middle_file_short,
        _files_of_zeros_follow,
        _everything_zeros,
    ],
)
def test_the_log_ends_after_its_last_valid_record(
    killed: MakeKilled, harm: Callable[[Killed], tuple[int, list[int]]]
) -> None:
    found = killed()
    end, kept = harm(found)
    before = snapshot(found.directory)
    with open_store(found.directory) as store:
        assert store.read_only_reason is not None
        assert (store.max_offset, store.committed_offset) == (end, end)
        assert store.min_offset <= store.flushed_offset <= end
        assert numbers(store) == kept
    assert snapshot(found.directory) == before
