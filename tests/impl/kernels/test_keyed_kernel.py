"""Test compiled queries by key: equal hashes, and no record that plain code refuses."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.impl.records import record_of
from tornpage.impl.message import codec
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.message.message import Message
from tornpage.impl.message.properties_text import parse_pairs, parse_split_pairs
from tornpage.impl.read.confirming import confirm_key

NOTHING = (0, 0)
AT, TIME, NUMBER = 64, 1_700_000_000_001, 3
EVER = (0, (1 << 63) - 1)
ROLLED_BACK = 0x0C

NAMES = st.sampled_from(("UNIQ_KEY", "KEYS", "TAGS", "UNIQ_KEYS", "KEY", ""))
VALUES = st.text("ab \x01é", max_size=6) | st.sampled_from(("a", "b a", "a\x01", "UNIQ_KEY\x01a"))
TEXTS = st.lists(st.builds(lambda name, value, mark: name + mark + value, NAMES, VALUES, st.sampled_from(("\x01", ""))))
KEYS = st.text("ab\x01\x02é ", min_size=1, max_size=3) | st.sampled_from(("a", "b", "aaaaaaaa", "\ud800"))


@cache
def compiled() -> Any:
    """Return the twin, compiled in this process by the first test that needs it."""
    return import_module("tornpage.impl.kernels.keyed")


def confirmed(
    record: bytes | bytearray, *, topic: str = "T", key: str = "k", times: tuple[int, int] = EVER, **options: Any
) -> Any:
    """Return the answer of the kernel about a record at position `AT` of a file."""
    data = bytes(AT) + record + bytes(8)
    base_offset = options.get("base_offset", 0)
    return compiled().confirm_key(
        memoryview(data), AT, base_offset + AT, len(data), topic.encode(errors="surrogatepass"),
        key.encode(errors="surrogatepass"), *times, options.get("trusted", False),
    )  # fmt: skip


def stored(properties: str, *, topic: str = "T", trailer: bool = True, **fields: Any) -> bytearray:
    """Return the record of a message."""
    message = Message(topic, b"body", properties=properties, **fields)
    return record_of(message, trailer=trailer, queue_offset=NUMBER, physical_offset=AT)


def is_about(record: bytes | bytearray, topic: str, key: str, parse: Callable[[str], dict[str, str]]) -> bool:
    """Return whether a query returns a valid record."""
    message = codec.decode_record(memoryview(record), 0, parse)
    pairs = message.properties
    return message.topic == topic and (key == pairs.get("UNIQ_KEY") or key in pairs.get("KEYS", "").split(" "))


@given(texts=TEXTS, key=KEYS, topic=st.sampled_from(("T", "Té", "U")), trailer=st.booleans())
@example(texts=["UNIQ_KEY\x01a", "UNIQ_KEY\x01b"], key="a", topic="T", trailer=True)
@example(texts=["KEYS\x01a", "KEYS\x01b"], key="a", topic="T", trailer=True)
@example(texts=["KEYS\x01b\x01 a"], key="a", topic="T", trailer=False)
@example(texts=["UNIQ_KEY\x01a\x01"], key="a\x01", topic="T", trailer=False)
def test_confirmed_record_has_the_key_for_every_parser(texts: list[str], key: str, topic: str, trailer: bool) -> None:
    record = stored("\x02".join(texts), trailer=trailer)
    if confirmed(record, topic=topic, key=key) != NOTHING:
        assert confirmed(record, topic=topic, key=key) == (len(record), NUMBER)
        for parse in (parse_pairs, parse_split_pairs):
            assert is_about(record, topic, key, parse)


@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ("UNIQ_KEY\x01k", "k"),
        ("TAGS\x01x\x02UNIQ_KEY\x010123456789ABCDEF\x02KEYS\x01k", "0123456789ABCDEF"),
        ("KEYS\x01j k\x02TAGS\x01x", "k"),
        ("KEYS\x01  k ", "k"),
        ("UNIQ_KEY\x01é", "é"),
    ],
)
def test_usual_records_are_confirmed(trailer: bool, host: str, properties: str, key: str) -> None:
    record = stored(properties, trailer=trailer, born_host=(host, 1))
    assert confirmed(record, key=key) == (len(record), NUMBER)
    assert confirmed(record, key=key + "x") == confirmed(record, key=key, topic="U") == NOTHING
    assert confirmed(record, key=key, times=(TIME, TIME)) == (len(record), NUMBER)
    assert confirmed(record, key=key, times=(TIME + 1, TIME + 1)) == NOTHING
    assert confirmed(record, key=key, times=(TIME - 1, TIME - 1)) == NOTHING
    assert confirmed(record, key=key, base_offset=4096) == NOTHING, "a record of another file"


def test_prepared_record_is_confirmed_and_a_rolled_back_one_is_not() -> None:
    assert confirmed(stored("KEYS\x01k", sys_flag=0x04)) != NOTHING
    assert confirmed(stored("KEYS\x01k", sys_flag=ROLLED_BACK)) == NOTHING


@given(data=st.data())
def test_damaged_record_is_confirmed_only_if_its_check_finds_nothing(data: st.DataObject) -> None:
    record = stored("UNIQ_KEY\x01k")
    at = data.draw(st.integers(0, len(record) - 1), label="damaged byte")
    record[at] ^= data.draw(st.integers(1, 255), label="change")
    view = memoryview(bytes(AT) + record + bytes(8))
    for trusted, check in ((False, codec.check_record), (True, codec.framed_record)):
        size, number = confirmed(record, trusted=trusted)
        if size:
            assert check(view, AT, limit=len(view), offset=AT) == (size, None)
            assert number == codec.queue_of_record(view, AT)[2]


def test_damage_in_the_body_is_not_seen_in_a_trusted_record() -> None:
    record = stored("UNIQ_KEY\x01k")
    record[90] ^= 1
    assert confirmed(record, trusted=True) == (len(record), NUMBER)
    assert confirmed(record) == NOTHING


@given(data=st.binary(max_size=200), at=st.integers(0, 200), trusted=st.booleans())
def test_any_bytes_are_no_record(data: bytes, at: int, trusted: bool) -> None:
    found = compiled().confirm_key(memoryview(data), min(at, len(data)), at, len(data), b"T", b"k", *EVER, trusted)
    assert found == NOTHING


def test_plain_function_confirms_nothing() -> None:
    record = bytes(stored("KEYS\x01k"))
    assert confirm_key(memoryview(record), 0, AT, len(record), b"T", b"k", *EVER, True) == NOTHING


@given(topic=st.text(max_size=12), key=st.text(max_size=40))
@example(topic="TopicBench", key="0123456789ABCDEF" * 3)
@example(topic="", key="")
def test_hashes_are_equal(topic: str, key: str) -> None:
    assert compiled().key_hash(topic, key) == key_hash(topic, key)
