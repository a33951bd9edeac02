"""Test long polling on whole stores: waiting threads, property filters, deletion, close."""

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import FaultyFiles, HandRunner, SetClock, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import NotReadable, StoreClosed, TooManyHeldPulls
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import GetStatus, Message
from tornpage.impl.parts import Parts
from tornpage.impl.read.filters import FilterBitMaps, PropertyFilter
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore

LONG_MS = 600_000
PATIENCE_S = 30
MULTI = replace(config_of(), enable_multi_dispatch=True, enable_lmq=True)
EXTENDED = replace(config_of(), enable_consume_queue_ext=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(tmp_path) as opened:
        yield opened


def pull(store: MessageStore, offset: int = 0, *, hold_ms: int = LONG_MS) -> "Future[GetMessageResult]":
    return store.pull_async("group", "T", queue_id=0, offset=offset, hold_ms=hold_ms)


def by_hand(
    directory: Path,
    config: MessageStoreConfig | None = None,
    bit_maps: FilterBitMaps | None = None,
    files: OsFiles | None = None,
) -> tuple[MessageStore, HandRunner]:
    runner = HandRunner()
    store = MessageStore.open(
        directory,
        config or config_of(),
        files=files or OsFiles(),
        clock=SetClock(ticking=True),
        parts=Parts({ThreadRunner: runner}),
        filter_bit_map=None if bit_maps is None else bit_maps.bit_map_of,
    )
    return store, runner


def dispatched(runner: HandRunner) -> None:
    runner.step("reput")
    runner.step("pull-hold")


# ---- threads -----------------------------------------------------------------------------------------------------


def test_a_message_that_is_put_answers_who_waits(store: MessageStore) -> None:
    answer = pull(store)
    assert store.held_pulls == 1
    store.put(Message("T", b"body"))
    with answer.result(PATIENCE_S) as found:
        assert [message.message().body for message in found.messages] == [b"body"]
    assert store.held_pulls == 0


def test_who_waits_is_told_when_his_time_is_over(store: MessageStore) -> None:
    assert pull(store, hold_ms=1).result(PATIENCE_S).status is GetStatus.NO_MATCHED_LOGIC_QUEUE


def test_consumers_that_only_wait_read_every_message_in_order(store: MessageStore) -> None:
    """A lost wake-up shows as a consumer that waits for ten minutes."""
    count, consumers = 200, 4
    read: list[list[bytes]] = [[] for _ in range(consumers)]

    def consume(bodies: list[bytes]) -> None:
        offset = 0
        while len(bodies) < count:
            with pull(store, offset).result(PATIENCE_S) as found:
                bodies += [message.message().body for message in found.messages]
                offset = found.next_begin_offset

    threads = [threading.Thread(target=consume, args=(bodies,), daemon=True) for bodies in read]
    for thread in threads:
        thread.start()
    sent = [b"%d" % number for number in range(count)]
    for body in sent:
        store.put(Message("T", body))
    for thread in threads:
        thread.join(PATIENCE_S)
    assert read == [sent] * consumers


def test_a_store_that_closes_ends_those_who_wait(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    answers = [pull(store) for _ in range(3)]
    store.close()
    assert not wait(answers, PATIENCE_S).not_done
    assert all(isinstance(answer.exception(0), StoreClosed) for answer in answers)
    with pytest.raises(StoreClosed):
        pull(store)


def test_a_callback_may_close_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    closed = threading.Event()

    def close(_: "Future[GetMessageResult]") -> None:
        store.close()
        closed.set()

    pull(store).add_done_callback(close)
    store.put(Message("T", b"body"))
    assert closed.wait(PATIENCE_S)
    with pytest.raises(StoreClosed):
        pull(store)


def test_who_reads_nothing_of_a_store_that_may_not_be_read(store: MessageStore) -> None:
    answer = pull(store)
    store.running_flags.set(RunningFlag.NOT_READABLE)
    with pytest.raises(NotReadable):
        pull(store)
    store.put(Message("T", b"body"))
    assert isinstance(answer.exception(PATIENCE_S), NotReadable)


# ---- by hand -----------------------------------------------------------------------------------------------------


def test_a_filter_over_properties_looks_into_the_records(tmp_path: Path) -> None:
    store, runner = by_hand(tmp_path)
    with store:
        wanted = PropertyFilter("colour = 'red'")
        answer = store.pull_async("group", "T", queue_id=0, offset=0, message_filter=wanted, hold_ms=LONG_MS)
        store.put(Message("T", b"blue", properties={"colour": "blue"}))
        dispatched(runner)
        assert not answer.done()
        store.put(Message("T", b"red", properties={"colour": "red"}))
        dispatched(runner)
        with answer.result(0) as found:
            assert [message.message().body for message in found.messages] == [b"red"]


def test_a_filter_with_bits_is_asked_with_those_of_the_extension(tmp_path: Path) -> None:
    bit_maps = FilterBitMaps()
    store, runner = by_hand(tmp_path, EXTENDED, bit_maps)
    with store:
        wanted = bit_maps.register("group", "T", "colour = 'red'", born_ms=0)
        answer = store.pull_async("group", "T", queue_id=0, offset=0, message_filter=wanted, hold_ms=LONG_MS)
        for body in (b"blue", b"red"):
            assert not answer.done()
            store.put(Message("T", body, properties={"colour": body.decode()}))
            dispatched(runner)
        with answer.result(0) as found:
            assert [message.message().body for message in found.messages] == [b"red"]


def test_who_waits_for_a_light_queue_hears_of_messages_that_name_it(tmp_path: Path) -> None:
    store, runner = by_hand(tmp_path, MULTI)
    with store:
        answer = store.pull_async("group", "%LMQ%a", queue_id=0, offset=0, hold_ms=LONG_MS)
        store.put(Message("T", b"body", properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
        dispatched(runner)
        with answer.result(0) as found:
            assert found.status is GetStatus.FOUND


def test_who_waits_on_a_slave_is_woken_too(tmp_path: Path) -> None:
    """Dispatch makes its queues, because the open failed to make them."""
    with open_store(tmp_path) as master:
        master.put(Message("T", b"body"))
    shutil.rmtree(tmp_path / "consumequeue")
    files = FaultyFiles()
    files.fail("create", part="/consumequeue.unfinished/", times=1)
    store, runner = by_hand(tmp_path, replace(config_of(), broker_role=BrokerRole.SLAVE), files=files)
    with store:
        answer = pull(store)
        runner.step("pull-hold")
        assert not answer.done()
        dispatched(runner)
        with answer.result(0) as found:
            assert found.status is GetStatus.FOUND


def test_who_waits_in_a_topic_that_is_deleted_is_told(tmp_path: Path) -> None:
    store, runner = by_hand(tmp_path)
    with store:
        store.put(Message("T", b"body"))
        runner.step("reput")
        answer = pull(store, 1)
        runner.step("pull-hold")
        assert not answer.done()
        assert store.clean_unused_topics(()) == ("T",)
        runner.step("pull-hold")
        assert answer.result(0).status is GetStatus.NO_MATCHED_LOGIC_QUEUE


def test_a_message_that_nobody_may_read_yet_wakes_nobody(tmp_path: Path) -> None:
    pooled = replace(config_of(), transient_store_pool_enable=True, transient_store_pool_size=2)
    store, runner = by_hand(tmp_path, pooled)
    with store:
        answer = pull(store)
        store.put(Message("T", b"body"))
        dispatched(runner)
        assert not answer.done()
        runner.step("commit", after_ms=200)
        dispatched(runner)
        with answer.result(0) as found:
            assert found.status is GetStatus.FOUND


def test_looks_of_the_service_are_no_gets_in_the_statistics(tmp_path: Path) -> None:
    store, runner = by_hand(tmp_path)
    with store:
        answer = store.pull_async("group", "T", queue_id=0, offset=0, message_filter=TagFilter("TagA"), hold_ms=LONG_MS)
        for tag in ("TagB", "TagB", "TagA"):
            store.put(Message("T", b"body", properties={"TAGS": tag}))
            dispatched(runner)
        answer.result(0).release()
        statistics = store.read_statistics()
        assert (statistics.found_count, statistics.miss_count) == (1, 1)


def test_settings_say_how_many_wait_and_for_how_long_without_long_polling(tmp_path: Path) -> None:
    config = replace(config_of(), max_held_pulls=1, long_polling_enable=False, short_polling_time_mills=1_000)
    store, runner = by_hand(tmp_path, config)
    with store:
        answer = pull(store)
        with pytest.raises(TooManyHeldPulls):
            pull(store)
        runner.step("pull-hold", after_ms=999)
        assert not answer.done()
        runner.step("pull-hold", after_ms=1)
        assert answer.result(0).status is GetStatus.NO_MATCHED_LOGIC_QUEUE
