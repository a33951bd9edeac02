"""Test following queues: every unit once, none half written, and losses reported."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.impl.retained import NIGHT_MS, Retained
from tests.support.impl.stores import config_of
from tests.support.pipeline.following import Following, batch_rows, ordered
from tests.support.pipeline.handmade import copied, overwrite
from tests.support.properties.handmade import golden_dirs
from tornpage.pipeline.readers import queue_stream
from tornpage.pipeline.readers.queue_stream import WINDOW_BYTES
from tornpage.properties.decode.consumequeue import UNIT_BYTES

QUEUES = "rocketmq-consumequeue"
FILE_BYTES = 100
FILES_OF_FIVE = replace(config_of(), time_zone="UTC", mapped_file_size_consume_queue=FILE_BYTES)


def unit(number: int) -> bytes:
    return struct.pack(">qiq", 1000 * number, 100 + number, number)


class Queue:
    """A queue of files of five units, written as a reader may see it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)

    def show(self, content: bytes, *, topic: str = "T", first: int = 0, file_bytes: int = FILE_BYTES) -> Path:
        """Write the files with this content; `first` is the byte of the queue at which it begins."""
        directory = self.root / "consumequeue" / topic / "0"
        directory.mkdir(parents=True, exist_ok=True)
        for at in range(0, max(1, len(content)), file_bytes):
            stored = content[at : at + file_bytes].ljust(file_bytes, b"\0")
            (directory / f"{first + at:020}").write_bytes(stored)
        return directory

    def follow(self, **options: str) -> Following:
        return Following(QUEUES, self.root, **options)


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path / "store")


def units(numbers: Sequence[int]) -> bytes:
    return b"".join(unit(number) if number else bytes(20) for number in numbers)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    looks=st.lists(st.integers(0, 13 * 20), max_size=8),
    limit=st.sampled_from([None, 1, 50, 100]),
    restarts=st.booleans(),
)
def test_every_unit_comes_once_however_the_queue_grows(
    tmp_path: Path, looks: list[int], limit: int | None, restarts: bool
) -> None:
    queue, content = Queue(tmp_path / "store"), units(range(1, 14))
    queue.show(b"")
    following = queue.follow()
    shown = b""
    for size_bytes in [*sorted(looks), len(content)]:
        before, shown = shown, content[:size_bytes].ljust(len(content), b"\0")
        if size_bytes % UNIT_BYTES and shown == before:
            continue  # half a unit that does not change between two looks counts as whole
        queue.show(content[:size_bytes])
        following.look(bytes_max=limit)
        if restarts:
            following.restart()
    following.catch_up(bytes_max=limit)
    assert following.column("queue_offset", "offset") == [(number - 1, 1000 * number) for number in range(1, 14)]
    assert following.problems == []


def test_a_half_written_unit_is_not_taken(queue: Queue) -> None:
    whole = units([1, 2]) + struct.pack(">qiq", 3000, 103, 0x0101_0101_0101_0101)
    queue.show(whole[:-10])
    following = queue.follow()
    assert following.look()
    assert following.column("queue_offset") == [0, 1]
    queue.show(whole[:-8])  # two more bytes arrived: it has changed again
    assert not following.look()
    queue.show(whole[:-7])
    assert not following.look()
    queue.show(whole)
    following.catch_up()
    assert following.column("queue_offset", "tags_code") == [(0, 1), (1, 2), (2, 0x0101_0101_0101_0101)]


def test_half_a_unit_that_nobody_goes_on_with_is_taken_by_the_second_look(queue: Queue) -> None:
    """Nothing in it shows that it is no unit (docs/tables.md).

    A store writes the 20 bytes at once.
    """
    queue.show(units([1]) + unit(7)[:7])
    following = queue.follow()
    following.look()
    assert following.look()
    assert following.column("offset") == [1000, 6912]


def test_the_last_unit_is_taken_by_the_second_look_that_finds_it_equal(queue: Queue) -> None:
    queue.show(units([1]))
    following = queue.follow()
    assert not following.look()
    assert following.look()
    assert not following.look()
    assert following.column("queue_offset") == [0]


def test_a_run_that_is_to_end_reads_what_was_there_when_it_began(queue: Queue) -> None:
    queue.show(units([1, 2, 3]))
    following = queue.follow()
    following.stream.prepareForTriggerAvailableNow()
    queue.show(units([1, 2, 3, 4, 5, 6, 7]))
    queue.show(units([1]), topic="Later")
    following.catch_up()
    assert following.column("topic", "queue_offset") == [("T", 0), ("T", 1), ("T", 2)]
    following.restart()
    following.stream.prepareForTriggerAvailableNow()
    following.catch_up()
    assert following.column("topic", "queue_offset")[3:] == [("T", 3), ("T", 4), ("T", 5), ("T", 6), ("Later", 0)]


def test_a_queue_that_appears_later_is_read_from_its_first_file_on(queue: Queue) -> None:
    queue.show(units([1, 2]))
    following = queue.follow()
    following.catch_up()
    queue.show(units([6, 7]), topic="Later", first=2 * FILE_BYTES)
    following.catch_up()
    assert following.column("topic", "queue_offset") == [("T", 0), ("T", 1), ("Later", 10), ("Later", 11)]
    assert following.problems == []


def test_prefill_is_passed_over(queue: Queue) -> None:
    queue.show(struct.pack(">qiq", 0, 2**31 - 1, 0) * 3 + units([4]))
    following = queue.follow()
    following.catch_up()
    assert following.column("queue_offset") == [3]


