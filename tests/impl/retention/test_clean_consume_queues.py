"""Test that queues and index follow the head of the log, and that readers see it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.golden import config_of as config_of_golden
from tests.support.impl.golden import golden
from tests.support.impl.retained import NIGHT_MS, Retained, names_in
from tests.support.impl.stores import MESSAGE, config_of
from tornpage.impl.message.message import GetStatus

LATER_MS = NIGHT_MS + 3 * 24 * 3_600_000
KEYED = replace(MESSAGE, properties={"KEYS": "k"})
SMALL = replace(config_of(), time_zone="UTC", mapped_file_size_consume_queue=40, max_index_num=3)


@pytest.fixture
def kept(tmp_path: Path) -> Retained:
    """Put five log files.

    Queue files have two units, index files two entries, and each message has a key.
    """
    kept = Retained(tmp_path, SMALL)
    kept.put(13, KEYED)
    kept.settle()
    assert len(kept.log) == 5
    return kept


def queue_files(kept: Retained, place: str = "TopicTest/1") -> list[int]:
    return [int(name) // 20 for name in names_in(kept.directory / "consumequeue" / place)]


def test_files_go_whose_last_record_has_expired_and_the_minimum_moves(kept: Retained) -> None:
    assert queue_files(kept) == [0, 2, 4, 6, 8, 10, 12]
    kept.clock.now_ms = LATER_MS
    kept.runner.step("clean")
    kept.runner.step("clean")
    kept.store.delete_expired_files_manually()
    kept.clean()
    assert kept.store.min_offset == 4096
    assert (kept.store.min_offset_in_queue("TopicTest", 1), kept.store.max_offset_in_queue("TopicTest", 1)) == (12, 13)
    assert queue_files(kept) == [12]


def test_a_file_with_one_unit_left_stays(tmp_path: Path) -> None:
    kept = Retained(tmp_path, SMALL)
    kept.put(4, KEYED)
    kept.settle()
    kept.clean(at_ms=LATER_MS)
    assert kept.store.min_offset == 1024
    assert kept.store.min_offset_in_queue("TopicTest", 1) == 3
    assert queue_files(kept) == [2]


def test_the_last_file_of_a_queue_stays_so_that_its_numbers_go_on(kept: Retained) -> None:
    kept.put(3, KEYED, topic="Other")
    kept.settle()
    kept.clean(at_ms=LATER_MS)
    assert queue_files(kept) == [12]
    assert kept.store.min_offset_in_queue("TopicTest", 1) == 13


def test_each_queue_that_lost_files_is_followed_by_a_pause(kept: Retained) -> None:
    kept.put(4, KEYED, queue_id=2)
    kept.put(1, KEYED, queue_id=3)
    kept.put(3, KEYED, queue_id=2)
    kept.settle()
    pauses = kept.clean(at_ms=LATER_MS)
    assert pauses == [100] * (5 + 2) + [10_000]


def test_files_of_the_index_go_but_the_last(kept: Retained) -> None:
    before = names_in(kept.directory / "index")
    assert len(before) == 7
    kept.disk.calls.clear()
    kept.clean(at_ms=LATER_MS)
    assert names_in(kept.directory / "index") == before[-1:]
    directory = str(kept.directory / "index")
    calls = [
        (verb, path) for verb, path in kept.disk.calls if verb in ("unlink", "sync_directory") and directory in path
    ]
    first = calls.index(("unlink", f"{directory}/{before[0]}"))
    assert calls[first : first + 2] == [("unlink", f"{directory}/{before[0]}"), ("sync_directory", directory)]


@pytest.mark.parametrize("part", ["/consumequeue/", "/index/"])
def test_a_file_that_cannot_be_removed_is_asked_for_again(kept: Retained, part: str) -> None:
    """It was forgotten and the next ones went.

    The next open rebuilt the whole index because of the gap.
    """
    kept.disk.fail("unlink", part=part, times=1)
    with pytest.raises(OSError, match="Input/output error"):
        kept.clean(at_ms=LATER_MS)
    kept.store.delete_expired_files_manually()
    kept.clean()
    assert (queue_files(kept), len(names_in(kept.directory / "index"))) == ([12], 1)


def test_a_key_finds_what_is_left(kept: Retained) -> None:
    kept.clean(at_ms=LATER_MS)
    found = kept.store.query_message("TopicTest", "k").messages
    assert [message.offset for message in found] == [4096]


def test_an_index_file_with_one_record_left_stays_with_its_entries(tmp_path: Path) -> None:
    kept = Retained(tmp_path, SMALL)
    kept.put(5, KEYED)
    kept.settle()
    kept.clean(at_ms=LATER_MS)
    assert kept.store.min_offset == 1024
    assert len(names_in(kept.directory / "index")) == 2
    assert [message.offset for message in kept.store.query_message("TopicTest", "k").messages] == [1024, 1331]


@pytest.mark.parametrize(
    ("number", "status", "following"),
    [(0, GetStatus.OFFSET_TOO_SMALL, 12), (11, GetStatus.OFFSET_TOO_SMALL, 12), (12, GetStatus.FOUND, 13),
     (13, GetStatus.OFFSET_OVERFLOW_ONE, 13), (14, GetStatus.OFFSET_OVERFLOW_BADLY, 13)],
)  # fmt: skip
def test_readers_are_told_where_to_go_on(kept: Retained, number: int, status: GetStatus, following: int) -> None:
    kept.clean(at_ms=LATER_MS)
    with kept.store.get_message("TopicTest", 1, number) as pulled:
        assert (pulled.status, pulled.next_begin_offset) == (status, following)


def test_between_log_and_queue_a_message_is_being_removed(kept: Retained) -> None:
    """The first log file is gone and its queue has not followed.

    The read gets the offset of the next file.
    """
    kept.clock.now_ms = LATER_MS
    kept.runner.step("clean")
    assert (kept.store.min_offset, kept.store.min_offset_in_queue("TopicTest", 1)) == (1024, 0)
    with kept.store.get_message("TopicTest", 1, 0, max_msg_nums=1) as pulled:
        assert (pulled.status, pulled.messages[0].queue_offset) == (GetStatus.FOUND, 3)
    while kept.store.min_offset < 3072:
        kept.runner.step("clean")
    with kept.store.get_message("TopicTest", 1, 0, max_msg_nums=1) as pulled:
        assert (pulled.status, pulled.messages[0].queue_offset) == (GetStatus.FOUND, 9)


def test_a_queue_whose_messages_are_all_being_removed_says_so(tmp_path: Path) -> None:
    kept = Retained(tmp_path)
    kept.put(3)
    kept.put(1, topic="Other")
    kept.settle()
    kept.clock.now_ms = LATER_MS
    kept.disk.fail("sync_directory", part="/commitlog", times=1)
    with pytest.raises(OSError, match="Input/output error"):
        kept.runner.step("clean")
    with kept.store.get_message("TopicTest", 1, 0) as pulled:
        assert (pulled.status, pulled.next_begin_offset) == (GetStatus.MESSAGE_WAS_REMOVING, 3)


@pytest.mark.parametrize("closed", [True, False])
def test_opening_again_finds_the_same(kept: Retained, closed: bool) -> None:
    kept.clean(at_ms=LATER_MS)
    if closed:
        kept.store.close()
    else:
        kept.store._held.close()
    store = kept.open()
    assert (queue_files(kept), len(names_in(kept.directory / "index"))) == ([12], 1)
    assert (store.min_offset_in_queue("TopicTest", 1), store.max_offset_in_queue("TopicTest", 1)) == (12, 13)
    assert store.read_only_reason is None
    assert [finding for finding in store.findings if finding.severity != "note"] == []
    assert [message.offset for message in store.query_message("TopicTest", "k").messages] == [4096]
    kept.clean()
    assert queue_files(kept) == [12]


def test_what_a_killed_run_left_goes_with_the_next(kept: Retained) -> None:
    kept.clock.now_ms = LATER_MS
    for _ in range(3):
        kept.runner.step("clean")
    assert (kept.log, len(queue_files(kept))) == ([3072, 4096], 7)
    kept.store._held.close()
    store = kept.open()
    assert (store.min_offset_in_queue("TopicTest", 1), store.max_offset_in_queue("TopicTest", 1)) == (9, 13)
    kept.clean()
    assert (queue_files(kept), len(names_in(kept.directory / "index"))) == ([12], 1)


def test_the_extension_follows_too(tmp_path: Path) -> None:
    config = replace(SMALL, enable_consume_queue_ext=True, mapped_file_size_consume_queue_ext=100)
    kept = Retained(tmp_path, config)
    kept.put(13, KEYED)
    kept.settle()
    before = names_in(tmp_path / "consumequeue_ext" / "TopicTest" / "1")
    kept.clean(at_ms=LATER_MS)
    left = names_in(tmp_path / "consumequeue_ext" / "TopicTest" / "1")
    assert len(left) < len(before)
    assert left == before[-len(left) :]
    kept.store.close()
    assert kept.open().max_offset_in_queue("TopicTest", 1) == 13


def test_a_directory_of_rocketmq_goes_on_losing_its_head(tmp_path: Path) -> None:
    """RocketMQ has deleted its first two files.

    On a disk that is too full this store deletes the next ones.
    """
    folder = golden("03-rollover-blanks-retention")
    shutil.copytree(folder / "store", tmp_path, copy_function=shutil.copyfile, dirs_exist_ok=True)
    kept = Retained(tmp_path, replace(config_of_golden(folder), time_zone="UTC"))
    assert (kept.store.min_offset, kept.store.findings) == (32768, ())
    ends = [kept.store.max_offset_in_queue("RollTopic", queue_id) for queue_id in range(3)]
    kept.disk.percent = 88
    kept.clean()
    assert kept.log == [163840]
    for _ in range(2):
        store = kept.store
        assert (store.min_offset, store.findings) == (163840, ())
        for queue_id, end in enumerate(ends):
            first = store.min_offset_in_queue("RollTopic", queue_id)
            assert store.max_offset_in_queue("RollTopic", queue_id) == end
            if first < end:
                assert (store.commit_log_offset_in_queue("RollTopic", queue_id, first) or 0) >= 163840
            with store.get_message("RollTopic", queue_id, first) as pulled:
                assert [message.queue_offset for message in pulled.messages] == list(range(first, end))
        store.close()
        kept.open()
