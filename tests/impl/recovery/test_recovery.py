"""Test recovery: any directory becomes a prefix of the appended log (contracts 1-3, 6)."""

import shutil
from itertools import count
from pathlib import Path

import pytest

from tests.support.impl.killed import (
    FILE_BYTES,
    MakeKilled,
    assert_zeros_behind_the_end,
    codes,
    message,
    numbers,
)
from tests.support.impl.stores import FaultyFiles, chain_of, log_bytes, open_store
from tornpage.impl.errors import BadDirectory
from tornpage.impl.message.message import GetStatus

# ---- no damage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("puts", [0, 1, 3, 4, 10])
@pytest.mark.parametrize("trailer", [True, False])
def test_killed_store_keeps_everything(killed: MakeKilled, puts: int, trailer: bool) -> None:
    found = killed(puts, trailer=trailer)
    before = log_bytes(found.directory)
    with open_store(found.directory, trailer=trailer) as store:
        assert numbers(store) == list(range(puts))
        assert store.findings == ()
        assert store.flushed_offset == store.max_offset
        assert log_bytes(found.directory) == before
        store.check()


def test_what_is_recovered_is_made_durable_before_the_first_put(killed: MakeKilled) -> None:
    found = killed(7, flushed=3)
    files = FaultyFiles()
    with open_store(found.directory, files=files):
        synced = [path for verb, path in files.calls if verb == "sync" and "/commitlog/" in path]
        assert synced == [str(found.log(base)) for base in (0, 1024, 2048)]


def test_files_below_the_floor_need_no_second_sync(killed: MakeKilled) -> None:
    found = killed(7, flushed=7)
    files = FaultyFiles()
    with open_store(found.directory, files=files):
        synced = [path for verb, path in files.calls if verb == "sync" and "/commitlog/" in path]
        assert synced == [str(found.log(2048))]


def test_queue_offsets_go_on_where_they_were(killed: MakeKilled) -> None:
    found = killed(5)
    with open_store(found.directory) as store:
        assert store.put(message(5)).queue_offset == 5
        assert store.put(message(6, queue_id=1)).queue_offset == 0
    with open_store(found.directory) as store:
        assert store.put(message(7)).queue_offset == 6
        assert store.put(message(8, queue_id=1)).queue_offset == 1


def test_a_closed_file_stays_closed_though_its_follower_is_lost(killed: MakeKilled) -> None:
    """The blank survived and the file after it did not: the next record begins a new file."""
    found = killed(4)
    found.log(1024).unlink()
    with open_store(found.directory) as store:
        assert numbers(store) == [0, 1, 2]
        assert store.max_offset == 1024
        assert codes(store) == []
        assert store.put(message(3)).offset == 1024
    with open_store(found.directory) as store:
        assert numbers(store) == [0, 1, 2, 3]


def test_a_file_made_ahead_of_need_goes(killed: MakeKilled) -> None:
    found = killed(2)
    found.log(1024).write_bytes(bytes(FILE_BYTES))
    with open_store(found.directory) as store:
        assert store.findings == ()
        assert store.put(message(2)).stored
        assert store.put(message(3)).offset == 1024
        assert numbers(store) == [0, 1, 2, 3]


def test_a_log_that_begins_later_keeps_its_offsets(killed: MakeKilled) -> None:
    found = killed(7, flushed=7)
    found.log(0).unlink()
    with open_store(found.directory) as store:
        assert store.min_offset == 1024
        assert numbers(store) == [3, 4, 5, 6]
        assert store.get(0).status is GetStatus.OFFSET_TOO_SMALL
        assert store.put(message(7)).queue_offset == 7
        store.check()


