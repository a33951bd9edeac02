"""Records, blanks and ids, both ways: the shared vectors, the trailer by hand, every reason, every refusal."""

import json
import socket
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from impl import codec
from impl.message import Host, Message, PutStatus
from model.message import Message as ModelMessage
from model.message import waits_for_disk
from properties.decode.record import Record, parse_properties
from properties.decode.record import decode_record as decode_independently
from tests.impl.support import open_store

VECTORS: dict[str, dict[str, Any]] = {
    vector["name"]: vector
    for vector in json.loads((Path(__file__).parents[1] / "data" / "vectors.json").read_text(encoding="utf-8"))
}
RECORDS = ("V1", "V2", "V3", "V3b", "V5", "V6-1", "V6-2", "V12-1", "V12-2", "V12-3")
V4_LOOPBACK: Host = ("127.0.0.1", 10911)


def host(pair: list[Any]) -> Host:
    return pair[0], pair[1]


def message_of(vector: dict[str, Any]) -> Message:
    return Message(
        topic=vector["topic"],
        body=vector["body"].encode(),
        queue_id=vector["queueId"],
        properties=vector["properties"],
        flag=vector["flag"],
        sys_flag=vector["sysFlag"] & ~0x30,
        born_timestamp=vector["bornTimestamp"],
        born_host=host(vector["bornHost"]),
        store_host=host(vector["storeHost"]),
        reconsume_times=vector["reconsumeTimes"],
        prepared_transaction_offset=vector["preparedTransactionOffset"],
    )


def record_of(
    message: Message,
    *,
    trailer: bool = False,
    queue_offset: int = 0,
    physical_offset: int = 0,
    store_timestamp: int = 1_700_000_000_001,
) -> bytearray:
    record = codec.encode_record(message, now_ms=5, store_host=V4_LOOPBACK, trailer=trailer)
    assert isinstance(record, bytearray), record
    codec.place_record(
        record,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        store_timestamp=store_timestamp,
        trailer=trailer,
    )
    return record


def check(data: bytes | bytearray, *, offset: int = 0, room: int = 8) -> codec.RecordCheck:
    return codec.check_record(memoryview(bytes(data) + bytes(room)), 0, limit=len(data) + room, offset=offset)


def refusal(**fields: Any) -> PutStatus:
    values = {"topic": "T", "body": b"b"} | fields
    trailer = values.pop("trailer", True)
    answer = codec.encode_record(Message(**values), now_ms=5, store_host=V4_LOOPBACK, trailer=trailer)
    assert isinstance(answer, PutStatus), bytes(answer)
    return answer


# ---- vectors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDS)
def test_vector_is_encoded_to_its_bytes(name: str) -> None:
    vector = VECTORS[name]
    record = record_of(
        message_of(vector),
        queue_offset=vector["queueOffset"],
        physical_offset=vector["physicalOffset"],
        store_timestamp=vector["storeTimestamp"],
    )
    assert record.hex() == vector["hex"]
    assert len(record) == vector["sizeBytes"]


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("position", [0, 13])
def test_vector_is_decoded_to_its_fields(name: str, position: int) -> None:
    vector = VECTORS[name]
    data = b"\xee" * position + bytes.fromhex(vector["hex"]) + bytes(8)
    view = memoryview(data)
    offset = vector["physicalOffset"]
    assert codec.check_record(view, position, limit=len(data), offset=offset) == (vector["sizeBytes"], None)
    stored = codec.decode_record(view, position)
    assert stored.offset == offset
    assert stored.size_bytes == vector["sizeBytes"]
    assert stored.topic == vector["topic"]
    assert stored.queue_id == vector["queueId"]
    assert stored.queue_offset == vector["queueOffset"]
    assert stored.body == vector["body"].encode()
    assert stored.properties == parse_properties(vector["properties"].encode())
    assert stored.flag == vector["flag"]
    assert stored.sys_flag == vector["sysFlag"]
    assert stored.born_timestamp == vector["bornTimestamp"]
    assert stored.born_host == host(vector["bornHost"])
    assert stored.store_timestamp == vector["storeTimestamp"]
    assert stored.store_host == host(vector["storeHost"])
    assert stored.reconsume_times == vector["reconsumeTimes"]
    assert stored.prepared_transaction_offset == vector["preparedTransactionOffset"]
    assert stored.body_crc == vector["bodyCrc"]


def test_vector_v4_blank_both_ways() -> None:
    blank = codec.encode_blank(300)
    assert blank.hex() == VECTORS["V4"]["hex"]
    view = memoryview(blank + bytes(292))
    assert codec.check_record(view, 0, limit=300, offset=700) == (0, None)


