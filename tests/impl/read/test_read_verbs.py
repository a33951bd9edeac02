"""Test the reads of a store: open, closed, closed meanwhile, counters, and late buffers."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.reading import Reader
from tests.support.impl.stores import SetClock, caught_up
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BufferReleased, NotReadable, StoreClosed
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import GetResult, GetStatus, Message
from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.read.filters import FilterBitMaps
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore


def config_of(**changes: Any) -> MessageStoreConfig:
    small: dict[str, Any] = {
        "mapped_file_size_commit_log": 4096, "mapped_file_size_consume_queue": 200, "max_hash_slot_num": 10,
        "max_index_num": 40, "mapped_files_ahead": 0,
    }  # fmt: skip
    return MessageStoreConfig(**(small | changes))


@dataclass
class Opened:
    """A store of 30 messages, ten in each of three queues."""

    store: MessageStore
    clock: SetClock
    offsets: list[int]

    @property
    def reads(self) -> MessageStore:
        """The verbs under test."""
        return self.store

    def close(self) -> None:
        """Close it."""
        self.store.close()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Fill a store on a real directory and dispatch all of it."""
    clock, config = SetClock(1000), config_of()
    with MessageStore.open(tmp_path, config, files=OsFiles(), clock=clock) as store:
        offsets = []
        for number in range(30):
            clock.now_ms += 1
            message = Message("T", b"%d" % number, queue_id=number % 3, properties={"KEYS": f"k{number % 5}"})
            offsets.append(store.put(message).offset)
        caught_up(store)
        yield Opened(store, clock, offsets)


VERBS: list[Callable[[MessageStore], object]] = [
    lambda reads: reads.get_message("T", 0, 0),
    lambda reads: reads.query_message("T", "k1"),
    lambda reads: reads.message_by_id("0" * 32),
    lambda reads: reads.select_message_by_offset(0),
    lambda reads: reads.commit_log_data(0),
    lambda reads: reads.queues(),
    lambda reads: reads.min_offset_in_queue("T", 0),
    lambda reads: reads.max_offset_in_queue("T", 0),
    lambda reads: reads.message_total_in_queue("T", 0),
    lambda reads: reads.commit_log_offset_in_queue("T", 0, 0),
    lambda reads: reads.store_timestamp_in_queue("T", 0, 0),
    lambda reads: reads.earliest_message_time("T", 0),
    lambda reads: reads.earliest_message_time(),
    lambda reads: reads.offset_in_queue_by_time("T", 0, 0),
    lambda reads: reads.message_ids_in_queue("T", 0, 0, 10),
    lambda reads: reads.is_in_disk("T", 0, 0),
]


@pytest.mark.parametrize("number", range(len(VERBS)))
def test_every_read_of_a_closed_store_is_refused(opened: Opened, number: int) -> None:
    answer = VERBS[number](opened.reads)
    if hasattr(answer, "release"):
        answer.release()
    opened.close()
    with pytest.raises(StoreClosed):
        VERBS[number](opened.reads)


def test_answers_agree_with_each_other(opened: Opened) -> None:
    reads = opened.reads
    assert reads.queues() == [("T", 0), ("T", 1), ("T", 2)]
    for queue_id in range(3):
        with reads.get_message("T", queue_id, 0) as result:
            assert [buffer.offset for buffer in result.messages] == opened.offsets[queue_id::3]
    with reads.query_message("T", "k3", max_num=4) as found:
        assert [buffer.offset for buffer in found.messages] == opened.offsets[3::5][-4:]
        assert [buffer.queue_offset for buffer in found.messages] == [4, 6, 7, 9]
        assert (found.index_last_update_timestamp, found.index_last_update_phyoffset) == (1030, opened.offsets[-1])
    with reads.query_message("T", "k3", begin_ms=1005, end_ms=1014) as found:
        assert [buffer.offset for buffer in found.messages] == [opened.offsets[8], opened.offsets[13]]
    for number in (0, 17):
        put = opened.store.get(opened.offsets[number]).message
        assert put is not None
        assert reads.message_by_id(put.message_id).message == put
        foreign = ("01020304" + put.message_id[8:]).upper()
        assert reads.message_by_id(foreign).status is GetStatus.OFFSET_FOUND_NULL
        for malformed in ("", "no id", put.message_id[:-1], put.message_id + "0", "g" * 32, " " + put.message_id[1:]):
            assert reads.message_by_id(malformed) == GetResult(GetStatus.OFFSET_FOUND_NULL)
    assert [reads.offset_in_queue_by_time("T", 1, time) for time in (0, 1002, 1003, 1005, 1006, 2000)] == [
        0,
        0,
        1,
        1,
        2,
        10,
    ]
    assert reads.earliest_message_time() == 1001
    assert reads.earliest_message_time("T", 2) == 1003
    assert reads.earliest_message_time("unknown") is None
    data = reads.commit_log_data(opened.offsets[1])
    assert data is not None
    with data:
        assert data.view == opened.store._log.mapped[0].view[opened.offsets[1] : opened.store.max_offset]
    assert reads._reads.buffers.held == 0


def test_operator_can_stop_reads_by_queue(opened: Opened) -> None:
    opened.store.running_flags.set(RunningFlag.NOT_READABLE)
    with pytest.raises(NotReadable, match="NOT_READABLE"):
        opened.reads.get_message("T", 0, 0)
    opened.store.running_flags.clear(RunningFlag.NOT_READABLE)
    opened.reads.get_message("T", 0, 0).release()


