"""Test puts and gets of a store, including refusals."""

from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, SetClock, caught_up, log_bytes, open_store, snapshot
from tornpage.impl.message.message import GetResult, GetStatus, Message, PutResult, PutStatus

BAD_MESSAGES = [
    (Message("", b""), PutStatus.MESSAGE_ILLEGAL),
    (Message("t" * 128, b""), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", queue_id=-1), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", born_host=("nowhere", 1)), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", properties="\0"), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", properties="A\x01" + "x" * 32_767), PutStatus.PROPERTIES_SIZE_EXCEEDED),
    (Message("T", b"x" * 1024), PutStatus.MESSAGE_ILLEGAL),
]


# ---- put and get -------------------------------------------------------------------------------------------------


def test_put_answers_where_the_record_is(tmp_path: Path) -> None:
    with open_store(tmp_path, clock=SetClock(5000)) as store:
        first = store.put(Message("T", b"one", queue_id=3))
        second = store.put(Message("T", b"two", queue_id=3))
        assert first == PutResult(PutStatus.PUT_OK, 0, 115, 0, 5000, 1, ("127.0.0.1", 10911))
        assert second == PutResult(PutStatus.PUT_OK, 115, 115, 1, 5000, 1, ("127.0.0.1", 10911))
        assert first.message_id == "7F00000100002A9F0000000000000000"
        assert second.message_id == "7F00000100002A9F0000000000000073"
        assert first.stored
        assert store.max_offset == 230
        store.check()


def test_get_gives_back_what_was_put(tmp_path: Path) -> None:
    message = Message(
        "TopicTest", b"\0body", queue_id=9, properties={"KEYS": "k1", "TAGS": "A"}, flag=-3, sys_flag=0x08,
        born_timestamp=4000, born_host=("2001:db8::1", 77), store_host=("10.0.0.1", 88), reconsume_times=2,
        prepared_transaction_offset=99,
    )  # fmt: skip
    with open_store(tmp_path, clock=SetClock(5000)) as store:
        put = store.put(message)
        found = store.get(put.offset)
        assert found.status is GetStatus.FOUND
        stored = found.message
        assert stored is not None
        assert (stored.topic, stored.body, stored.queue_id) == (message.topic, message.body, 9)
        assert stored.properties == message.properties
        assert (stored.flag, stored.sys_flag, stored.reconsume_times) == (-3, 0x18, 2)
        assert (stored.born_timestamp, stored.born_host) == (4000, ("2001:db8::1", 77))
        assert (stored.store_timestamp, stored.store_host) == (5000, ("10.0.0.1", 88))
        assert stored.prepared_transaction_offset == 99
        assert (stored.offset, stored.size_bytes, stored.queue_offset) == (put.offset, put.size_bytes, 0)
        assert stored.message_id == put.message_id


@pytest.mark.parametrize(
    ("shift", "status"),
    [(-1, GetStatus.OFFSET_FOUND_NULL), (0, GetStatus.OFFSET_OVERFLOW_ONE), (1, GetStatus.OFFSET_OVERFLOW_BADLY)],
)
def test_get_beside_the_end(tmp_path: Path, shift: int, status: GetStatus) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        assert store.get(store.max_offset + shift) == GetResult(status)


