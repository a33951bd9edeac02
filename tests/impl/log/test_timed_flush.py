"""Test the timed flush of an asynchronous store: files of a round, and thorough rounds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, config_of, fill_to, open_store
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.message.message import GetStatus, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

PAGE = 4096
BIG = replace(MESSAGE, body=bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


def opened(
    directory: Path, *, file_bytes: int = 64 * PAGE, files: FaultyFiles | None = None, **changes: Any
) -> tuple[MessageStore, HandRunner]:
    """Open an asynchronous store; its first round, a thorough one, was at 500 ms."""
    runner = HandRunner()
    config = replace(config_of(file_bytes=file_bytes), **changes)
    store = open_store(directory, config=config, files=files, parts=Parts({ThreadRunner: runner}))
    assert runner["flush"].due_ms == config.flush_interval_commit_log
    runner.step("flush", after_ms=500)
    return store, runner


def test_first_round_takes_any_byte_and_each_wants_the_next_after_the_interval(tmp_path: Path) -> None:
    runner = HandRunner()
    with open_store(tmp_path, parts=Parts({ThreadRunner: runner})) as store:
        size_bytes = store.put(MESSAGE).size_bytes
        assert store.flushed_offset == 0
        assert runner.step("flush", after_ms=500) == 1_000
        assert store.flushed_offset == size_bytes
        assert runner.step("flush", after_ms=700) == 1_700


@pytest.mark.parametrize("interval_ms", [1, 500, 60_000])
def test_interval_is_that_of_the_configuration(interval_ms: int, tmp_path: Path) -> None:
    store, runner = opened(tmp_path, flush_interval_commit_log=interval_ms)
    with store:
        assert runner.step("flush") == 500 + interval_ms


@pytest.mark.parametrize(
    ("flushed", "written", "is_due"),
    [
        (4095, 4 * PAGE - 1, False),
        (4095, 4 * PAGE, True),
        (4096, 4 * PAGE, False),
        (4096, 5 * PAGE - 1, False),
        (4096, 5 * PAGE, True),
        (200, 63 * PAGE, True),
    ],
)
def test_page_rule_counts_the_borders_that_were_crossed(
    flushed: int, written: int, is_due: bool, tmp_path: Path
) -> None:
    store, runner = opened(tmp_path)
    with store:
        fill_to(store, flushed)
        assert store.flush().flushed_offset == flushed
        fill_to(store, written)
        runner.step("flush", after_ms=500)
        assert store.flushed_offset == (written if is_due else flushed)


@pytest.mark.parametrize("least_pages", [0, 1, 2])
def test_least_pages_are_those_of_the_configuration(least_pages: int, tmp_path: Path) -> None:
    store, runner = opened(tmp_path, flush_commit_log_least_pages=least_pages)
    with store:
        for end in (PAGE - 1, PAGE, 2 * PAGE + 200):
            if end > store.max_offset + 200:
                fill_to(store, end)
            runner.step("flush", after_ms=500)
            assert (store.flushed_offset == store.max_offset) is (store.max_offset // PAGE >= least_pages)


@pytest.mark.parametrize(("since_ms", "is_thorough"), [(9_999, False), (10_000, True), (10_001, True)])
def test_thorough_round_comes_when_the_interval_has_passed(since_ms: int, is_thorough: bool, tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        size_bytes = store.put(MESSAGE).size_bytes
        runner.step("flush", after_ms=since_ms)
        assert store.flushed_offset == (size_bytes if is_thorough else 0)


def test_thorough_rounds_are_counted_from_the_last_thorough_one(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        store.put(MESSAGE)
        store.flush()  # not one of the timer
        runner.step("flush", after_ms=9_999)
        store.put(MESSAGE)
        runner.step("flush", after_ms=1)
        assert store.flushed_offset == store.max_offset
        store.put(MESSAGE)
        runner.step("flush", after_ms=9_999)
        assert store.flushed_offset < store.max_offset
        runner.step("flush", after_ms=1)
        assert store.flushed_offset == store.max_offset


def test_full_file_is_worth_it_and_what_follows_only_by_the_rule(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, file_bytes=1024, files=files)
    with store:
        for _ in range(4):
            store.put(BIG)
        files.calls.clear()
        runner.step("flush", after_ms=500)
        assert [path[-4:] for verb, path in files.calls if verb == "sync"] == ["0000", "1024", "2048"]
        assert store.flushed_offset == 3 * 1024
        files.calls.clear()
        runner.step("flush", after_ms=500)
        assert "sync" not in {verb for verb, _ in files.calls}
        runner.step("flush", after_ms=10_000)
        assert store.flushed_offset == store.max_offset
        store.check()


def test_round_begins_at_the_flushed_file(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, file_bytes=1024, files=files)
    with store:
        store.put(BIG)
        store.flush()
        for _ in range(2):
            store.put(BIG)
        files.calls.clear()
        runner.step("flush", after_ms=500)
        assert [path[-4:] for verb, path in files.calls if verb == "sync"] == ["0000", "1024"]


def test_puts_wake_no_timed_flush(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        fill_to(store, 60 * PAGE)
        assert runner["flush"].wakes == 0


def test_puts_wake_a_flush_that_is_not_timed_each_time_the_pages_are_there(tmp_path: Path) -> None:
    store, runner = opened(tmp_path, flush_commit_log_timed=False)
    with store:
        store.put(MESSAGE)
        wakes = runner["flush"].wakes
        assert wakes <= 1
        rounds = 0
        for end in range(PAGE, 33 * PAGE, PAGE):
            fill_to(store, end)
            if runner["flush"].wakes > wakes:
                wakes, rounds = runner["flush"].wakes, rounds + 1
                runner.step("flush", after_ms=1)
                assert store.flushed_offset == store.max_offset, "it was woken for nothing"
            assert store.max_offset - store.flushed_offset < 6 * PAGE, "the service was not woken"
        assert 5 <= rounds <= 8


@pytest.mark.parametrize("changes", [{"flush_disk_type": FlushDiskType.SYNC_FLUSH}, {}])
def test_synchronous_store_has_no_timer(changes: dict[str, Any], tmp_path: Path) -> None:
    runner = HandRunner()
    config = replace(config_of(), broker_role=BrokerRole.ASYNC_MASTER, **changes)
    with open_store(tmp_path, config=config, parts=Parts({ThreadRunner: runner})):
        assert ("flush" in runner.services) is not bool(changes)
        assert "commit" not in runner.services


def test_failed_sync_under_the_timer_ends_puts_and_keeps_what_was_flushed(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, files=files)
    durable = store.put(MESSAGE)
    store.flush()
    late = store.put(MESSAGE)
    files.fail("sync", part="commitlog", times=1)
    runner.step("flush", after_ms=10_000)
    assert store.read_only_reason is not None
    assert "sync of" in store.read_only_reason
    assert store.put(MESSAGE).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert (store.flushed_offset, store.committed_offset) == (durable.size_bytes, durable.size_bytes)
    assert store.get(durable.offset).message is not None
    assert store.get(late.offset).status is GetStatus.OFFSET_OVERFLOW_ONE
    runner.step("flush", after_ms=10_000)  # a sync that succeeds now proves nothing
    assert store.flushed_offset == durable.size_bytes
    assert not store.flush().durable
    store.close()
    assert (tmp_path / "abort").exists()


def test_nothing_is_timed_behind_a_failed_sync_of_one_file_in_a_row(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, file_bytes=1024, files=files)
    with store:
        results = [store.put(BIG) for _ in range(4)]
        files.fail("sync", part=f"{1024:020d}", times=1)
        runner.step("flush", after_ms=500)
        assert store.flushed_offset == 1024
        assert store.get(results[0].offset).message is not None
        assert store.get(results[1].offset).message is None
