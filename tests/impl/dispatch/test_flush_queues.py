"""Test the checkpoint of a running store: written with queues, never ahead of the disk."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, SetClock, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import QueueFlushPolicy
from tornpage.impl.dispatch.queue_flush import FlushConsumeQueues
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

BIG = replace(MESSAGE, body=bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


def written(directory: Path) -> int:
    """Return physicMsgTimestamp of the checkpoint file."""
    (timestamp,) = struct.unpack(">q", (directory / "checkpoint").read_bytes()[:8])
    return int(timestamp)


def opened(
    directory: Path, *, config: MessageStoreConfig | None = None, files: FaultyFiles | None = None
) -> tuple[MessageStore, HandRunner]:
    runner = HandRunner()
    clock = SetClock(ticking=True)
    parts = Parts({ThreadRunner: runner})
    return open_store(directory, config=config, files=files, clock=clock, parts=parts), runner


def known(store: MessageStore) -> int:
    return store._held.checkpoint.physic_msg_timestamp


# ---- the service -------------------------------------------------------------------------------------------------


class Queue:
    """A queue that records its flushes and may fail them."""

    def __init__(self) -> None:
        self.least_pages: list[int] = []
        self.broken = False

    def flush(self, least_pages: int = 0) -> int:
        """Record the flush."""
        self.least_pages.append(least_pages)
        if self.broken:
            raise OSError("broken")
        return 0


class NoFloor:
    """Records the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def sample(self) -> None:
        """Record the call."""
        self.calls.append("sample")

    def raise_floor(self) -> None:
        """Record the call."""
        self.calls.append("raise")


def service_of(
    directory: Path,
    queue: Queue,
    files: OsFiles,
    dispatched: Callable[[], int] = lambda: 0,
    floor: NoFloor | None = None,
) -> FlushConsumeQueues:
    checkpoint = Checkpoint(files, str(directory / "checkpoint"))
    checkpoint.start()

    def queues() -> Iterable[Queue]:
        return [queue]

    return FlushConsumeQueues(QueueFlushPolicy(), checkpoint, queues, dispatched=dispatched, floor=floor or NoFloor())


def test_rounds_come_each_second_and_each_minute_a_thorough_one_writes_the_checkpoint(tmp_path: Path) -> None:
    queue, files = Queue(), FaultyFiles()
    service = service_of(tmp_path, queue, files)
    for now_ms in (1_000, 2_000, 60_999, 61_000, 62_000, 120_999, 121_000):
        assert service.step(now_ms) == now_ms + 1_000
    assert queue.least_pages == [0, 2, 2, 0, 2, 2, 0]
    assert len([verb for verb, _ in files.calls if verb == "sync"]) == 3
    service._checkpoint.close()


@pytest.mark.parametrize("broken", ["queue", "checkpoint"])
def test_thorough_round_that_failed_is_thorough_again(broken: str, tmp_path: Path) -> None:
    queue, files = Queue(), FaultyFiles()
    service = service_of(tmp_path, queue, files)
    queue.broken = broken == "queue"
    if not queue.broken:
        files.fail("sync", times=1)
    with pytest.raises(OSError, match=r".*"):
        service.step(1_000)
    queue.broken = False
    service.step(2_000)
    assert queue.least_pages == [0, 0]
    assert files.calls[-1] == ("sync", str(tmp_path / "checkpoint"))
    service._checkpoint.close()


def test_checkpoint_says_of_the_queues_only_what_was_dispatched_before(tmp_path: Path) -> None:
    newest = [100]

    class Dispatching(Queue):
        """Dispatch a message during the flush of the queue."""

        def flush(self, least_pages: int = 0) -> int:
            newest.append(200)
            return super().flush(least_pages)

    service = service_of(tmp_path, Dispatching(), OsFiles(), lambda: newest[-1])
    service.step(1_000)
    assert struct.unpack(">qqq", (tmp_path / "checkpoint").read_bytes()[:24])[1:] == (100, 100)
    service._checkpoint.close()


# ---- in a store --------------------------------------------------------------------------------------------------


def test_running_store_writes_its_checkpoint(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        assert runner["flush-queues"].due_ms == 1_000
        first = store.put(MESSAGE)
        store.flush()
        assert written(tmp_path) == 0
        runner.step("flush-queues", after_ms=1_000)
        assert written(tmp_path) == first.store_timestamp
        store.put(MESSAGE)
        store.flush()
        runner.step("flush-queues", after_ms=59_999)
        assert written(tmp_path) == first.store_timestamp
        runner.step("flush-queues", after_ms=1)
        assert written(tmp_path) == known(store) > first.store_timestamp


def test_unflushed_record_is_not_in_the_checkpoint(tmp_path: Path) -> None:
    store, runner = opened(tmp_path)
    with store:
        store.put(MESSAGE)
        runner.step("flush-queues", after_ms=1_000)
        assert (written(tmp_path), known(store)) == (0, 0)


def test_every_flush_counts_also_one_that_nobody_waits_for(tmp_path: Path) -> None:
    """RocketMQ sets it only in rounds with requests: with WAIT=false it stays 0 forever."""
    store, runner = opened(tmp_path, config=config_of(sync=True))
    with store:
        result = store.put(replace(MESSAGE, properties="WAIT\x01false"))
        runner.step()
        assert known(store) == result.store_timestamp


@pytest.mark.parametrize("changes", [{}, {"transient_store_pool_enable": True}], ids=["plain", "pool"])
def test_checkpoint_is_never_newer_than_what_is_durable(changes: dict[str, Any], tmp_path: Path) -> None:
    config = replace(config_of(), flush_commit_log_least_pages=1, **changes)
    store, runner = opened(tmp_path, config=config)
    puts: list[PutResult] = []
    with store:
        runner.step("flush")
        for number in range(40):
            puts.append(store.put(BIG if number % 3 == 0 else MESSAGE))
            if changes and number % 4 == 0:
                runner.step("commit", after_ms=150)
            runner.step("flush", after_ms=50)
            durable = [put.store_timestamp for put in puts if put.offset + put.size_bytes <= store.flushed_offset]
            assert known(store) <= max(durable, default=0)
        assert known(store) > 0
        store.flush()
        assert known(store) == puts[-1].store_timestamp


def test_pool_alone_makes_nothing_known(tmp_path: Path) -> None:
    """The checkpoint of RocketMQ can be newer than the committed data (quirk 16.6).

    This happens with the pool.
    """
    store, runner = opened(tmp_path, config=replace(config_of(), transient_store_pool_enable=True))
    with store:
        first = store.put(MESSAGE)
        runner.step("flush", after_ms=500)
        assert known(store) == 0
        runner.step("commit")
        store.put(MESSAGE)
        runner.step("flush", after_ms=10_000)
        assert store.flushed_offset == first.size_bytes
        assert known(store) <= first.store_timestamp


def test_what_is_known_comes_once_the_flush_gets_there(tmp_path: Path) -> None:
    store, runner = opened(tmp_path, config=replace(config_of(), flush_commit_log_thorough_interval=1_000))
    with store:
        runner.step("flush")
        first = store.put(MESSAGE)
        runner.step("flush", after_ms=500)
        assert known(store) == 0
        runner.step("flush", after_ms=500)
        assert known(store) == first.store_timestamp


def test_reopened_store_keeps_what_it_knew(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    with store:
        last = store.put(MESSAGE)
    assert written(tmp_path) == last.store_timestamp
    with open_store(tmp_path) as again:
        again.flush()
        assert known(again) == last.store_timestamp
    assert written(tmp_path) == last.store_timestamp
