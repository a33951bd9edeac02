"""Test that expired log files are removed from the head, and only those that may go."""

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.retained import HOUR_MS, NIGHT_MS, NOON_MS, Retained
from tests.support.impl.stores import MESSAGE, FaultyFiles, SetClock, caught_up, config_of, open_store
from tornpage.impl.errors import BufferReleased, StoreClosed
from tornpage.impl.message.message import GetStatus
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.clean_files import CleanFiles
from tornpage.impl.service.running_flags import RunningFlag

LATER_MS = NIGHT_MS + 3 * 24 * HOUR_MS


@pytest.fixture
def kept(tmp_path: Path) -> Retained:
    """Four files, all flushed and dispatched; the last one has a single message."""
    kept = Retained(tmp_path)
    kept.put(10)
    kept.settle()
    assert kept.log == [0, 1024, 2048, 3072]
    return kept


# ---- when --------------------------------------------------------------------------------------------------------


def test_expired_files_go_in_the_hour_and_the_last_one_stays(kept: Retained) -> None:
    assert kept.clean(at_ms=LATER_MS) == [100, 100, 10_000]
    assert kept.log == [3072]
    assert (kept.store.min_offset, kept.store.max_offset) == (3072, 3372)
    assert kept.store.get(2048).status is GetStatus.OFFSET_TOO_SMALL
    assert kept.store.get(3072).status is GetStatus.FOUND
    kept.store.check()


@pytest.mark.parametrize("at_ms", [LATER_MS - 1, LATER_MS + HOUR_MS, NOON_MS])
def test_nothing_goes_outside_of_the_hour(kept: Retained, at_ms: int) -> None:
    assert kept.clean(at_ms=at_ms) == [10_000]
    assert len(kept.log) == 4


def test_a_file_goes_when_its_newest_message_has_expired(tmp_path: Path) -> None:
    """The file has been there for days; its last message is an hour old (RMQ-B53)."""
    kept = Retained(tmp_path)
    kept.put(2)
    kept.clock.now_ms = LATER_MS - HOUR_MS
    kept.put(2)
    kept.settle()
    assert kept.clean(at_ms=LATER_MS) == [10_000]
    assert kept.clean(at_ms=LATER_MS + 2 * 24 * HOUR_MS) == [10_000]
    assert len(kept.log) == 2
    assert kept.clean(at_ms=LATER_MS + 3 * 24 * HOUR_MS) == [10_000]
    assert len(kept.log) == 1


def test_times_of_the_files_count_for_nothing(kept: Retained) -> None:
    for path in (kept.directory / "commitlog").iterdir():
        os.utime(path, (0, 0))
    assert kept.clean(at_ms=NIGHT_MS) == [10_000]
    assert len(kept.log) == 4


def test_a_manual_run_waits_for_no_hour_but_for_age(kept: Retained) -> None:
    kept.store.delete_expired_files_manually()
    assert kept.clean(at_ms=NOON_MS) == [10_000]
    assert len(kept.log) == 4
    assert kept.clean(at_ms=LATER_MS + 2 * HOUR_MS) == [100, 100, 10_000]
    assert len(kept.log) == 1


def test_twenty_runs_are_manual(kept: Retained) -> None:
    kept.store.delete_expired_files_manually()
    for _ in range(20):
        kept.clean(at_ms=NOON_MS)
    assert kept.clean(at_ms=LATER_MS + 2 * HOUR_MS) == [10_000]
    assert len(kept.log) == 4


def test_ten_files_go_in_a_run(tmp_path: Path) -> None:
    kept = Retained(tmp_path)
    kept.put(40)
    kept.settle()
    assert len(kept.log) == 14
    assert kept.clean(at_ms=LATER_MS) == [100] * 9 + [100, 10_000]  # the last but one after a file of the queue
    assert len(kept.log) == 4
    assert kept.clean() == [100, 100, 10_000]