@pytest.mark.parametrize("numbers", [[1, 0, 0, 4, 5, 6], [1, 2, 3, 0, 0, 6], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11]])
def test_empty_units_with_used_ones_behind_are_told_and_left_behind(queue: Queue, numbers: list[int]) -> None:
    queue.show(units(numbers))
    following = queue.follow()
    following.catch_up()
    assert following.column("queue_offset") == [number - 1 for number in numbers if number]
    assert {code for _, code, _ in following.problems} == {"CQ_EMPTY_UNITS"}
    assert sum(size or 0 for *_, size in following.problems) == 20 * numbers.count(0)


def test_used_units_far_behind_empty_ones_come_with_the_next_file(queue: Queue) -> None:
    far = WINDOW_BYTES // 20 + 10
    content = units([1, *[0] * far, 5, 0])
    queue.show(content, file_bytes=len(content))
    following = queue.follow()
    following.catch_up()
    assert following.column("queue_offset") == [0]
    queue.show(content + unit(9), file_bytes=len(content))
    following.catch_up()
    assert following.column("queue_offset") == [0, far + 1, far + 3]


def test_units_of_files_that_are_gone_are_told(queue: Queue) -> None:
    directory = queue.show(units(range(1, 14)))
    following = queue.follow()
    following.look(bytes_max=40)
    (directory / f"{0:020}").unlink()
    following.catch_up()
    assert following.column("queue_offset") == [0, 1, *range(5, 13)]
    assert following.problems == [("consumequeue/T/0", "CQ_CUT", 3 * 20)]


def test_a_file_that_is_missing_between_others_is_told(queue: Queue) -> None:
    directory = queue.show(units(range(1, 14)))
    (directory / f"{FILE_BYTES:020}").unlink()
    following = queue.follow()
    following.catch_up()
    assert following.column("queue_offset") == [*range(5), *range(10, 13)]
    assert following.problems == [("consumequeue/T/0", "CQ_CUT", FILE_BYTES)]


def test_a_queue_that_was_cut_goes_on_behind_the_offset(queue: Queue) -> None:
    queue.show(units(range(1, 9)))
    following = queue.follow()
    following.catch_up()
    queue.show(units(range(1, 5)).ljust(2 * FILE_BYTES, b"\0"))
    following.catch_up()
    queue.show(units(range(1, 12)))
    following.catch_up()
    assert following.column("queue_offset") == list(range(11))
    assert following.problems == []


def test_a_unit_cut_before_it_was_read_is_a_problem_of_its_batch(queue: Queue) -> None:
    queue.show(units(range(1, 5)))
    following = queue.follow(table="problems")
    following.catch_up()
    start = {store: {"T/0": 1} for store in following.offset}
    queue.show(units(range(1, 3)))
    assert [row["code"] for row in following.between(following._ask, start, following.offset)] == ["CQ_EMPTY_UNITS"]
    shutil.rmtree(queue.root / "consumequeue")
    assert [row["code"] for row in following.between(following._ask, start, following.offset)] == ["CQ_CUT"]


def test_a_file_that_may_not_be_read_waits(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.show(units([1, 2]))
    following = queue.follow()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(queue_stream, "FileSource", refused)
        assert not following.look()
    following.catch_up()
    assert following.column("queue_offset") == [0, 1]


@pytest.mark.parametrize("case", golden_dirs(), ids=lambda path: path.name)
def test_streams_of_golden_stores_give_the_rows_of_a_batch(case: Path) -> None:
    following = Following(QUEUES, case / "store", columns="*")
    following.catch_up(bytes_max=200)
    assert ordered(following.rows) == ordered(batch_rows(QUEUES, case / "store", columns="*"))


def test_a_damaged_store_gives_what_a_batch_gives(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    for path in sorted((store / "consumequeue").rglob("0*0")):
        if path.is_file():
            overwrite(path, 40, bytes(20))
    following = Following(QUEUES, store)
    following.catch_up()
    assert ordered(following.rows) == ordered(batch_rows(QUEUES, store))
    wanted = [(row["file"], row["code"], row["size"]) for row in batch_rows(QUEUES, store, table="problems")]
    assert sorted(following.problems, key=str) == sorted(wanted, key=str) != []


def test_a_store_at_work_is_followed_over_new_files_new_queues_and_expired_ones(tmp_path: Path) -> None:
    kept = Retained(tmp_path / "store", FILES_OF_FIVE)
    with kept.store as store:
        following = Following(QUEUES, tmp_path / "store")
        wanted = []
        for round_number in range(4):
            for queue_id in range(1, 2 + round_number):
                for offset in kept.put(3, queue_id=queue_id):
                    wanted.append((queue_id, offset))
            kept.settle()
            following.look()
        following.catch_up()
        assert sorted(following.column("queue_id", "offset")) == sorted(wanted)
        before = len(following.rows)
        kept.put(12, queue_id=1)
        kept.settle()
        for _ in range(2):
            kept.clean(at_ms=NIGHT_MS + 3 * 24 * 3_600_000)
        assert store.min_offset_in_queue("TopicTest", 1) > 12
        following.catch_up()
        assert following.problems == [("consumequeue/TopicTest/1", "CQ_CUT", 8 * 20)]
        assert following.column("queue_offset")[before:] == list(range(20, 24))


def test_a_file_that_grows_while_a_batch_is_read_is_no_problem(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.show(units([1, 2, 3]))
    following = queue.follow()
    monkeypatch.setattr("tornpage.properties.decode.files.FileSource.has_changed", lambda _: True)
    following.catch_up()
    assert following.column("queue_offset") == [0, 1, 2]
    assert following.problems == []
