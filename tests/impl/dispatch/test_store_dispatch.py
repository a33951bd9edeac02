"""Test dispatch in whole stores: against the files of RocketMQ, and with real threads."""

import shutil
import threading
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.golden import CASES, golden, opened, read
from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import Arrivals, HandRunner, config_of, open_store, put, snapshot
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.message.message import Message, MessageBatch
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

WHOLE = [case for case in CASES if int(case[:2]) < 7]
"""Stores of RocketMQ with a clean exit and without bit maps.

Only the broker of RocketMQ could compute bit maps.
"""


def queue_files(directory: Path) -> dict[str, bytes | None]:
    return {path: data for path, data in snapshot(directory).items() if path.startswith("consumequeue/") and data}


@pytest.mark.parametrize("case", WHOLE)
def test_queues_of_rocketmq_are_right_and_stay(case: str, tmp_path: Path) -> None:
    folder = golden(case)
    shutil.copytree(folder / "store", tmp_path / "store", copy_function=shutil.copyfile)
    if read(folder / "config.json")["lastExit"] != "clean":
        pytest.skip("killed")
    before = queue_files(tmp_path / "store")
    with opened(tmp_path / "store", folder, parts=Parts({ThreadRunner: HandRunner()})) as store:
        assert store.findings == ()
        assert store.dispatch_behind_bytes == 0
    assert before
    assert queue_files(tmp_path / "store") == before


@pytest.mark.parametrize("case", WHOLE)
def test_queues_made_from_the_log_alone_are_those_of_rocketmq(case: str, tmp_path: Path) -> None:
    """The files are equal byte for byte, except units of records that the log no longer has."""
    folder = golden(case)
    shutil.copytree(folder / "store", tmp_path / "store", copy_function=shutil.copyfile)
    right = queue_files(tmp_path / "store")
    for name in ("consumequeue", "index"):
        shutil.rmtree(tmp_path / "store" / name, ignore_errors=True)
    with opened(tmp_path / "store", folder, parts=Parts({ThreadRunner: HandRunner()})) as store:
        log_min = store.min_offset
        assert {finding.severity for finding in store.findings} <= {"note"}
    made = queue_files(tmp_path / "store")
    assert made
    if not log_min:
        assert made == right
    for path, data in made.items():
        theirs = right[path]
        assert theirs is not None
        assert data is not None
        for position in range(0, len(data), 20):
            unit = data[position : position + 20]
            if int.from_bytes(theirs[position : position + 8], "big") >= log_min:
                assert unit == theirs[position : position + 20], (path, position)


# ---- threads -----------------------------------------------------------------------------------------------------

PRODUCERS = 4
CONFIGS = {
    "async": replace(config_of(file_bytes=8192), mapped_files_ahead=1),
    "sync": replace(config_of(file_bytes=8192), flush_disk_type=FlushDiskType.SYNC_FLUSH),
    "pool": replace(config_of(file_bytes=8192), transient_store_pool_enable=True, mapped_files_ahead=1),
    "extension": replace(config_of(file_bytes=8192), enable_consume_queue_ext=True),
}


def produce(store: MessageStore, producer: int, puts: int, stored: list[int]) -> None:
    for number in range(puts):
        body = f"{producer}:{number}".encode()
        message: Message | MessageBatch = Message("T", body, queue_id=number % 3, properties={"KEYS": f"k{producer}"})
        if number % 7 == 0:
            message = replace(batch_of(body, body), topic="T", queue_id=number % 3)
        result = put(store, message)
        assert result.stored, result
        stored.append(result.message_count)


def every_message_is_in_its_queue_once(store: MessageStore, count: int) -> None:
    """Each queue has its own messages, in the order of the log."""
    by_queue: dict[tuple[str, int], list[int]] = defaultdict(list)
    for message in store.messages():
        by_queue[message.topic, message.queue_id].append(message.offset)
    assert sum(map(len, by_queue.values())) == count
    assert sorted(store.queues()) == sorted(by_queue)
    for (topic, queue_id), offsets in by_queue.items():
        found: list[int] = []
        while len(found) < len(offsets):
            with store.get_message(topic, queue_id, len(found)) as pulled:
                assert pulled.messages, pulled.status
                found += [buffer.message().offset for buffer in pulled.messages]
        assert found == offsets
        assert store.max_offset_in_queue(topic, queue_id) == len(offsets)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_threads_put_and_dispatch_catches_up(config: MessageStoreConfig, tmp_path: Path) -> None:
    arrivals = Arrivals()
    store = open_store(tmp_path, config=config, arriving=[arrivals])
    stored: list[int] = []
    with store:
        producers = [
            threading.Thread(target=produce, args=(store, producer, 100, stored)) for producer in range(PRODUCERS)
        ]
        for thread in producers:
            thread.start()
        for thread in producers:
            thread.join()
        store.flush()
        arrivals.wait_for(sum(stored), "T")
        every_message_is_in_its_queue_once(store, sum(stored))
        assert len(arrivals.heard) == sum(stored)
        store._held.derived.queues.check()
    assert store.read_only_reason is None
    with open_store(tmp_path, config=config) as again:
        assert again.findings == ()
        every_message_is_in_its_queue_once(again, sum(stored))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_close_dispatches_what_is_left(config: MessageStoreConfig, tmp_path: Path) -> None:
    store = open_store(tmp_path, config=config)
    stored: list[int] = []
    produce(store, 0, 50, stored)
    store.close()
    assert store.read_only_reason is None
    assert not (tmp_path / "abort").exists()
    with open_store(tmp_path, config=config, parts=Parts({ThreadRunner: HandRunner()})) as again:
        assert again.findings == ()
        every_message_is_in_its_queue_once(again, sum(stored))


def test_readers_see_whole_queues_while_they_grow(tmp_path: Path) -> None:
    """Contract 17: a queue never shrinks, and below its maximum every number can be read."""
    stored: list[int] = []
    with open_store(tmp_path, config=CONFIGS["async"]) as store:
        producer = threading.Thread(target=produce, args=(store, 0, 300, stored))
        producer.start()
        seen = 0
        while producer.is_alive() or store.dispatch_behind_bytes:
            maximum = store.max_offset_in_queue("T", 0)
            assert maximum >= seen
            seen = maximum
            if maximum:
                with store.get_message("T", 0, maximum - 1) as pulled:
                    assert [buffer.queue_offset for buffer in pulled.messages][:1] == [maximum - 1]
        producer.join()
