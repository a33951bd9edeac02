"""Test records and limits against numbers measured at RocketMQ 4.9.3."""

import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.records import record_of
from tests.support.impl.stores import MESSAGE, SetClock, open_store
from tornpage.impl.message import codec
from tornpage.impl.message.message import Message, PutStatus

OK, ILLEGAL, TOO_LONG = PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED


@pytest.mark.parametrize("sys_flag", [0x01, 0x02, 0x03, 0x40, 0x80, 0x100, 0x4000_0000, -(1 << 31), -1 & ~0x3C])
def test_flags_that_mean_nothing_to_the_store_are_kept(sys_flag: int) -> None:
    stored = codec.decode_record(memoryview(record_of(Message("T", b"b", sys_flag=sys_flag))), 0)
    assert stored.sys_flag == sys_flag
    assert codec.has_consume_queue(stored.sys_flag)


@pytest.mark.parametrize("trailer", [True, False])
def test_compressed_body_is_stored_and_summed_as_it_came(trailer: bool, tmp_path: Path) -> None:
    body = zlib.compress(b"Hello RocketMQ" * 20)
    with open_store(tmp_path, trailer=trailer) as store:
        put = store.put(replace(MESSAGE, body=body, sys_flag=0x01))
        stored = store.get(put.offset).message
    assert stored is not None
    assert (stored.body, stored.sys_flag) == (body, 0x01)
    assert stored.body_crc == zlib.crc32(body) & 0x7FFF_FFFF


def test_store_timestamps_follow_a_clock_that_is_set_back(tmp_path: Path) -> None:
    clock = SetClock()
    with open_store(tmp_path, clock=clock) as store:
        for clock.now_ms in (5_000, 9_000, 2_000, 2_000, 7_000):
            assert store.put(MESSAGE).store_timestamp == clock.now_ms
        assert [stored.store_timestamp for stored in store.messages()] == [5_000, 9_000, 2_000, 2_000, 7_000]
        assert [stored.queue_offset for stored in store.messages()] == [0, 1, 2, 3, 4]
    with open_store(tmp_path) as store:
        assert store.findings == ()


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (replace(MESSAGE, topic="t" * 127), OK),
        (replace(MESSAGE, topic="t" * 128), ILLEGAL),
        (replace(MESSAGE, topic="\u00e9" * 63 + "t"), OK),
        (replace(MESSAGE, topic="\u00e9" * 64), ILLEGAL),
        (replace(MESSAGE, topic="\u4e2d" * 43), ILLEGAL),
        (replace(MESSAGE, properties="A\x01" + "x" * 32_765), OK),
        (replace(MESSAGE, properties="A\x01" + "x" * 32_766), TOO_LONG),
        (replace(MESSAGE, properties="A\x01" + "\u00e9" * 20_000), TOO_LONG),
        (replace(MESSAGE, properties="DELAY\x013\x02A\x01" + "x" * 32_750), TOO_LONG),
        (replace(MESSAGE, body=bytes(100_000)), ILLEGAL),
        (replace(MESSAGE, body=bytes(100_000 - 100)), OK),
        (replace(MESSAGE, body=bytes(100_000 - 99)), ILLEGAL),
    ],
    ids=lambda value: value.name if isinstance(value, PutStatus) else None,
)
def test_limits_of_a_message(message: Message, status: PutStatus, tmp_path: Path) -> None:
    """The limit of a record covers all its bytes, 100,000 here.

    MESSAGE takes 100 besides its body.
    """
    with open_store(tmp_path, file_bytes=1 << 17, record_bytes_max=100_000, trailer=False) as store:
        assert store.put(message).status is status
