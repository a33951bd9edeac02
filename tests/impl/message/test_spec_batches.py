"""Test batches against numbers measured at RocketMQ 4.9.3, and their unchecked fields."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import log_bytes, open_store
from tornpage.impl.message.message import BatchMember, MessageBatch, PutResult, PutStatus
from tornpage.properties.decode.record import Record, decode_record


def test_magic_and_checksum_of_the_client_are_not_looked_at(tmp_path: Path) -> None:
    good = batch_of(b"one", b"two2")
    assert good.body is not None
    spoilt = bytearray(good.body)
    for start in (0, 25):
        struct.pack_into(">II", spoilt, start + 4, 0xDEADBEEF, 0x12345678)
    for name, body in (("good", good.body), ("spoilt", bytes(spoilt))):
        with open_store(tmp_path / name, clock=lambda: 5_000) as store:
            assert store.put_batch(replace(good, body=body)).status is PutStatus.PUT_OK
    assert log_bytes(tmp_path / "good") == log_bytes(tmp_path / "spoilt")


def test_delay_of_a_message_is_stored_and_not_looked_at(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        put = store.put_batch(batch_of(BatchMember(b"one", "DELAY\x013"), BatchMember(b"two", "DELAY\x01x")))
        assert put.status is PutStatus.PUT_OK
        stored = list(store.messages())
    assert [(each.topic, each.queue_id, each.properties) for each in stored] == [
        ("TopicTest", 1, {"DELAY": "3"}),
        ("TopicTest", 1, {"DELAY": "x"}),
    ]


def test_property_of_both_is_stored_twice_and_that_of_the_batch_counts(tmp_path: Path) -> None:
    with open_store(tmp_path, trailer=False) as store:
        put = store.put_batch(batch_of(BatchMember(b"one", "A\x011\x02B\x012"), properties="A\x013"))
        (stored,) = store.messages()
    assert stored.properties == {"A": "3", "B": "2"}
    (data,) = log_bytes(tmp_path).values()
    assert data[: put.size_bytes].endswith(b"A\x011\x02B\x012\x02A\x013")


@pytest.mark.parametrize(("own", "common", "waits"), [("false", "", True), ("true", "false", False), ("", "", True)])
def test_a_batch_waits_as_its_own_properties_say(own: str, common: str, waits: bool, tmp_path: Path) -> None:
    member = BatchMember(b"one", f"WAIT\x01{own}" if own else "")
    with open_store(tmp_path, sync=True) as store:
        put = store.put_batch(batch_of(member, member, properties=f"WAIT\x01{common}" if common else ""))
        assert put.status is PutStatus.PUT_OK
        assert store.flushed_offset == (put.size_bytes if waits else 0)


def test_a_batch_without_a_born_time_is_born_when_it_comes(tmp_path: Path) -> None:
    batch = replace(batch_of(b"one", b"two"), born_timestamp=None)
    with open_store(tmp_path, clock=lambda: 1_700_000_000_123) as store:
        assert store.put_batch(batch).status is PutStatus.PUT_OK
    data = next(iter(log_bytes(tmp_path).values()))
    first = decode_record(data, offset=0, room_bytes=len(data))
    assert isinstance(first, Record)
    second = decode_record(data[first.size_bytes :], offset=first.size_bytes, room_bytes=len(data) - first.size_bytes)
    assert isinstance(second, Record)
    assert [record.born_timestamp for record in (first, second)] == [1_700_000_000_123] * 2


FIFTEEN = batch_of(*[b"x"] * 15)
MERGED = batch_of(BatchMember(b"", "A\x01" + "x" * 20_000), properties="B\x01" + "y" * 20_000)


@pytest.mark.parametrize(
    ("batch", "record_bytes_max", "status"),
    [
        (FIFTEEN, 1_000, PutStatus.MESSAGE_ILLEGAL),
        (FIFTEEN, 15 * 101, PutStatus.PUT_OK),
        (FIFTEEN, 15 * 101 - 1, PutStatus.MESSAGE_ILLEGAL),
        (FIFTEEN, 344, PutStatus.MESSAGE_ILLEGAL),
        (MERGED, 100_000, PutStatus.PROPERTIES_SIZE_EXCEEDED),
    ],
    ids=["sum", "sum at the limit", "sum by one", "body", "merged properties"],
)
def test_limits_of_a_batch(batch: MessageBatch, record_bytes_max: int, status: PutStatus, tmp_path: Path) -> None:
    """Each message takes more bytes in a record than in the body of the client.

    15 messages of one byte are 345 bytes in the body, and 15 records of 101 bytes here.
    """
    assert FIFTEEN.body is not None
    assert len(FIFTEEN.body) == 345
    with open_store(tmp_path, file_bytes=1 << 17, record_bytes_max=record_bytes_max, trailer=False) as store:
        put = store.put_batch(batch)
        assert put.status is status
        if status is not PutStatus.PUT_OK:
            assert put == PutResult(status)
            assert log_bytes(tmp_path) == {}
            assert store.put_batch(batch_of(b"")).queue_offset == 0
