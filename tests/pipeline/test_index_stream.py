"""Test following the index: every entry once, by the number that the header counts."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.retained import NIGHT_MS, Retained, names_in
from tests.support.impl.stores import MESSAGE, config_of
from tests.support.pipeline.following import Following, batch_rows, ordered
from tests.support.pipeline.handmade import overwrite
from tests.support.properties.handmade import golden_dirs
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.pipeline.readers.asking import ReaderError

INDEX = "rocketmq-index"
SLOTS = 16


def config(entries: int) -> MessageStoreConfig:
    return replace(config_of(), time_zone="UTC", max_hash_slot_num=SLOTS, max_index_num=entries + 1)


def put(kept: Retained, count: int) -> list[int]:
    offsets = [kept.put(1, replace(MESSAGE, properties={"KEYS": f"k{number}"}))[0] for number in range(count)]
    kept.settle()
    return offsets


def index_file(directory: Path, name: str, entries: int, *, slots: int = SLOTS, room: int = 8) -> Path:
    """Write a file whose header counts entries that are in no slot."""
    path = directory / "index" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = b"".join(struct.pack(">iqii", 7, 100 * number, 0, 0) for number in range(1, entries + 1))
    header = struct.pack(">qqqqii", 1, 2, 100, 100 * entries, 1, entries + 1 if entries else 0)
    path.write_bytes(header + bytes(4 * slots + 20) + stored.ljust(20 * room, b"\0"))
    return path


@pytest.mark.parametrize("limit", [None, 1, 40])
@pytest.mark.parametrize("options", [{}, {"slots": str(SLOTS)}])
def test_a_store_at_work_is_followed_over_new_files(tmp_path: Path, limit: int | None, options: dict[str, str]) -> None:
    kept = Retained(tmp_path / "store", config(5))
    with kept.store:
        following = Following(INDEX, tmp_path / "store", **options)
        wanted = []
        for count in (1, 3, 0, 2, 11, 1):
            wanted += put(kept, count)
            following.look(bytes_max=limit)
            following.restart()
        following.catch_up(bytes_max=limit)
        assert len(names_in(tmp_path / "store/index")) == 4
    following.catch_up(bytes_max=limit)
    assert following.column("offset") == wanted[: len(following.rows)]
    assert len(wanted) - len(following.rows) <= (
        0 if options else 3
    )  # a file of few entries may hide its number of slots
    assert following.problems == []


def test_streams_of_golden_stores_give_the_rows_of_a_batch(tmp_path: Path) -> None:
    found = 0
    for case in golden_dirs():
        following = Following(INDEX, case / "store", columns="*")
        following.catch_up(bytes_max=200)
        assert ordered(following.rows) == ordered(batch_rows(INDEX, case / "store", columns="*"))
        found += len(following.rows)
    assert found


def test_entries_that_the_header_does_not_count_wait(tmp_path: Path) -> None:
    path = index_file(tmp_path, "20260101000000000", 3)
    overwrite(path, 36, struct.pack(">i", 3))
    following = Following(INDEX, tmp_path, slots=str(SLOTS))
    following.catch_up()
    assert following.column("number") == [1, 2]
    overwrite(path, 36, struct.pack(">i", 4))
    following.catch_up()
    assert following.column("number") == [1, 2, 3]


def test_a_header_that_counts_more_than_there_is_room_for_fails_nothing(tmp_path: Path) -> None:
    path = index_file(tmp_path, "20260101000000000", 3)
    following = Following(INDEX, tmp_path, slots=str(SLOTS))
    following.catch_up()
    overwrite(path, 36, struct.pack(">i", 2**31 - 1))
    following.catch_up()
    assert (following.column("number"), following.problems) == (list(range(1, 9)), [])
    overwrite(path, 36, struct.pack(">i", -5))
    assert not following.look()


def test_a_file_that_was_cut_goes_on_behind_the_offset(tmp_path: Path) -> None:
    path = index_file(tmp_path, "20260101000000000", 5)
    following = Following(INDEX, tmp_path, slots=str(SLOTS))
    following.catch_up()
    for entries in (2, 5, 7):
        path = index_file(tmp_path, path.name, entries)
        following.catch_up()
    assert following.column("number") == list(range(1, 8))


def test_a_run_that_is_to_end_reads_what_was_there_when_it_began(tmp_path: Path) -> None:
    index_file(tmp_path, "20260101000000000", 3)
    following = Following(INDEX, tmp_path, slots=str(SLOTS))
    following.stream.prepareForTriggerAvailableNow()
    index_file(tmp_path, "20260101000000000", 8)
    index_file(tmp_path, "20260101000000001", 2)
    following.catch_up(bytes_max=40)
    assert following.column("number") == [1, 2, 3]
    following.restart()
    following.catch_up()
    assert following.column("number") == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]


def test_a_file_whose_slots_cannot_be_told_is_a_problem_once_it_is_over(tmp_path: Path) -> None:
    index_file(tmp_path, "20260101000000000", 3)
    following = Following(INDEX, tmp_path, slots="1000")  # no room for them
    following.catch_up()
    assert following.offset == {str(tmp_path): {}}
    index_file(tmp_path, "20260101000000001", 0)
    following.catch_up()
    assert following.problems == [("index/20260101000000000", "IX_SLOTS_UNKNOWN", 60)]
    assert following.rows == []


def test_a_file_that_is_deleted_before_it_was_read_to_its_end_is_told(tmp_path: Path) -> None:
    first = index_file(tmp_path, "20260101000000000", 8)
    second = index_file(tmp_path, "20260101000000001", 3)
    following = Following(INDEX, tmp_path, slots=str(SLOTS))
    following.catch_up()
    first.unlink()
    second.unlink()
    index_file(tmp_path, "20260101000000002", 1)
    following.catch_up()
    assert following.column("number") == [*range(1, 9), 1, 2, 3, 1]
    assert following.problems == [("index/20260101000000001", "IX_CUT", 5 * 20)]
    start, end = ({str(tmp_path): {"20260101000000000": [count, SLOTS, 8]}} for count in (2, 8))
    [problem] = following.between(following._problems, start, end)
    assert (problem["file"], problem["code"]) == ("index/20260101000000000", "READ_GONE")


def test_a_file_that_was_cut_off_before_it_was_read_is_told(tmp_path: Path) -> None:
    path = index_file(tmp_path, "20260101000000000", 8)
    following = Following(INDEX, tmp_path, slots=str(SLOTS))
    start, end = ({str(tmp_path): {path.name: [count, SLOTS, 8]}} for count in (2, 8))
    path.write_bytes(path.read_bytes()[:-50])
    assert [row["number"] for row in following.between(following._ask, start, end)] == [3, 4, 5]
    [problem] = following.between(following._problems, start, end)
    assert (problem["code"], problem["size"]) == ("IX_CUT", 60)


def test_a_directory_that_may_not_be_listed_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index_file(tmp_path, "20260101000000000", 3)
    following = Following(INDEX, tmp_path, slots=str(SLOTS))
    following.catch_up()
    before = following.offset

    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", refused)
        assert not following.look()
    assert following.offset == before


def test_expired_files_of_a_store_at_work_leave_the_offset(tmp_path: Path) -> None:
    kept = Retained(tmp_path / "store", config(2))
    with kept.store:
        following = Following(INDEX, tmp_path / "store", slots=str(SLOTS))
        put(kept, 13)
        following.catch_up()
        kept.clean(at_ms=NIGHT_MS + 3 * 24 * 3_600_000)
        following.catch_up()
        assert list(following.offset[str(tmp_path / "store")]) == names_in(tmp_path / "store/index")
        assert (len(following.rows), following.problems) == (13, [])


def test_headers_are_read_as_a_batch_only(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match="the table headers is read as a batch only; follow rows or problems"):
        Following(INDEX, tmp_path, table="headers")