@pytest.mark.parametrize("name", ["V7-1", "V7-2"])
def test_vector_v7_message_id_both_ways(name: str) -> None:
    vector = VECTORS[name]
    assert codec.message_id(host(vector["storeHost"]), vector["physicalOffset"]) == vector["hex"]
    stored = codec.decode_record(memoryview(bytes.fromhex(VECTORS[vector["record"]]["hex"])), 0)
    assert stored.message_id == vector["hex"]


def test_vector_v6_ids_of_a_batch_are_those_of_its_records() -> None:
    ids = [codec.decode_record(memoryview(bytes.fromhex(VECTORS[name]["hex"])), 0).message_id for name in
           VECTORS["V6-client"]["stored"]]  # fmt: skip
    assert ",".join(ids) == VECTORS["V6-client"]["msgId"]


@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith("V13-crc")])
def test_vector_v13_body_checksum(name: str) -> None:
    vector = VECTORS[name]
    record = record_of(Message("T", vector["body"].encode()))
    assert record[8:12].hex() == vector["hex"]
    assert codec.decode_record(memoryview(record), 0).body_crc == vector["bodyCrc"]


def test_vector_v14_properties_as_a_reader_sees_them() -> None:
    vector = VECTORS["V14"]
    record = record_of(Message("T", b"", properties=bytes.fromhex(vector["hex"]).decode()))
    assert codec.decode_record(memoryview(record), 0).properties == vector["decoded"]


def test_vector_v12_a_real_store_rolls_over(tmp_path: Path) -> None:
    times = iter((7, 1_700_000_000_001, 7, 1_700_000_000_002, 7, 1_700_000_000_003))
    message = message_of(VECTORS["V12-1"])
    with open_store(tmp_path, file_bytes=256, trailer=False, clock=lambda: next(times)) as store:
        results = [store.put(message) for _ in range(3)]
        assert [result.offset for result in results] == [0, 92, 256]
        assert [result.queue_offset for result in results] == [0, 1, 2]
        decoded = list(store.messages())
    for name, parts in VECTORS["V12"]["files"].items():
        expected = b"".join(bytes.fromhex(VECTORS[part]["hex"]) for part in parts)
        assert (tmp_path / "commitlog" / name).read_bytes() == expected.ljust(256, b"\0")
    assert [stored.store_timestamp for stored in decoded] == [VECTORS[f"V12-{n}"]["storeTimestamp"] for n in (1, 2, 3)]


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
    """A checksum below one thousand million has leading zeros, which stand last."""
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


# ---- check_record ------------------------------------------------------------------------------------------------


def patched(position: int, data: bytes, *, properties: str = "A\x01b", trailer: bool = False) -> bytearray:
    """Return the record of topic TT and body BODY (88 to 92, topic length at 92) with some bytes replaced."""
    record = record_of(Message("TT", b"BODY", properties=properties), trailer=trailer)
    record[position : position + len(data)] = data
    return record


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


WRONG: dict[str, tuple[Callable[[], bytearray], str]] = {
    "no magic": (lambda: patched(4, bytes(4)), "bad_magic"),
    "magic of a later version": (lambda: patched(4, bytes.fromhex("DAA320AB")), "bad_magic"),
    "nothing written": (lambda: bytearray(100), "bad_magic"),
    "size below the smallest": (lambda: patched(0, i32(91)), "bad_length"),
    "size negative": (lambda: patched(0, i32(-1)), "bad_length"),
    "size beyond the file": (lambda: patched(0, i32(1 << 30)), "bad_length"),
    "size one more": (lambda: patched(0, i32(101)), "bad_length"),
    "size one less": (lambda: patched(0, i32(99)), "bad_length"),
    "another place": (lambda: patched(35, b"\x01"), "bad_position"),
    "hosts beyond the record": (lambda: patched(0, i32(92))[:39] + b"\x30" + bytes(60), "bad_length"),
    "body negative": (lambda: patched(84, i32(-1)), "bad_length"),
    "body beyond the record": (lambda: patched(84, i32(1000)), "bad_length"),
    "body takes the rest": (lambda: patched(84, i32(13)), "bad_length"),
    "topic beyond the record": (lambda: patched(92, b"\x7f"), "bad_length"),
    "properties length short": (lambda: patched(95, b"\x00\x02"), "bad_length"),
    "properties length long": (lambda: patched(95, b"\x00\x04"), "bad_length"),
    "body changed": (lambda: patched(88, b"X"), "bad_body_crc"),
    "body checksum changed": (lambda: patched(11, b"\x00"), "bad_body_crc"),
    "topic empty": (lambda: patched(92, b"\x00\x00\x05XX"), "bad_topic_length"),
    "topic with NUL": (lambda: patched(94, b"\x00"), "nul_in_topic"),
    "properties with NUL": (lambda: patched(99, b"\x00"), "nul_in_properties"),
    "flag changed under a trailer": (lambda: patched(16, b"\x01", trailer=True), "bad_checksum"),
    "trailer digit": (lambda: patched(112, b"x", trailer=True), "bad_checksum"),
    "trailer unterminated": (lambda: patched(119, b"\x03", trailer=True), "bad_checksum"),
    "trailer digits in other script": (lambda: patched(110, "\u0661".encode(), trailer=True), "bad_checksum"),
}