def test_get_elsewhere(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        assert store.get(0) == GetResult(GetStatus.OFFSET_OVERFLOW_ONE)
        for _ in range(20):
            store.put(MESSAGE)
        assert store.get(-1) == GetResult(GetStatus.OFFSET_TOO_SMALL)
        assert store.get(1) == GetResult(GetStatus.OFFSET_FOUND_NULL)
        last_in_file = max(stored.offset + stored.size_bytes for stored in store.messages() if stored.offset < 1024)
        assert store.get(last_in_file) == GetResult(GetStatus.OFFSET_FOUND_NULL)
        assert store.get(1 << 62) == GetResult(GetStatus.OFFSET_OVERFLOW_BADLY)


def test_messages_come_in_order(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        results = [store.put(Message("T", str(number).encode(), queue_id=number % 3)) for number in range(40)]
        assert [stored.offset for stored in store.messages()] == [result.offset for result in results]
        assert [int(stored.body) for stored in store.messages()] == list(range(40))
        assert [result.queue_offset for result in results] == [number // 3 for number in range(40)]
        assert sorted(log_bytes(tmp_path)) == [f"{base:020d}" for base in range(0, store.max_offset, 1024)]


@pytest.mark.parametrize("left", [8, 9, 12, 99, 115, 122])
def test_any_rest_of_a_file_becomes_a_blank(tmp_path: Path, left: int) -> None:
    """The next record needs 115 bytes and 8 more; with less left, the file is closed."""
    with open_store(tmp_path, file_bytes=512) as store:
        store.put(Message("T", b"x" * (512 - left - 112)))
        assert store.max_offset == 512 - left
        assert store.put(Message("T", b"one")).offset == 512
        files = log_bytes(tmp_path)
    blank = left.to_bytes(4, "big") + bytes.fromhex("cbd43194")
    assert files[f"{0:020d}"][512 - left :] == blank.ljust(left, b"\0")


def test_a_record_that_fits_exactly_stays(tmp_path: Path) -> None:
    with open_store(tmp_path, file_bytes=512) as store:
        store.put(Message("T", b"x" * (512 - 123 - 112)))
        assert store.put(Message("T", b"one")).offset == 512 - 123
        assert store.max_offset == 504
        assert list(log_bytes(tmp_path)) == [f"{0:020d}"]


@pytest.mark.parametrize(("body_bytes", "status"), [(392, PutStatus.PUT_OK), (393, PutStatus.MESSAGE_ILLEGAL)])
def test_largest_record_of_a_file(tmp_path: Path, body_bytes: int, status: PutStatus) -> None:
    with open_store(tmp_path, file_bytes=512) as store:
        assert store.put(Message("T", b"x" * body_bytes)).status is status


@pytest.mark.parametrize(("limit", "status"), [(115, PutStatus.PUT_OK), (114, PutStatus.MESSAGE_ILLEGAL)])
def test_largest_record_that_is_allowed(tmp_path: Path, limit: int, status: PutStatus) -> None:
    with open_store(tmp_path, record_bytes_max=limit) as store:
        assert store.put(Message("T", b"one")).status is status


@pytest.mark.parametrize(("message", "status"), BAD_MESSAGES)
def test_refused_message_changes_nothing(tmp_path: Path, message: Message, status: PutStatus) -> None:
    with open_store(tmp_path) as store:
        store.put(Message("T", b"before"))
        caught_up(store)
        before = snapshot(tmp_path)
        assert store.put(message) == PutResult(status)
        assert snapshot(tmp_path) == before
        after = store.put(Message("T", b"after"))
        assert after.queue_offset == 1
        assert [stored.body for stored in store.messages()] == [b"before", b"after"]


def test_refused_first_message_makes_no_file(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for message, status in BAD_MESSAGES:
            assert store.put(message) == PutResult(status)
        assert log_bytes(tmp_path) == {}


def test_transactions_take_no_queue_offset(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        offsets = [store.put(Message("T", b"", sys_flag=flag)).queue_offset for flag in (0, 4, 8, 12, 0)]
    assert offsets == [0, 0, 1, 0, 2]
    with open_store(tmp_path) as store:
        assert store.put(Message("T", b"")).queue_offset == 3


def test_the_clock_is_read_before_and_under_the_lock(tmp_path: Path) -> None:
    """The clock is also read for the latency and by the open."""
    clock = SetClock(ticking=True)
    with open_store(tmp_path, clock=clock) as store:
        before, clock.calls = clock.now_ms, 0
        put = store.put(Message("T", b""))
        stored = store.get(put.offset).message
    assert stored is not None
    assert (stored.born_timestamp, stored.store_timestamp, clock.calls) == (before + 1, before + 2, 3)