# ---- tears --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 4, 30, 100, 250])
@pytest.mark.parametrize("torn", range(7))
def test_torn_record_is_cut_and_erased(killed: MakeKilled, torn: int, at: int) -> None:
    found = killed(7)
    found.overwrite(found.results[torn].offset + at, b"\0" * 30 if at != 100 else b"\xff" * 30)
    with open_store(found.directory) as store:
        assert numbers(store) == list(range(torn))
        assert codes(store) == [("tear", "torn_tail")]
        finding = store.findings[0]
        assert finding.offset == (0 if torn == 0 else found.results[torn].offset)
        assert str(finding.offset) in finding.message
        assert "\n" not in finding.message
        assert_zeros_behind_the_end(found.directory, store)
        assert store.flushed_offset == store.max_offset
        assert store.put(message(500)).queue_offset == torn
    with open_store(found.directory) as store:
        assert numbers(store) == [*range(torn), 500]
        assert store.findings == ()


def test_erased_bytes_and_removed_files_are_durable_before_a_put(killed: MakeKilled) -> None:
    found = killed(7)
    found.overwrite(found.results[1].offset, bytes(300))
    files = FaultyFiles()
    with open_store(found.directory, files=files):
        steps = [
            (verb, Path(path).name) for verb, path in files.calls if "/commitlog" in path and verb[:3] in
            ("unl", "syn", "pwr")
        ]  # fmt: skip
    steps = steps[[verb for verb, _ in steps].index("unlink") :]
    assert steps == [
        ("unlink", "00000000000000002048"),
        ("sync_directory", "commitlog"),
        ("unlink", "00000000000000001024"),
        ("sync_directory", "commitlog"),
        ("pwrite", "00000000000000000000"),  # the erasure
        ("pwrite", "00000000000000000000"),  # bytes kept above the floor: an earlier sync may have failed
        ("sync", "00000000000000000000"),
    ]


def test_cut_records_never_come_back(killed: MakeKilled) -> None:
    """Old records past the cut would be met by appended records of equal size (contract 3)."""
    found = killed(7)
    found.overwrite(found.results[1].offset, bytes(100))
    expected = [0]
    for generation in range(4):
        with open_store(found.directory) as store:
            assert numbers(store) == expected
            store.put(message(900 + generation))
            expected.append(900 + generation)


def test_tear_at_the_floor_is_a_tear_and_one_below_is_damage(killed: MakeKilled) -> None:
    found = killed(6, flushed=4)
    found.overwrite(found.results[4].offset + 90, b"torn")
    with open_store(found.directory) as store:
        assert codes(store) == [("tear", "torn_tail")]
        assert numbers(store) == [0, 1, 2, 3]


@pytest.mark.parametrize("verb", ["pwrite", "sync", "sync_directory", "unlink"])
@pytest.mark.parametrize("floor", [True, False])
def test_recovery_that_is_broken_off_leads_to_the_same_cut(
    killed: MakeKilled, verb: str, floor: bool, tmp_path: Path
) -> None:
    found = killed(10)
    found.overwrite(found.results[1].offset + 90, b"torn")
    if not floor:
        found.forget_floor()
    whole = tmp_path / "whole"
    shutil.copytree(found.directory, whole)
    with open_store(whole) as store:
        expected = log_bytes(whole)
        assert numbers(store) == [0]
    for skip in count():
        attempt = tmp_path / f"attempt{skip}"
        shutil.copytree(found.directory, attempt)
        files = FaultyFiles()
        files.fail(verb, skip=skip)
        try:
            open_store(attempt, files=files).close()
            break
        except BadDirectory as error:
            refused = chain_of(error)
        assert "mend the disk" in refused
        with open_store(attempt) as store:
            assert numbers(store) == [0]
            assert log_bytes(attempt) == expected
            assert store.read_only_reason is None
    assert skip > 0


def test_recovering_twice_is_recovering_once(killed: MakeKilled) -> None:
    found = killed(7, flushed=2)
    found.overwrite(found.results[4].offset + 90, b"torn")
    open_store(found.directory).close()
    once = log_bytes(found.directory)
    (found.directory / "abort").touch()
    with open_store(found.directory) as store:
        assert store.findings == ()
    assert log_bytes(found.directory) == once
