"""Test damage: it becomes a named finding and a read-only store (contract 7).

Left-over files and other sizes are named too.
"""

import shutil
from pathlib import Path

import pytest

from tests.support.impl.killed import (
    FILE_BYTES,
    Killed,
    MakeKilled,
    message,
    numbers,
)
from tests.support.impl.stores import chain_of, open_store, snapshot
from tornpage.impl.errors import StoreError, WrongFileSize
from tornpage.impl.log.loading import Finding
from tornpage.impl.message.message import GetStatus, PutResult, PutStatus

# ---- damage -------------------------------------------------------------------------------------------------------


def assert_read_only(found: Killed, *, served: list[int], code: str, offset: int) -> Finding:
    """Open a damaged store twice.

    It changes nothing, serves what verifies and refuses the rest.
    """
    before = snapshot(found.directory)
    damages = []
    for _ in range(2):
        with open_store(found.directory) as store:
            assert store.read_only_reason is not None
            assert "\n" not in store.read_only_reason
            assert store.put(message(900)) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
            assert not store.flush().durable
            damages = [finding for finding in store.findings if finding.severity == "damage"]
            assert (damages[0].code, damages[0].offset) == (code, offset)
            assert store.read_only_reason == damages[0].message
            assert damages[0].file in damages[0].message
            assert numbers(store) == served
        assert snapshot(found.directory) == before
    return damages[0]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("bad", [0, 2, 3, 6])
