"""Test the commit of pool buffers: copied bytes, what readers see, and failed writes."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    config_of,
    fill_to,
    log_bytes,
    open_store,
    watermarks,
)
from tornpage.impl.io.files import OpenFile
from tornpage.impl.message.message import GetStatus, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

PAGE = 4096
BIG = replace(MESSAGE, body=bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


def opened(
    directory: Path, *, file_bytes: int = 64 * PAGE, files: FaultyFiles | None = None, **changes: Any
) -> tuple[MessageStore, HandRunner]:
    """Open a store with a pool; its first commit round, a thorough one, was at 200 ms."""
    runner = HandRunner()
    config = replace(config_of(file_bytes=file_bytes), transient_store_pool_enable=True, **changes)
    store = open_store(directory, config=config, files=files, parts=Parts({ThreadRunner: runner}))
    assert runner["commit"].due_ms == config.commit_interval_commit_log
    runner.step("commit", after_ms=200)
    return store, runner


def free_buffers(store: MessageStore) -> int:
    assert store._held._pool is not None
    return store._held._pool.free


# ---- rounds ------------------------------------------------------------------------------------------------------


def test_first_round_takes_any_byte_and_each_wants_the_next_after_the_interval(tmp_path: Path) -> None:
    runner = HandRunner()
    config = replace(config_of(), transient_store_pool_enable=True)
    with open_store(tmp_path, config=config, parts=Parts({ThreadRunner: runner})) as store:
        size_bytes = store.put(MESSAGE).size_bytes
        assert store.committed_offset == 0
        assert runner.step("commit", after_ms=200) == 400
        assert store.committed_offset == size_bytes


@pytest.mark.parametrize(
    ("committed", "written", "is_due"),
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
    committed: int, written: int, is_due: bool, tmp_path: Path
) -> None:
    store, runner = opened(tmp_path)
    with store:
        fill_to(store, committed)
        runner.step("commit", after_ms=200)
        assert store.committed_offset == committed
        fill_to(store, written)
        runner.step("commit", after_ms=199)
        assert store.committed_offset == (written if is_due else committed)


def test_thorough_round_is_counted_from_the_last_that_was_thorough_or_moved_something(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        fill_to(store, 4 * PAGE)
        runner.step("commit", after_ms=150)  # moves by the page rule
        assert store.committed_offset == 4 * PAGE
        store.put(MESSAGE)
        runner.step("commit", after_ms=199)
        assert store.committed_offset == 4 * PAGE
        runner.step("commit", after_ms=1)
        assert store.committed_offset == store.max_offset
        store.put(MESSAGE)
        runner.step("commit", after_ms=199)
        assert store.committed_offset < store.max_offset


def test_a_thorough_round_without_anything_to_do_counts(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        runner.step("commit", after_ms=200)
        store.put(MESSAGE)
        runner.step("commit", after_ms=199)
        assert store.committed_offset == 0


def test_one_round_goes_over_all_files_and_gives_full_buffers_back(tmp_path: Path) -> None:
    store, runner = opened(tmp_path, file_bytes=1024)
    with store:
        for _ in range(5):
            store.put(BIG)
        assert (store.committed_offset, free_buffers(store)) == (0, 0)
        runner.step("commit", after_ms=1)
        assert (store.committed_offset, free_buffers(store)) == (4 * 1024, 4)
        assert len(list(store.messages())) == 4
        runner.step("commit", after_ms=200)
        assert (store.committed_offset, free_buffers(store)) == (store.max_offset, 4)
        assert len(list(store.messages())) == 5


def wakes_of(store: MessageStore, runner: HandRunner, end_offset: int) -> int:
    """Return how often a put up to an offset wakes the commit."""
    before = runner["commit"].wakes
    fill_to(store, end_offset)
    return runner["commit"].wakes - before


def test_a_put_wakes_the_commit_once_the_pages_behind_what_is_committed_are_enough(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        assert [wakes_of(store, runner, pages * PAGE) for pages in (1, 2, 3, 4)] == [0, 0, 0, 1]
        runner.step("commit", after_ms=1)
        assert [wakes_of(store, runner, pages * PAGE) for pages in (5, 6, 7, 8)] == [0, 0, 0, 1]
        fill_to(store, 9 * PAGE + 500)
        runner.step("commit", after_ms=1)  # goes past the put that woke it, and into a page
        assert [wakes_of(store, runner, pages * PAGE) for pages in (10, 11, 12, 13, 14)] == [0, 0, 0, 1, 1]


def test_while_a_commit_does_not_come_each_page_wakes_it_again(tmp_path: Path) -> None:
    """A running round may have seen only a part: the rest needs no full page rule more."""
    store, runner = opened(tmp_path)
    with store:
        fill_to(store, 4 * PAGE)
        assert [wakes_of(store, runner, pages * PAGE) for pages in (5, 6, 7)] == [1, 1, 1]
        assert wakes_of(store, runner, 7 * PAGE + 200) == 0


@pytest.mark.parametrize(("timed", "wakes"), [(True, 0), (False, 1)])
def test_commit_that_moved_something_wakes_a_flush_that_is_not_timed(timed: bool, wakes: int, tmp_path: Path) -> None:
    store, runner = opened(tmp_path, flush_commit_log_timed=timed)
    with store:
        store.put(MESSAGE)
        assert runner["flush"].wakes == 0
        runner.step("commit", after_ms=200)
        runner.step("commit", after_ms=200)
        assert runner["flush"].wakes == wakes


# ---- readers, flush, crash ---------------------------------------------------------------------------------------


def test_readers_see_what_is_committed(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        first, second = (store.put(MESSAGE) for _ in range(2))
        assert watermarks(store) == (0, 0, 0, second.offset + second.size_bytes)
        assert store.get(first.offset).status is GetStatus.OFFSET_OVERFLOW_ONE
        assert store.get(second.offset).status is GetStatus.OFFSET_OVERFLOW_BADLY
        assert list(store.messages()) == []
        runner.step("commit", after_ms=200)
        third = store.put(MESSAGE)
        assert [stored.offset for stored in store.messages()] == [first.offset, second.offset]
        assert store.get(third.offset).status is GetStatus.OFFSET_OVERFLOW_ONE


def test_timed_flush_covers_what_is_committed(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        first = store.put(MESSAGE)
        runner.step("flush", after_ms=500)
        assert store.flushed_offset == 0
        runner.step("commit")
        store.put(MESSAGE)
        runner.step("flush", after_ms=10_000)
        assert watermarks(store)[1:3] == (first.size_bytes, first.size_bytes)


def test_flush_commits_first(tmp_path: Path) -> None:
    store, _ = opened(tmp_path, file_bytes=1024)
    with store:
        for _ in range(3):
            store.put(BIG)
        assert store.flush().durable
        assert len(set(watermarks(store)[1:])) == 1
        assert len(list(store.messages())) == 3


def test_kill_leaves_what_was_committed(tmp_path: Path) -> None:
    store, runner = opened(tmp_path / "live", file_bytes=1024)
    with store:
        results = [store.put(BIG) for _ in range(2)]
        runner.step("commit", after_ms=200)
        store.put(BIG)
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
    with open_store(tmp_path / "killed") as found:
        assert [stored.offset for stored in found.messages()] == [result.offset for result in results]
        assert found.read_only_reason is None
    with open_store(tmp_path / "live") as found:
        assert len(list(found.messages())) == 3


# ---- writes that fail --------------------------------------------------------------------------------------------


def test_record_that_is_put_during_the_write_is_not_committed(tmp_path: Path) -> None:
    class PutsMeanwhile(FaultyFiles):
        """A put arrives with the first write of the commit."""

        def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
            super().pwrite(file, data, offset)
            if "commitlog" in file.path and not late:
                late.append(store.put(MESSAGE))

    late: list[PutResult] = []
    store, runner = opened(tmp_path, files=PutsMeanwhile())
    with store:
        first = store.put(MESSAGE)
        runner.step("commit", after_ms=200)
        assert store.committed_offset == first.size_bytes == late[0].offset
        assert store.get(late[0].offset).status is GetStatus.OFFSET_OVERFLOW_ONE
        runner.step("commit", after_ms=200)
        assert store.get(late[0].offset).message is not None


class HalfWritingFiles(FaultyFiles):
    """A disk that writes only half of the next `short_writes` writes to log files."""

    short_writes = 0

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        if self.short_writes and "commitlog" in file.path:
            self.short_writes -= 1
            super().pwrite(file, data[: len(data) // 2], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
        super().pwrite(file, data, offset)


def test_write_that_fails_half_way_moves_nothing_and_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = HalfWritingFiles()
    store, runner = opened(tmp_path / "pool", files=files)
    twin = open_store(tmp_path / "twin", file_bytes=64 * PAGE)
    with store, twin:
        for each in (store, twin):
            each.put(MESSAGE)
        runner.step("commit", after_ms=200)
        before = watermarks(store)[2]
        for each in (store, twin):
            each.put(BIG)
        files.short_writes = 1
        assert runner.step("commit", after_ms=200) == 800
        assert "commit_failed" in caplog.text
        assert watermarks(store)[2] == before
        assert len(list(store.messages())) == 1
        assert store.put(MESSAGE).status is PutStatus.PUT_OK
        twin.put(MESSAGE)
        runner.step("commit", after_ms=200)
        assert store.committed_offset == store.max_offset
        assert store.read_only_reason is None
    assert log_bytes(tmp_path / "pool") == log_bytes(tmp_path / "twin")


def test_files_before_the_one_that_fails_are_committed(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, file_bytes=1024, files=files)
    with store:
        for _ in range(4):
            store.put(BIG)
        files.fail("pwrite", part=f"{1024:020d}", times=1)
        runner.step("commit", after_ms=200)
        assert (store.committed_offset, free_buffers(store)) == (1024, 2)
        runner.step("commit", after_ms=200)
        assert store.committed_offset == store.max_offset


def test_flush_that_cannot_commit_is_not_durable_and_puts_go_on(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, _ = opened(tmp_path, files=files)
    with store:
        store.put(MESSAGE)
        files.fail("pwrite", part="commitlog", times=1)
        failed = store.flush()
        assert (failed.durable, failed.flushed_offset, store.committed_offset) == (False, 0, 0)
        assert store.read_only_reason is None
        assert store.put(MESSAGE).status is PutStatus.PUT_OK
        assert store.flush().durable
        assert store.flushed_offset == store.max_offset
    assert not (tmp_path / "abort").exists()


def test_close_that_cannot_commit_keeps_the_abort_marker_and_says_why(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner = opened(tmp_path, files=files)
    durable = store.put(MESSAGE)
    runner.step("commit", after_ms=200)
    store.put(MESSAGE)
    files.fail("pwrite", part="commitlog")
    store.close()
    assert (tmp_path / "abort").exists()
    assert store.read_only_reason is not None
    assert "commit to" in store.read_only_reason
    assert store.flushed_offset == durable.size_bytes
    with open_store(tmp_path, file_bytes=64 * PAGE) as found:
        assert [stored.offset for stored in found.messages()] == [durable.offset]
        assert found.put(MESSAGE).queue_offset == 1
