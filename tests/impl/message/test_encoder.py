"""Test the encoder of a message: trailer by hand, hosts, and every refusal."""

import zlib
from typing import Any

import pytest

from tests.support.impl.records import V4_LOOPBACK, check, record_of, refusal
from tornpage.impl.message import codec
from tornpage.impl.message.hosts import Host
from tornpage.impl.message.message import Message, PutStatus

# ---- trailer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_properties", "before_trailer"),
    [
        ("", b""),
        ("A\x01b", b"A\x01b\x02"),
        ("A\x01b\x02", b"A\x01b\x02"),
        ("A\x01b\x02__CRC32#\x010123456789\x02", b"A\x01b\x02"),
        ("__CRC32#\x010123456789\x02A\x01b", b"A\x01b\x02"),
        ("__CRC32#\x01x", b""),
        ({"A": "b", "__CRC32#": "1"}, b"A\x01b\x02"),
        ({"A__CRC32#": "b"}, b"A__CRC32#\x01b\x02"),
        ("A\x01__CRC32#", b"A\x01__CRC32#\x02"),
    ],
)
def test_trailer_by_hand(given_properties: str | dict[str, str], before_trailer: bytes) -> None:
    record = record_of(Message("T", b"body", properties=given_properties), trailer=True, physical_offset=77)
    value = zlib.crc32(record[:-20]) & 0x7FFFFFFF
    digits = str(value).rjust(10, "0")
    least_significant_first = "".join(digits[9 - place] for place in range(10))
    assert record[-20:] == b"__CRC32#\x01" + least_significant_first.encode() + b"\x02"
    properties = record[92 + 4 :]
    assert properties == before_trailer + record[-20:]
    assert record[94:96] == len(properties).to_bytes(2, "big")
    assert record[:4] == len(record).to_bytes(4, "big")
    assert check(record, offset=77) == (len(record), None)


def test_trailer_digits_are_padded() -> None:
    """A checksum below one thousand million has its leading zeros at the end."""
    for number in range(1000):
        record = record_of(Message("T", str(number).encode()), trailer=True)
        value = zlib.crc32(record[:-20]) & 0x7FFFFFFF
        if value < 10**8:
            assert record[-3:] == b"00\x02"
            assert check(record)[1] is None
            return
    pytest.fail("no small checksum met")


@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("properties", ["A\x01b\x02__CRC32#\x010000000000\x02", {"A": "b", "__CRC32#": "0000000000"}])
def test_given_checksum_property_is_stripped_and_hidden(trailer: bool, properties: str | dict[str, str]) -> None:
    record = record_of(Message("T", b"", properties=properties), trailer=trailer)
    assert bytes(record).count(b"__CRC32#") == trailer
    assert codec.decode_record(memoryview(record), 0).properties == {"A": "b"}


def test_record_without_trailer_is_valid() -> None:
    record = record_of(Message("T", b"x", properties="A\x01b"))
    assert check(record) == (len(record), None)


# ---- hosts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sys_flag", [0x00, 0x10, 0x20, 0x30, 0x09, 0x3F])
@pytest.mark.parametrize("born", [("10.0.0.1", 1), ("2001:db8::1", 2)])
@pytest.mark.parametrize("stored", [("10.0.0.2", 3), ("::ffff:10.0.0.2", 4)])
def test_host_bits_follow_the_addresses(sys_flag: int, born: Host, stored: Host) -> None:
    record = record_of(Message("T", b"", sys_flag=sys_flag, born_host=born, store_host=stored))
    expected = (sys_flag & ~0x30) | (0x10 if ":" in born[0] else 0) | (0x20 if ":" in stored[0] else 0)
    decoded = codec.decode_record(memoryview(record), 0)
    assert (decoded.sys_flag, decoded.born_host, decoded.store_host) == (expected, born, stored)
    assert len(record) == 92 + (12 if ":" in born[0] else 0) + (12 if ":" in stored[0] else 0)


def test_store_host_of_the_store_is_the_default() -> None:
    decoded = codec.decode_record(memoryview(record_of(Message("T", b""))), 0)
    assert decoded.store_host == V4_LOOPBACK


def test_born_timestamp_defaults_to_now() -> None:
    assert codec.decode_record(memoryview(record_of(Message("T", b""))), 0).born_timestamp == 5


def test_null_body_is_an_empty_body() -> None:
    assert record_of(Message("T", None)) == record_of(Message("T", b""))


# ---- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": ""},
        {"topic": "t" * 128},
        {"topic": "é" * 64},
        {"topic": "a/b"},
        {"topic": "a\0b"},
        {"topic": "."},
        {"topic": ".."},
        {"topic": "\ud800"},
        {"properties": "A\x01\ud800"},
        {"properties": {"A": "\ud800"}},
        {"properties": "A\x01\0"},
        {"properties": {"A": "\0"}},
        {"properties": {"A\x01": "b"}},
        {"properties": {"A\x02": "b"}},
        {"properties": {"A": "b\x02"}},
        {"queue_id": -1},
        {"queue_id": 1 << 31},
        {"flag": 1 << 31},
        {"flag": -(1 << 31) - 1},
        {"sys_flag": 1 << 31},
        {"reconsume_times": 1 << 31},
        {"prepared_transaction_offset": 1 << 63},
        {"born_timestamp": 1 << 63},
        {"born_host": ("localhost", 1)},
        {"born_host": ("", 1)},
        {"born_host": ("1.2.3", 1)},
        {"born_host": ("::g", 1)},
        {"born_host": ("fe80::1%lo", 1)},
        {"born_host": ("1.2.3.4\0", 1)},
        {"born_host": ("\ud800", 1)},
        {"born_host": ("1.2.3.4", 1 << 31)},
        {"store_host": ("1.2.3.4.5", 1)},
        {"store_host": ("::1", -(1 << 31) - 1)},
    ],
    ids=repr,
)
@pytest.mark.parametrize("trailer", [True, False])
def test_illegal_message_is_refused(fields: dict[str, Any], trailer: bool) -> None:
    assert refusal(trailer=trailer, **fields) is PutStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize(("trailer", "most_bytes"), [(False, 32_767), (True, 32_767 - 21)])
@pytest.mark.parametrize("text", ["x", "é"])
def test_properties_have_a_longest_length(trailer: bool, most_bytes: int, text: str) -> None:
    longest = "A\x01" + text * ((most_bytes - 2) // len(text.encode()))
    longest += "y" * (most_bytes - len(longest.encode()))
    record = record_of(Message("T", b"", properties=longest), trailer=trailer)
    assert check(record) == (len(record), None)
    assert refusal(properties=longest + "y", trailer=trailer) is PutStatus.PROPERTIES_SIZE_EXCEEDED


@pytest.mark.parametrize("topic", ["t" * 127, "é" * 63, "...", "%RETRY%g", "a b"])
def test_legal_topic_is_kept(topic: str) -> None:
    assert codec.decode_record(memoryview(record_of(Message(topic, b""))), 0).topic == topic