@pytest.mark.parametrize("what", WRONG)
def test_check_names_the_reason(what: str) -> None:
    make, reason = WRONG[what]
    assert check(make()) == (0, reason)


def test_check_names_every_reason_there_is() -> None:
    source = Path(codec.__file__).read_text(encoding="utf-8")
    reasons = {text for text in source.split('"')[1::2] if text.startswith(("bad_", "nul_", "past_"))}
    assert reasons == {reason for _, reason in WRONG.values()} | {"past_end"}


def test_topic_longer_than_127_is_bad() -> None:
    record = bytearray(record_of(Message("t" * 127, b"", properties="A\x01" + "b" * 40)))
    record[88] = 128
    rest = len(record) - (88 + 1 + 128 + 2)
    record[88 + 129 : 88 + 131] = rest.to_bytes(2, "big")
    assert check(record) == (0, "bad_topic_length")


@pytest.mark.parametrize("left", range(8))
def test_check_needs_eight_bytes(left: int) -> None:
    assert codec.check_record(memoryview(bytes(92 + left)), 92, limit=92 + left, offset=92) == (0, "past_end")


@pytest.mark.parametrize("room", range(10))
def test_record_needs_room_for_a_blank_behind_it(room: int) -> None:
    record = record_of(Message("T", b""))
    assert check(record, room=room) == ((len(record), None) if room >= 8 else (0, "bad_length"))


def test_blank_is_no_record_and_not_bad() -> None:
    assert codec.check_record(memoryview(codec.encode_blank(8)), 0, limit=8, offset=0) == (0, None)


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


@pytest.mark.parametrize(
    ("properties", "waits"),
    [
        ("", True),
        ({}, True),
        ("WAIT\x01true", True),
        ("WAIT\x01TRUE", True),
        ("A\x01b\x02WAIT\x01false", False),
        ("WAIT\x01yes", False),
        ("WAIT\x01", True),
        ("XWAIT\x01false", True),
        ("A\x01WAIT\x01false", True),
        ("WAIT\x01false\x02WAIT\x01true", True),
        ({"WAIT": "false"}, False),
        ({"WAIT": "True"}, True),
    ],
)
def test_wait_property(properties: str | dict[str, str], waits: bool) -> None:
    assert codec.wait_store_msg_ok(properties) is waits


@pytest.mark.parametrize(("sys_flag", "counts"), [(0, True), (0x03, True), (0x04, False), (0x08, True), (0x0C, False)])
def test_transaction_state_decides_about_the_queue(sys_flag: int, counts: bool) -> None:
    assert codec.has_consume_queue(sys_flag) is counts
    assert codec.has_consume_queue(sys_flag | 0x33) is counts


# ---- generated ---------------------------------------------------------------------------------------------------

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
OFFSET = st.integers(0, (1 << 63) - 1)
HOSTS = st.tuples(st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str), I32)
WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0\x01\x02"), min_size=1, max_size=12)
TOPICS = WORD.filter(lambda topic: "/" not in topic and topic not in (".", ".."))
PAIRS = st.dictionaries(WORD, WORD, max_size=4)
MESSAGES = st.builds(
    Message,
    topic=TOPICS,
    body=st.binary(max_size=700),
    queue_id=st.integers(0, (1 << 31) - 1),
    properties=PAIRS | PAIRS.map(lambda pairs: "\x02".join(f"{n}\x01{v}" for n, v in pairs.items())),
    flag=I32,
    sys_flag=I32,
    born_timestamp=I64,
    born_host=HOSTS,
    store_host=HOSTS,
    reconsume_times=I32,
    prepared_transaction_offset=I64,
)


@given(message=MESSAGES, trailer=st.booleans(), queue_offset=I64, physical_offset=OFFSET, store_timestamp=I64)
def test_another_decoder_gives_every_field_back(
    message: Message, trailer: bool, queue_offset: int, physical_offset: int, store_timestamp: int
) -> None:
    record = record_of(
        message,
        trailer=trailer,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        store_timestamp=store_timestamp,
    )
    found = decode_independently(bytes(record) + bytes(8), offset=physical_offset)
    assert isinstance(found, Record), found
    assert found.size_bytes == len(record)
    assert found.topic_text == message.topic
    assert found.body == message.body
    assert found.body_crc == zlib.crc32(message.body or b"") & 0x7FFFFFFF
    assert (found.queue_id, found.flag, found.reconsume_times) == (
        message.queue_id,
        message.flag,
        message.reconsume_times,
    )
    assert (found.queue_offset, found.physical_offset) == (queue_offset, physical_offset)
    assert found.store_timestamp == store_timestamp
    assert found.born_timestamp == message.born_timestamp
    assert found.prepared_transaction_offset == message.prepared_transaction_offset
    assert found.sys_flag & ~0x30 == message.sys_flag & ~0x30
    assert (found.born_host, found.store_host) == (plain(message.born_host), plain(message.store_host or V4_LOOPBACK))
    assert (found.checksum is not None) is trailer
    raw = message.properties
    pairs = raw if isinstance(raw, dict) else parse_properties(str(raw).encode())
    assert parse_properties(found.properties) == pairs
    stored = codec.decode_record(memoryview(record), 0)
    assert stored.properties == pairs
    assert (stored.topic, stored.body, stored.sys_flag) == (message.topic, message.body, found.sys_flag)
    assert (stored.born_host, stored.store_host) == (found.born_host, found.store_host)