def test_damage_below_the_floor_is_read_only(killed: MakeKilled, bad: int, clean: bool) -> None:
    found = killed(8, flushed=7)
    if clean:
        found.exit_cleanly()
    found.overwrite(found.results[bad].offset + 90, b"rot")
    served = [number for number in range(8) if number != bad]
    finding = assert_read_only(found, served=served, code="damaged_record", offset=found.results[bad].offset)
    assert finding.file == str(found.log(found.results[bad].offset // FILE_BYTES * FILE_BYTES))


def test_damaged_record_is_not_served(killed: MakeKilled) -> None:
    found = killed(3, flushed=3)
    found.overwrite(found.results[1].offset + 90, b"rot")
    with open_store(found.directory) as store:
        assert store.get(found.results[0].offset).status is GetStatus.FOUND
        assert store.get(found.results[1].offset).status is GetStatus.OFFSET_FOUND_NULL
        assert store.get(found.results[2].offset).status is GetStatus.FOUND


@pytest.mark.parametrize("floor", [True, False])
def test_bytes_at_the_end_after_a_clean_exit_are_damage(killed: MakeKilled, floor: bool) -> None:
    found = killed(5, flushed=5)
    found.exit_cleanly()
    if not floor:
        found.forget_floor()
    end = found.results[-1].offset + found.results[-1].size_bytes
    found.overwrite(end + 7, b"rot")
    assert_read_only(found, served=[0, 1, 2, 3, 4], code="damaged_record", offset=end)


@pytest.mark.parametrize("floor", [True, False])
def test_bytes_after_zeros_at_the_end_are_left_of_an_earlier_crash(killed: MakeKilled, floor: bool) -> None:
    """A recovery of RocketMQ does not erase them.

    The audit called them a note, and the store damage.
    """
    found = killed(5, flushed=5)
    found.exit_cleanly()
    if not floor:
        found.forget_floor()
    end = found.results[-1].offset + found.results[-1].size_bytes
    found.overwrite(end + 17, b"rot")
    with open_store(found.directory) as store:
        assert store.read_only_reason is None
        found_bytes = [(each.severity, each.code, each.offset) for each in store.findings]
        assert found_bytes == [("note", "left_over_bytes", end)]
        assert [store.get(each.offset).status for each in found.results] == 5 * [GetStatus.FOUND]
    with open_store(found.directory) as store:
        assert store.findings == ()


@pytest.mark.parametrize("is_clean", [True, False])
def test_two_log_files_that_change_their_names_are_damage(killed: MakeKilled, is_clean: bool) -> None:
    """No crash moves the records of a file.

    A store killed without a floor once cut the log there.
    """
    found = killed(12)
    if is_clean:
        found.exit_cleanly()
    found.forget_floor()
    names = sorted((found.directory / "commitlog").iterdir())
    assert len(names) > 2
    first, second = names[1].read_bytes(), names[2].read_bytes()
    names[1].write_bytes(second)
    names[2].write_bytes(first)
    with open_store(found.directory) as store:
        damages = [finding for finding in store.findings if finding.severity == "damage"]
        assert [(each.code, each.file) for each in damages] == [("misnamed_file", str(names[1]))]
        assert store.read_only_reason is not None


def test_damage_after_a_clean_exit_without_a_floor(killed: MakeKilled) -> None:
    found = killed(5)
    found.exit_cleanly()
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"rot")
    assert_read_only(found, served=[0, 2, 3, 4], code="damaged_record", offset=found.results[1].offset)


def test_zeros_below_the_floor_are_damage(killed: MakeKilled) -> None:
    found = killed(2, flushed=2)
    found.overwrite(0, bytes(FILE_BYTES))
    assert_read_only(found, served=[], code="damaged_record", offset=0)


def test_gap_is_damage_and_what_lies_behind_it_is_served(killed: MakeKilled) -> None:
    found = killed(12)
    found.log(1024).unlink()
    finding = assert_read_only(found, served=[0, 1, 2, *range(6, 12)], code="missing_file", offset=1024)
    assert str(found.log(1024)) in finding.message


def test_missing_last_file_below_the_floor_is_damage(killed: MakeKilled) -> None:
    found = killed(7, flushed=7)
    found.log(2048).unlink()
    assert_read_only(found, served=[0, 1, 2, 3, 4, 5], code="missing_file", offset=2048)


def test_all_files_missing_below_the_floor_is_damage(killed: MakeKilled) -> None:
    found = killed(7, flushed=7)
    shutil.rmtree(found.directory / "commitlog")
    assert_read_only(found, served=[], code="missing_file", offset=0)


@pytest.mark.parametrize(("base", "size_bytes"), [(2048, 500), (0, 300), (1024, 1023)])
def test_short_file_is_damage(killed: MakeKilled, base: int, size_bytes: int) -> None:
    found = killed(9)
    with open(found.log(base), "r+b") as file:
        file.truncate(size_bytes)
    lost = [n for n, put in enumerate(found.results) if base + size_bytes < put.offset + put.size_bytes + 8 and
            put.offset < base + FILE_BYTES]  # fmt: skip
    served = [number for number in range(9) if number not in lost]
    finding = assert_read_only(found, served=served, code="short_file", offset=base + size_bytes)
    assert f"{size_bytes} bytes instead of {FILE_BYTES}" in finding.message


def test_empty_file_below_the_floor_is_damage(killed: MakeKilled) -> None:
    found = killed(7, flushed=7)
    found.log(2048).write_bytes(b"")
    assert_read_only(found, served=[0, 1, 2, 3, 4, 5], code="short_file", offset=2048)


# ---- leftovers ----------------------------------------------------------------------------------------------------


def test_empty_newest_file_is_removed(killed: MakeKilled) -> None:
    found = killed(3, flushed=3)
    found.log(1024).touch()
    with open_store(found.directory) as store:
        assert store.findings == ()
        assert not found.log(1024).exists()
        assert numbers(store) == [0, 1, 2]
        assert store.put(message(3)).offset == 1024


def test_empty_only_file_is_removed(killed: MakeKilled) -> None:
    found = killed(0)
    found.log(0).touch()
    with open_store(found.directory) as store:
        assert store.put(message(0)).offset == 0
        assert numbers(store) == [0]


@pytest.mark.parametrize("name", ["notes.txt", "0", "x" * 20, "٠" * 20, "00000000000000001024.bak"])
@pytest.mark.parametrize("directory", [True, False])
def test_stray_entry_is_ignored_with_a_finding(killed: MakeKilled, name: str, directory: bool) -> None:
    found = killed(2, flushed=2)
    stray = found.directory / "commitlog" / name
    if directory:
        stray.mkdir()
    else:
        stray.write_bytes(b"mine")
    with open_store(found.directory) as store:
        assert store.findings == (
            Finding("note", "stray_file", str(stray), -1, f"{stray} is not a commit log file: ignored"),
        )
        assert store.read_only_reason is None
        assert store.put(message(2)).stored
        assert numbers(store) == [0, 1, 2]
    assert stray.is_dir() if directory else stray.read_bytes() == b"mine"


@pytest.mark.parametrize("left", ["abort", "config", "commitlog", "checkpoint", "lock"])
def test_an_open_that_was_broken_off_is_no_obstacle(tmp_path: Path, left: str) -> None:
    if "." in left or left in ("config", "commitlog"):
        (tmp_path / left).mkdir()
    else:
        (tmp_path / left).touch()
    with open_store(tmp_path) as store:
        assert store.findings == ()
        assert store.put(message(0)).stored
    with open_store(tmp_path) as store:
        assert numbers(store) == [0]


@pytest.mark.parametrize("data", [b"", b"\0" * 10, b"\xff" * 4096, b"\0" * 4096])
def test_a_bad_checkpoint_is_no_obstacle(killed: MakeKilled, data: bytes) -> None:
    found = killed(5)
    (found.directory / "checkpoint").write_bytes(data)
    with open_store(found.directory) as store:
        assert numbers(store) == [0, 1, 2, 3, 4]
        assert store.put(message(5)).stored


# ---- another file size --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [True, False])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("file_bytes", [512, 2048, 1 << 20])
def test_other_file_size_is_refused_naming_both(killed: MakeKilled, floor: bool, clean: bool, file_bytes: int) -> None:
    found = killed(7, flushed=7)
    if not floor:
        found.forget_floor()
    if clean:
        found.exit_cleanly()
    before = snapshot(found.directory)
    with pytest.raises(WrongFileSize) as refused:
        open_store(found.directory, file_bytes=file_bytes)
    text = chain_of(refused.value)
    assert "1024" in text
    assert str(file_bytes) in text
    assert str(found.directory) in text
    assert (refused.value.found_bytes, refused.value.configured_bytes) == (1024, file_bytes)
    assert isinstance(refused.value, StoreError)
    assert snapshot(found.directory) == before
    open_store(found.directory).close()


def test_damaged_log_of_a_closed_store_ends_where_its_records_end(tmp_path: Path) -> None:
    """The derived floor proves nothing once the log is damaged.

    A read-only store once ended at that floor, past its last record.
    """
    with open_store(tmp_path) as store:
        results = [store.put(message(number)) for number in range(8)]
    names = sorted((tmp_path / "commitlog").iterdir())
    names[-1].write_bytes(names[-2].read_bytes())
    with open_store(tmp_path) as store:
        assert store.read_only_reason is not None
        assert numbers(store) == [number for number, put in enumerate(results) if put.offset < int(names[-1].name)]
        assert store.max_offset == int(names[-1].name)
