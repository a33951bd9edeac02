"""Test messages by key, id and offset: complete up to the limit, no others (contract 5).

This holds for any content of the index.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.impl.reading import Log
from tornpage.impl.message.hosts import message_id
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.message.message import Message
from tornpage.impl.read.message_query import MessageQuery, QueryMessageResult, parse_message_id

EVER = (1 << 63) - 1


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Return an empty log of files of 1,024 bytes."""
    log = Log(tmp_path)
    yield log
    log.close()


@dataclass
class FakeIndex:
    """An index of one slot: each query gets every entry, newest first."""

    entries: list[int] = field(default_factory=list)
    last_update: tuple[int | None, int | None] = (None, None)
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    def put(self, offset: int, time: int) -> None:
        self.entries.append(offset)
        self.last_update = time, offset

    def candidates(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        self.asked.append((code, begin_ms, end_ms))
        return reversed(self.entries)


class Store:
    """A log with an index; each message is put with its key and indexed."""

    def __init__(self, log: Log, *, batch_max: int = 64) -> None:
        self.log = log
        self.index = FakeIndex()
        self.query = MessageQuery(self.index, log.reader, batch_max=batch_max)

    def put(self, topic: str, properties: dict[str, str], *, time: int = 5, sys_flag: int = 0) -> int:
        offset = self.log.put(
            Message(topic, b"b", properties=properties, sys_flag=sys_flag), store_timestamp=time, units=False
        )
        self.index.put(offset, time)
        return offset

    def ask(self, topic: str, key: str, *, max_num: int = 32, begin_ms: int = 0, end_ms: int = EVER) -> list[int]:
        with self.query.by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms) as result:
            for message in result.messages:
                decoded = message.message()
                assert (decoded.topic, decoded.offset) == (topic, message.offset)
            return [message.offset for message in result.messages]


def test_words_of_keys_and_the_unique_key_are_found_and_nothing_else(log: Log) -> None:
    store = Store(log)
    first = store.put("T", {"KEYS": "k1 k2", "UNIQ_KEY": "u u"})
    second = store.put("T", {"KEYS": "  k2  k1k2"})
    foreign = store.put("U", {"KEYS": "k1"})
    store.put("T", {"TAGS": "k1", "OTHER": "k1"})
    assert store.ask("T", "k1") == [first]
    assert store.ask("T", "k2") == [first, second]
    assert store.ask("T", "k1k2") == [second]
    assert store.ask("T", "u u") == [first]
    assert store.ask("U", "k1") == [foreign]
    for topic, key in (("T", "u"), ("T", ""), ("T", " "), ("T", "k1 k2"), ("T", "K1"), ("V", "k1"), ("\ud800", "k1")):
        assert store.ask(topic, key) == [], (topic, key)
    assert store.index.asked[0] == (key_hash("T", "k1"), 0, EVER)
    assert log.buffers.held == 0


def test_limit_counts_verified_messages_and_the_newest_win(log: Log) -> None:
    """RocketMQ counts the entries of the index, so collisions crowd out real messages."""
    store = Store(log)
    wanted = []
    for _ in range(12):
        wanted.append(store.put("T", {"KEYS": "k"}))
        store.put("T", {"KEYS": "collision"})
        store.put("U", {"KEYS": "k"})
    assert store.ask("T", "k", max_num=5) == wanted[-5:]
    assert store.ask("T", "k", max_num=100) == wanted
    assert store.ask("T", "k", max_num=0) == store.ask("T", "k", max_num=-1) == []
    assert Store.ask(store, "T", "k", max_num=1) == wanted[-1:]
    store.query = MessageQuery(store.index, log.reader, batch_max=3)
    assert store.ask("T", "k") == wanted[-3:]


def test_time_is_that_of_the_record_to_the_millisecond(log: Log) -> None:
    store = Store(log)
    offsets = [store.put("T", {"KEYS": "k"}, time=time) for time in (1000, 1001, 1999, 2000, 1500)]
    assert store.ask("T", "k", begin_ms=1001, end_ms=1999) == [offsets[1], offsets[2], offsets[4]]
    assert store.ask("T", "k", begin_ms=2000, end_ms=2000) == [offsets[3]]
    assert store.ask("T", "k", begin_ms=2001) == []
    assert store.ask("T", "k", begin_ms=2000, end_ms=1000) == []


def test_message_that_is_indexed_twice_comes_once(log: Log) -> None:
    store = Store(log)
    offset = store.put("T", {"KEYS": "k k", "UNIQ_KEY": "k"})
    later = store.put("T", {"KEYS": "k"})
    store.index.entries = [offset, offset, later, offset, later]
    assert store.ask("T", "k", max_num=2) == [offset, later]