def test_file_that_may_go_only_after_the_decision_waits_for_the_next_run(
    kept: Retained, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush between the decision and the deletion let two files go without the pause."""
    with monkeypatch.context() as patch:
        patch.setattr(CleanCommitLog, "wants_deletion", lambda *_, **__: False)
        assert kept.clean(at_ms=LATER_MS) == [10_000]
    assert kept.log == [1024, 2048, 3072]
    assert kept.clean(at_ms=LATER_MS + 10_000) == [100, 10_000]


@pytest.mark.parametrize(("percent", "left"), [(75, 4), (76, 4), (85, 4), (86, 1), (91, 1)])
def test_a_disk_that_is_too_full_takes_files_that_are_young(kept: Retained, percent: int, left: int) -> None:
    kept.disk.percent = percent
    kept.clean(at_ms=NOON_MS)
    assert len(kept.log) == left
    assert (RunningFlag.DISK_FULL in kept.store.running_flags.bits) is (percent == 91)


@pytest.mark.parametrize("percent", [75, 76])
def test_a_disk_above_its_ratio_takes_expired_files_at_any_hour(kept: Retained, percent: int) -> None:
    kept.disk.percent = percent
    kept.clean(at_ms=LATER_MS + HOUR_MS)
    assert len(kept.log) == (4 if percent == 75 else 1)


def test_the_disk_of_the_queues_counts_too(kept: Retained) -> None:
    kept.disk.percent_of = {"/commitlog": 10, "": 91}
    kept.clean(at_ms=NOON_MS)
    assert len(kept.log) == 1
    assert RunningFlag.DISK_FULL in kept.store.running_flags.bits
    kept.disk.percent_of = {}
    kept.clean()
    assert RunningFlag.DISK_FULL not in kept.store.running_flags.bits


def test_a_disk_that_fills_during_a_run_stops_puts_at_once(kept: Retained) -> None:
    """The run is at its first pause; a put looks at the disk itself (RMQ-B54)."""
    kept.clock.now_ms = LATER_MS
    kept.runner.step("clean")
    assert len(kept.log) == 3
    kept.disk.percent = 95
    kept.clock.now_ms += 10_000
    assert kept.put() == [-1]
    assert RunningFlag.DISK_FULL in kept.store.running_flags.bits


# ---- which -------------------------------------------------------------------------------------------------------


def test_what_is_not_dispatched_stays(tmp_path: Path) -> None:
    """Dispatch lags (RMQ-B04), continues at its offset, and misses no message."""
    kept = Retained(tmp_path)
    kept.put(10)
    kept.store.flush()
    assert kept.clean(at_ms=LATER_MS) == [10_000]
    assert len(kept.log) == 4
    kept.runner.step("reput")
    assert (kept.store.min_offset_in_queue("TopicTest", 1), kept.store.max_offset_in_queue("TopicTest", 1)) == (0, 10)
    assert kept.clean() == [100, 100, 10_000]


def test_what_is_not_durable_stays(tmp_path: Path) -> None:
    kept = Retained(tmp_path)
    kept.put(10)
    kept.runner.step("reput")
    assert kept.clean(at_ms=LATER_MS) == [10_000]
    kept.store.flush()
    assert kept.clean() == [100, 100, 10_000]


def test_queues_are_durable_before_a_file_goes(kept: Retained) -> None:
    kept.disk.calls.clear()
    kept.clean(at_ms=LATER_MS)
    verbs = [(verb, path) for verb, path in kept.disk.calls if verb in ("sync", "unlink")]
    first = next(number for number, (verb, path) in enumerate(verbs) if verb == "unlink" and "/commitlog/" in path)
    assert any("/consumequeue/" in path for _, path in verbs[:first])


def test_each_file_is_gone_durably_before_the_next(kept: Retained) -> None:
    kept.disk.calls.clear()
    kept.clean(at_ms=LATER_MS)
    log = str(kept.directory / "commitlog")
    calls = [(verb, path) for verb, path in kept.disk.calls if verb in ("unlink", "sync_directory") and log in path]
    expected = []
    for base in (0, 1024, 2048):
        expected += [("unlink", f"{log}/{base:020d}"), ("sync_directory", log)]
    assert calls == expected


def test_files_of_several_directories_go_in_the_order_of_the_log(tmp_path: Path) -> None:
    config = replace(config_of(), time_zone="UTC", store_path_commit_log=("one", "two"))
    kept = Retained(tmp_path, config)
    kept.put(10)
    kept.settle()
    kept.disk.calls.clear()
    kept.clean(at_ms=LATER_MS)
    gone = [
        path for verb, path in kept.disk.calls if verb == "unlink" and "/index/" not in path and "consume" not in path
    ]
    assert gone == [f"{tmp_path}/{name}/{base:020d}" for name, base in (("one", 0), ("two", 1024), ("one", 2048))]
    assert kept.store.min_offset == 3072


def test_a_store_that_is_read_only_deletes_nothing(kept: Retained) -> None:
    kept.put()
    kept.disk.fail("sync", part="/commitlog/")
    kept.store.flush()
    assert kept.store.read_only_reason is not None
    kept.disk.mend()
    assert kept.clean(at_ms=LATER_MS) == [10_000]
    assert len(kept.log) == 4


def test_a_disk_that_refuses_is_asked_again(kept: Retained) -> None:
    kept.disk.fail("sync_directory", code=errno.EIO, part="/commitlog", times=1)
    kept.clock.now_ms = LATER_MS
    with pytest.raises(OSError, match="Input/output error"):
        kept.runner.step("clean")
    assert (kept.log, kept.store.min_offset) == ([1024, 2048, 3072], 1024)
    assert kept.clean() == [100, 100, 10_000]
    assert kept.log == [3072]


def test_queues_that_cannot_be_flushed_keep_the_log(kept: Retained) -> None:
    kept.disk.fail("sync", part="/consumequeue/")
    kept.clock.now_ms = LATER_MS
    with pytest.raises(OSError, match="Input/output error"):
        kept.runner.step("clean")
    assert len(kept.log) == 4
    assert kept.store.min_offset == 0


# ---- readers -----------------------------------------------------------------------------------------------------


def test_a_file_that_a_reader_holds_leaves_the_log_and_stays_on_the_disk(kept: Retained) -> None:
    held = kept.store.select_message_by_offset(0)
    assert held is not None
    assert kept.clean(at_ms=LATER_MS) == [10_000]
    assert (kept.store.min_offset, kept.log) == (1024, [0, 1024, 2048, 3072])
    assert kept.store.select_message_by_offset(0) is None
    assert held.message().body == bytes(180)
    held.release()
    assert kept.clean() == [100, 100, 10_000]
    assert kept.log == [3072]


def test_its_reader_has_two_minutes(kept: Retained) -> None:
    held = kept.store.select_message_by_offset(0)
    assert held is not None
    kept.clean(at_ms=LATER_MS)
    while kept.runner.now_ms < 120_000:
        assert kept.clean() == [10_000]
        assert held.message().body == bytes(180)
    kept.clean()
    assert kept.log == [3072]
    with pytest.raises(BufferReleased):
        held.message()


def test_it_is_tried_again_when_nothing_else_is_to_go(kept: Retained) -> None:
    held = kept.store.select_message_by_offset(0)
    assert held is not None
    kept.clean(at_ms=LATER_MS)
    held.release()
    kept.clean(at_ms=NOON_MS)
    assert len(kept.log) == 4
    kept.runner.now_ms = 120_000
    kept.clean()
    assert kept.log == [1024, 2048, 3072]


def test_a_close_leaves_it_to_the_next_opener(kept: Retained) -> None:
    held = kept.store.select_message_by_offset(0)
    assert held is not None
    kept.clean(at_ms=LATER_MS)
    kept.store.close()
    store = kept.open()
    assert (store.min_offset, store.read_only_reason, store.findings) == (0, None, ())
    assert store.max_offset_in_queue("TopicTest", 1) == 10
    kept.clean()
    assert kept.log == [3072]


def test_a_file_behind_the_one_that_went_is_still_found(kept: Retained) -> None:
    """The position of a file in the sequence is the present one (RMQ-B24)."""
    kept.clock.now_ms = LATER_MS
    kept.runner.step("clean")
    for offset in (1024, 1324, 2048, 3072):
        buffer = kept.store.select_message_by_offset(offset)
        assert buffer is not None
        assert (buffer.offset, buffer.message().offset) == (offset, offset)


# ---- opening again -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [True, False])
def test_a_store_without_its_head_opens_and_goes_on(kept: Retained, closed: bool) -> None:
    kept.clean(at_ms=LATER_MS)
    if closed:
        kept.store.close()
    else:
        kept.store._held.close()  # as the end of the process would
    store = kept.open()
    assert (store.min_offset, store.max_offset, store.read_only_reason) == (3072, 3372, None)
    assert (store.min_offset_in_queue("TopicTest", 1), store.max_offset_in_queue("TopicTest", 1)) == (9, 10)
    assert kept.put() == [3372]
    kept.runner.step("reput")
    assert store.max_offset_in_queue("TopicTest", 1) == 11


def test_numbers_go_on_in_a_queue_that_has_no_message_left(kept: Retained) -> None:
    kept.put(3, topic="Other")
    kept.settle()
    kept.clean(at_ms=LATER_MS)
    assert kept.store.min_offset_in_queue("TopicTest", 1) == kept.store.max_offset_in_queue("TopicTest", 1) == 10
    kept.store._held.close()
    store = kept.open()
    assert store.min_offset_in_queue("TopicTest", 1) == store.max_offset_in_queue("TopicTest", 1) == 10
    assert store.get_message("TopicTest", 1, 3).status is GetStatus.OFFSET_TOO_SMALL
    assert store.get_message("TopicTest", 1, 3).next_begin_offset == 10
    kept.put()
    kept.settle()
    with store.get_message("TopicTest", 1, 10) as pulled:
        assert [message.queue_offset for message in pulled.messages] == [10]


# ---- the verbs ---------------------------------------------------------------------------------------------------


def test_a_closed_store_deletes_nothing(kept: Retained) -> None:
    store = kept.store
    store.close()
    for verb in (
        store.delete_expired_files_manually,
        store.clean_expired_consume_queues,
        lambda: store.clean_unused_topics(()),
        lambda: store.clean_unused_lmq_topic("%LMQ%a"),
    ):
        with pytest.raises(StoreClosed):
            verb()
    assert kept.runner["clean"].stopped


def test_manual_runs_are_counted_by_one_at_a_time() -> None:
    """Threads take runs while others ask for more (RMQ-B56).

    No run counts twice, and the count is never below zero.
    """
    service = CleanFiles.__new__(CleanFiles)
    service._manual_guard, service._manual_runs = threading.Lock(), 0
    service.delete_manually()
    taken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: taken.extend(service._take_manual_run() for _ in range(10))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (taken.count(True), service._manual_runs) == (20, 0)


def test_a_real_thread_cleans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.impl.retention.retention._FIRST_RUN_MS", 0)
    config = replace(config_of(), time_zone="UTC", file_reserved_time=0, delete_when="12", clean_resource_interval=1)
    files, gone = FaultyFiles(), threading.Event()
    files.faults["unlink"] = lambda path: gone.set() if path.endswith(f"{1024:020d}") else None
    with open_store(tmp_path, config=config, files=files, clock=SetClock(NOON_MS)) as store:
        for _ in range(10):
            store.put(replace(MESSAGE, body=bytes(180)))
        caught_up(store)
        store.flush()
        assert gone.wait(30)