def plain(pair: Host) -> Host:
    """Write an address as the system does, which may differ from how it was given."""
    family = socket.AF_INET6 if ":" in pair[0] else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, pair[0])), pair[1]


@given(message=MESSAGES, data=st.data())
def test_one_flipped_bit_is_refused(message: Message, data: st.DataObject) -> None:
    """Except in the nine bytes that make the trailer a trailer: then the record looks like one of 4.9.3."""
    record = record_of(message, trailer=True, physical_offset=4096)
    at = data.draw(st.integers(0, len(record) - 1).filter(lambda n: not len(record) - 20 <= n < len(record) - 11))
    record[at] ^= 1 << data.draw(st.integers(0, 7))
    size, reason = check(record, offset=4096)
    assert (size, reason) != (0, None)
    assert size == 0


@given(message=MESSAGES, start=st.integers(0, 511), data=st.data())
def test_a_zeroed_sector_is_refused(message: Message, start: int, data: st.DataObject) -> None:
    record = record_of(message, trailer=True, physical_offset=start)
    file = bytearray(start) + record
    sector = data.draw(st.integers(0, (len(file) - 1) // 512))
    torn = bytearray(file)
    torn[sector * 512 : (sector + 1) * 512] = bytes(min(512, len(file) - sector * 512))
    assume(torn[start:] != record)
    size, reason = codec.check_record(memoryview(torn + bytes(8)), start, limit=len(torn) + 8, offset=start)
    assert size == 0
    assert reason is not None


@given(junk=st.binary(max_size=300), cut=st.integers(0, 300), offset=OFFSET)
def test_check_never_raises_on_any_bytes(junk: bytes, cut: int, offset: int) -> None:
    head = record_of(Message("T", b"body"), physical_offset=offset)
    view = memoryview(bytes(head[:cut]) + junk)
    for position in (0, 1, len(view) // 2, len(view)):
        size, reason = codec.check_record(view, position, limit=len(view), offset=offset)
        assert size == 0 or reason is None


@given(message=MESSAGES, cut=st.integers(0, 120), junk=st.binary(min_size=1, max_size=64))
def test_check_and_the_other_decoder_agree_on_damage(message: Message, cut: int, junk: bytes) -> None:
    record = record_of(message, trailer=False)
    record[cut : cut + len(junk)] = junk
    data = bytes(record) + bytes(8)
    size, _ = codec.check_record(memoryview(data), 0, limit=len(data), offset=0)
    assert (size > 0) is isinstance(decode_independently(data, offset=0), Record)


def test_properties_of_32_kib_and_more_are_bad_as_in_the_format() -> None:
    """The length is an i16: the store took it for unsigned and accepted what RocketMQ calls negative."""
    head = record_of(Message("T", b""))
    properties = b"A\x01" + b"x" * 40_000
    data = bytes(head[:-2]) + struct.pack(">H", len(properties)) + properties
    data = struct.pack(">i", len(data)) + data[4:] + bytes(8)
    assert not isinstance(decode_independently(data, offset=0), Record)
    assert codec.check_record(memoryview(data), 0, limit=len(data), offset=0)[0] == 0


def test_a_blank_of_another_length_is_torn() -> None:
    """A sector boundary inside a blank can lose its length and keep its magic; what is kept must be what was put."""
    view = memoryview(codec.encode_blank(20).ljust(28, b"\0"))
    assert codec.check_record(view, 0, limit=28, offset=0) == (0, "bad_magic")


def test_store_and_model_agree_about_an_empty_wait() -> None:
    """As text the empty value vanishes, so the producer waits; as a mapping the store did not wait, the model did."""
    properties = {"WAIT": ""}
    model = ModelMessage("T", b"", 0, properties, 0, 0, 0, ("127.0.0.1", 1), ("127.0.0.1", 1))
    assert codec.wait_store_msg_ok(properties) == waits_for_disk(model) == codec.wait_store_msg_ok("WAIT\x01")