def test_buffers_of_a_closed_store_are_errors_and_views_go_on(opened: Opened) -> None:
    result = opened.reads.get_message("T", 0, 0)
    view, first = result.messages[0].view, bytes(result.messages[0])
    opened.close()
    for buffer in result.messages:
        with pytest.raises(BufferReleased):
            buffer.message()
    result.release()
    assert bytes(view) == first
    assert opened.reads.leaked_buffers == 1
    del view
    assert opened.reads.leaked_buffers == 0


def test_read_that_a_close_overtakes_says_so(opened: Opened) -> None:
    class Closing:
        def matches_unit(self, *_: object) -> bool:
            return True

        def matches_record(self, *_: object) -> bool:
            opened.close()
            return True

    with pytest.raises(StoreClosed):
        opened.reads.get_message("T", 0, 0, message_filter=Closing())
    assert opened.reads._reads.buffers.held == 0
    assert opened.reads.leaked_buffers == 0


def test_threads_read_while_the_store_is_closed(opened: Opened) -> None:
    """Each answer is right, StoreClosed or BufferReleased; nothing stays mapped."""
    wrong: list[BaseException] = []
    started = threading.Barrier(5)

    def read() -> None:
        started.wait()
        try:
            while True:
                with opened.reads.get_message("T", 1, 0) as result:
                    assert result.status is GetStatus.FOUND
                    assert [int(buffer.message().body) for buffer in result.messages] == list(range(1, 30, 3))
                with opened.reads.query_message("T", "k2") as found:
                    assert [int(buffer.message().body) for buffer in found.messages] == list(range(2, 30, 5))
                assert opened.reads.offset_in_queue_by_time("T", 0, 1004) == 1
        except (StoreClosed, BufferReleased):
            pass
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    opened.clock.now_ms += 1
    opened.close()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert (opened.reads._reads.buffers.held, opened.reads.leaked_buffers) == (0, 0)


def test_reads_by_queue_are_counted(opened: Opened) -> None:
    reads = opened.reads
    for offset in (0, 4, 10, 11):
        opened.clock.now_ms += 300
        reads.get_message("T", 0, offset, group="G").release()
    reads.get_message("T", 1, 0, max_msg_nums=2, group="H").release()
    reads.get_message("unknown", 1, 0).release()
    counted = reads.read_statistics()
    assert (counted.found_count, counted.miss_count, counted.transferred_count) == (3, 3, 18)
    end = opened.store.max_offset
    assert [(fall.topic, fall.queue_id, fall.group, fall.behind_bytes) for fall in counted.disk_fall] == [
        ("T", 0, "G", end - opened.offsets[27]), ("T", 1, "H", end - opened.offsets[7]),
    ]  # fmt: skip


def test_operator_gets_texts(opened: Opened) -> None:
    opened.reads.get_message("T", 0, 0).release()
    info = opened.reads.runtime_info()
    assert all(isinstance(value, str) for value in info.values())
    assert (info["putMessageTimesTotal"], info["commitLogMinOffset"]) == ("30", "0")
    assert info["commitLogMaxOffset"] == str(opened.store.max_offset)
    assert info["getFoundTps"] == info["putTps"] == ""
    assert 0 <= float(info["commitLogDiskRatio"]) <= 1
    assert 0 <= float(info["consumeQueueDiskRatio"]) <= 1
    assert info["runtime"] == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"
    opened.clock.now_ms += 90_061_000
    opened.reads.get_message("T", 0, 0).release()
    assert opened.reads.runtime_info()["runtime"] == "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"


@pytest.mark.parametrize(("checks", "next_offset"), [(False, 77), (True, 10)])
def test_slave_leaves_offsets_to_its_master_unless_told_otherwise(
    opened: Opened, checks: bool, next_offset: int
) -> None:
    config = config_of(broker_role=BrokerRole.SLAVE, offset_check_in_slave=checks)
    reads = Reader(opened.store, config, opened.clock)
    assert reads.get_message("T", 0, 77).next_begin_offset == next_offset


def test_limits_come_from_the_configuration(opened: Opened) -> None:
    config = config_of(max_transfer_count_on_message_in_memory=3, max_transfer_count_on_message_in_disk=2)
    for memory_bytes, count in ((1 << 40, 3), (1, 2)):
        reads = Reader(opened.store, config, opened.clock, memory_bytes=memory_bytes)
        with reads.get_message("T", 0, 0) as result:
            assert (len(result.messages), result.suggest_pulling_from_slave) == (count, count == 2)
        assert reads.is_in_disk("T", 0, 0) is (count == 2)


def test_bit_maps_in_the_extension_spare_looks_at_the_log(tmp_path: Path) -> None:
    """The bit map answers for the filter of one consumer.

    Messages from before its registration are read from the log.
    """
    clock, maps = SetClock(1000), FilterBitMaps()
    config = config_of(enable_consume_queue_ext=True, mapped_file_size_consume_queue_ext=256)
    looked: list[str] = []

    class Looking:
        def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
            return wanted.matches_unit(tags_code, ext)

        def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
            looked.append(properties()["n"])
            return wanted.matches_record(properties)

    with MessageStore.open(tmp_path, config, files=OsFiles(), clock=clock, filter_bit_map=maps.bit_map_of) as store:
        for number in range(12):
            if number == 4:
                caught_up(store)
                wanted = maps.register("G", "T", "n >= 9 OR n = 1", born_ms=clock.now_ms)
            clock.now_ms += 1
            store.put(Message("T", b"", properties={"n": str(number)}))
        caught_up(store)
        with store.get_message("T", 0, 0, message_filter=Looking()) as result:
            assert [buffer.queue_offset for buffer in result.messages] == [1, 9, 10, 11]
            assert result.next_begin_offset == 12
    assert looked == ["0", "1", "2", "3", "9", "10", "11"]