def test_entries_that_point_nowhere_are_passed(log: Log) -> None:
    store = Store(log)
    gone = [store.put("T", {"KEYS": "k"}) for _ in range(12)]
    kept = [offset for offset in gone if offset >= 1024]
    store.index.entries += [-1, 3, gone[-1] + 4, log.end, log.end + 5000, 1 << 62]
    log.drop_first_file()
    assert store.ask("T", "k") == kept
    log.hidden_bytes = log.end - gone[-1]
    assert store.ask("T", "k") == kept[:-1]


def test_prepared_messages_have_keys_and_rolled_back_ones_none(log: Log) -> None:
    store = Store(log)
    prepared = store.put("T", {"KEYS": "k"}, sys_flag=0x04)
    store.put("T", {"KEYS": "k"}, sys_flag=0x0C)
    committed = store.put("T", {"KEYS": "k"}, sys_flag=0x08)
    assert store.ask("T", "k") == [prepared, committed]


def test_answer_says_how_far_the_index_has_come_whether_anything_was_found(log: Log) -> None:
    store = Store(log)
    offset = store.put("T", {"KEYS": "k"}, time=77)
    for key in ("k", "unknown"):
        with store.query.by_key("T", key, max_num=1, begin_ms=0, end_ms=EVER) as result:
            assert (result.index_last_update_timestamp, result.index_last_update_phyoffset) == (77, offset)


def test_empty_index_has_no_last_record(log: Log) -> None:
    store = Store(log)
    with store.query.by_key("T", "k", max_num=1, begin_ms=0, end_ms=EVER) as result:
        assert (result.index_last_update_timestamp, result.index_last_update_phyoffset) == (None, None)
    offset = store.put("T", {"KEYS": "k"}, time=0)
    with store.query.by_key("T", "k", max_num=1, begin_ms=0, end_ms=EVER) as result:
        assert (result.index_last_update_timestamp, result.index_last_update_phyoffset) == (0, offset)


def test_store_without_an_index_finds_nothing(log: Log) -> None:
    query = MessageQuery(None, log.reader, batch_max=64)
    assert query.by_key("T", "k", max_num=1, begin_ms=0, end_ms=EVER) == QueryMessageResult()


def test_record_by_place_has_to_begin_there(log: Log) -> None:
    store = Store(log)
    offsets = [store.put("T", {"KEYS": "k"}, time=time) for time in range(12)]
    size = offsets[1]
    for time, offset in enumerate(offsets):
        buffer = store.query.at(offset)
        assert buffer is not None
        with buffer:
            assert (buffer.offset, buffer.size_bytes, buffer.message().store_timestamp) == (offset, size, time)
        exact = store.query.at(offset, size)
        assert exact is not None
        exact.release()
        assert store.query.store_timestamp(offset) == time
    blank = offsets[9] + size
    for nowhere in (-1, 1, 4, blank, blank + 8, 1023, log.end, log.end + 1, 1 << 62):
        assert store.query.at(nowhere) is None, nowhere
        assert store.query.store_timestamp(nowhere) is None
    assert store.query.at(0, size - 1) is None
    assert store.query.at(0, 0) is None
    assert log.buffers.held == 0


def test_bytes_to_the_end_of_a_file_stop_where_readers_stop(log: Log) -> None:
    store = Store(log)
    offsets = [store.put("T", {"KEYS": "k"}) for _ in range(12)]
    first = store.query.rest_of_file(5)
    assert first is not None
    assert (first.offset, bytes(first)) == (5, bytes(log.files.mapped[0].view[5:]))
    last = store.query.rest_of_file(offsets[-1])
    assert last is not None
    assert last.size_bytes == log.end - offsets[-1]
    for buffer in (first, last):
        buffer.release()
    for nowhere in (-1, log.end, log.end + 1):
        assert store.query.rest_of_file(nowhere) is None
    log.hidden_bytes = log.end - offsets[-1]
    assert store.query.rest_of_file(offsets[-1]) is None
    assert log.buffers.held == 0


@pytest.mark.parametrize("host", [("10.0.0.5", 10911), ("2001:db8::2", 10911), ("1.2.3.4", -1)])
def test_message_id_is_read_back(host: tuple[str, int]) -> None:
    for offset in (0, 4096, (1 << 63) - 1):
        text = message_id(host, offset)
        assert parse_message_id(text) == (host, offset)
        assert parse_message_id(text.lower()) == (host, offset)


@pytest.mark.parametrize(
    "text", ["", "0" * 31, "0" * 33, "g" * 32, "00 " * 10 + "00", "0" * 55, "٣" * 32, "0x" + "0" * 30, "0" * 40]
)
def test_what_is_no_message_id(text: str) -> None:
    assert parse_message_id(text) is None
