"""Test one record: every field, every reason, the trailer, properties, message ids."""

from __future__ import annotations

import struct
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.properties.handmade import DATA, blank, properties_of, record, vectors
from tornpage.properties.decode.record import (
    Bad,
    Blank,
    Record,
    decode_record,
    drops_joined_pairs,
    message_id,
    parse_properties,
    trailer_of,
)

VECTORS = vectors("record")
BASE = 4096


def put(stored: bytes, position: int, value: bytes) -> bytes:
    return stored[:position] + value + stored[position + len(value) :]


def reason(stored: bytes, *, offset: int = BASE, room_bytes: int | None = None) -> tuple[str, str]:
    found = decode_record(stored, offset=offset, room_bytes=room_bytes)
    assert isinstance(found, Bad), found
    assert found.offset == offset
    return found.reason, found.field


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector_is_decoded_field_by_field(vector: dict[str, Any]) -> None:
    stored = bytes.fromhex(vector["hex"])
    found = decode_record(stored + bytes(8), offset=vector["physicalOffset"])
    assert found == Record(
        offset=vector["physicalOffset"],
        size_bytes=vector["sizeBytes"],
        body_crc=vector["bodyCrc"],
        queue_id=vector["queueId"],
        flag=vector["flag"],
        queue_offset=vector["queueOffset"],
        physical_offset=vector["physicalOffset"],
        sys_flag=vector["sysFlag"],
        born_timestamp=vector["bornTimestamp"],
        born_host=tuple(vector["bornHost"]),
        store_timestamp=vector["storeTimestamp"],
        store_host=tuple(vector["storeHost"]),
        reconsume_times=vector["reconsumeTimes"],
        prepared_transaction_offset=vector["preparedTransactionOffset"],
        body=vector["body"].encode(),
        topic=vector["topic"].encode(),
        properties=vector["properties"].encode(),
        checksum=None,
        raw=stored,
    )
    assert found.topic_text == vector["topic"]
    assert found.end_offset == vector["physicalOffset"] + vector["sizeBytes"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector_is_what_the_hand_builds(vector: dict[str, Any]) -> None:
    built = record(
        vector["physicalOffset"],
        vector["body"].encode(),
        topic=vector["topic"].encode(),
        properties=vector["properties"].encode(),
        queue_id=vector["queueId"],
        flag=vector["flag"],
        queue_offset=vector["queueOffset"],
        sys_flag=vector["sysFlag"],
        born_timestamp=vector["bornTimestamp"],
        born_host=vector["bornHost"],
        store_timestamp=vector["storeTimestamp"],
        store_host=vector["storeHost"],
    )
    assert built.hex() == vector["hex"]


@pytest.mark.parametrize("vector", vectors("blank"), ids=lambda vector: vector["name"])
def test_blank_vector(vector: dict[str, Any]) -> None:
    assert decode_record(bytes.fromhex(vector["hex"]), offset=0) == Blank(0, vector["sizeBytes"])


@pytest.mark.parametrize("vector", vectors("messageId"), ids=lambda vector: vector["name"])
def test_message_id_vector(vector: dict[str, Any]) -> None:
    stored = record(vector["physicalOffset"], store_host=vector["storeHost"])
    found = decode_record(stored + bytes(8), offset=vector["physicalOffset"])
    assert isinstance(found, Record)
    assert message_id(found) == vector["hex"]


def test_batch_vector_gives_the_joined_ids() -> None:
    (batch,) = vectors("batchBody")
    by_name = {vector["name"]: vector for vector in VECTORS}
    ids = []
    for name in batch["stored"]:
        found = decode_record(bytes.fromhex(by_name[name]["hex"]) + bytes(8), offset=by_name[name]["physicalOffset"])
        assert isinstance(found, Record)
        ids.append(message_id(found))
    assert ",".join(ids) == batch["msgId"]


@pytest.mark.parametrize("vector", vectors("bodyCrc"), ids=lambda vector: vector["name"])
def test_body_crc_vector(vector: dict[str, Any]) -> None:
    stored = put(record(BASE, vector["body"].encode()), 8, bytes.fromhex(vector["hex"])) + bytes(8)
    found = decode_record(stored, offset=BASE)
    assert isinstance(found, Record)
    assert found.body_crc == vector["bodyCrc"]
    unmasked = put(stored, 8, bytes([stored[8] | 0x80]))
    assert reason(unmasked) == ("bad_body_crc", "body_crc")


def test_properties_vector() -> None:
    (vector,) = vectors("properties")
    assert parse_properties(bytes.fromhex(vector["hex"])) == vector["decoded"]


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (b"", {}),
        (b"\x02\x02", {}),
        (b"a\x01b\x02", {"a": "b"}),
        (b"a\x01", {}),
        (b"\x01b", {}),
        (b"a\x01\x01", {"a": "\x01"}),
        ("é\x01🚀".encode(), {"é": "🚀"}),
        (b"a\x01\xff", {"a": "\N{REPLACEMENT CHARACTER}"}),
        (b"a\x01b\x02__CRC32#\x010123456789\x02", {"a": "b"}),
    ],
)
def test_properties_are_read_like_a_java_reader_does(stored: bytes, read: dict[str, str]) -> None:
    assert parse_properties(stored) == read


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (b"", {}),
        (b"a\x01b\x02c\x01d", {"a": "b", "c": "d"}),
        (b"a\x01bWAIT\x01true\x02c\x01d", {"c": "d"}),
        (b"a\x01b\x01", {"a": "b"}),
        (b"a\x01\x01", {}),
        (b"a\x01b\x02__CRC32#\x010123456789\x02", {"a": "b"}),
    ],
)
def test_joined_pairs_are_dropped_as_up_to_4_9_0(stored: bytes, read: dict[str, str]) -> None:
    assert parse_properties(stored, drops_joined=True) == read


@pytest.mark.parametrize(("version", "drops"), [("4.3.2", True), ("4.9.0", True), ("4.9.1", False), ("5.4.0", False)])
def test_the_release_says_whether_joined_pairs_are_dropped(version: str, drops: bool) -> None:
    assert drops_joined_pairs(version) is drops


@pytest.mark.parametrize("version", ["", "4.9", "4.9.x", "latest", "4.9.3.1"])
def test_what_is_no_release_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="give a release of RocketMQ"):
        drops_joined_pairs(version)


@pytest.mark.parametrize("born", [("127.0.0.1", 1), ("2001:db8::1", 65535)])
@pytest.mark.parametrize("store", [("10.0.0.5", 10911), ("::ffff:1.2.3.4", 10911)])
@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_hosts_of_both_families(born: tuple[str, int], store: tuple[str, int], trailer: bool, kind: Any) -> None:
    stored = record(BASE, born_host=born, store_host=store, trailer=trailer)
    found = decode_record(kind(b"junk" + stored + bytes(8)), 4, offset=BASE)
    assert isinstance(found, Record)
    assert (found.born_host, found.store_host, found.raw) == (born, store, stored)


SOUND = record(BASE, b"0123456789", properties=properties_of(("KEYS", "k"), ("TAGS", "t"))) + bytes(8)
BODY_AT, TOPIC_AT, PROPERTIES_AT = 88, 98, 108
LARGE = struct.pack(">i", 2**31 - 1)


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        (b"", ("past_end", "size")),
        (SOUND[:7], ("past_end", "size")),
        (SOUND[:20], ("past_end", "size")),
        (SOUND[:-9], ("past_end", "size")),
        (SOUND[:-1], ("past_end", "size")),
        (bytes(8) + SOUND, ("zero_header", "magic")),
        (put(SOUND, 4, bytes(4)), ("bad_magic", "magic")),
        (put(SOUND, 7, b"\xa6"), ("bad_magic", "magic")),
        (put(SOUND, 35, b"\x01"), ("bad_position", "physical_offset")),
        (put(SOUND, 0, bytes(4)), ("bad_length", "size")),
        (put(SOUND, 0, struct.pack(">i", 91)), ("bad_length", "size")),
        (put(SOUND, 0, struct.pack(">i", -1)), ("bad_length", "size")),
        (put(SOUND, 0, LARGE), ("past_end", "size")),
        (put(SOUND, 3, bytes([SOUND[3] - 1])), ("bad_length", "properties_length")),
        (put(SOUND, 36, struct.pack(">i", 0x30)), ("bad_length", "body_length")),
        (put(SOUND, 84, struct.pack(">i", -1)), ("bad_length", "body_length")),
        (put(SOUND, 84, LARGE), ("bad_length", "body_length")),
        (put(SOUND, 8, bytes(4)), ("bad_body_crc", "body_crc")),
        (put(SOUND, BODY_AT, b"X"), ("bad_body_crc", "body_crc")),
        (put(SOUND, TOPIC_AT, b"\x00"), ("bad_topic_length", "topic_length")),
        (put(SOUND, TOPIC_AT, b"\x80"), ("bad_topic_length", "topic_length")),
        (put(SOUND, TOPIC_AT, b"\x7f"), ("bad_length", "topic_length")),
        (put(SOUND, TOPIC_AT + 1, b"\x00"), ("nul_in_topic", "topic")),
        (put(SOUND, PROPERTIES_AT, b"\xff\xff"), ("bad_properties_length", "properties_length")),
        (put(SOUND, PROPERTIES_AT + 1, b"\x01"), ("bad_length", "properties_length")),
        (put(SOUND, PROPERTIES_AT + 2, b"\x00"), ("nul_in_properties", "properties")),
    ],
)
def test_damage_is_named(damaged: bytes, expected: tuple[str, str]) -> None:
    assert isinstance(decode_record(SOUND, offset=BASE), Record)
    assert reason(damaged) == expected


def test_reserve_counts_to_the_end_of_the_file_and_not_of_the_buffer() -> None:
    stored = SOUND[:-8]
    assert isinstance(decode_record(stored, offset=BASE, room_bytes=len(stored) + 8), Record)
    assert reason(stored, room_bytes=len(stored) + 7) == ("past_end", "size")


@pytest.mark.parametrize("properties", [b"", b"a\x01b", b"a\x01b\x02"])
def test_right_trailer_is_read(properties: bytes) -> None:
    found = decode_record(record(BASE, properties=properties, trailer=True) + bytes(8), offset=BASE)
    assert isinstance(found, Record)
    assert found.checksum == trailer_of(found.properties)
    assert found.checksum is not None
    assert parse_properties(found.properties) == parse_properties(properties)


def test_small_checksum_is_padded_on_the_right() -> None:
    assert trailer_of(b"__CRC32#\x017100000000\x02") == 17


@pytest.mark.parametrize("place", [*range(-20, 0)])
def test_trailer_with_one_wrong_byte_is_refused_or_no_trailer(place: int) -> None:
    stored = bytearray(record(BASE, properties=b"a\x01b", trailer=True))
    digit = -11 <= place < -1
    stored[place] = (stored[place] - 0x30 + 1) % 10 + 0x30 if digit else stored[place] ^ 0x40
    found = decode_record(bytes(stored) + bytes(8), offset=BASE)
    if place < -11:
        assert isinstance(found, Record)
        assert found.checksum is None
    else:
        assert found == Bad(BASE, "bad_checksum", "checksum")


@pytest.mark.parametrize("position", [12, 16, 20, 40, 48, 56, 64, 72, 76, 93, 94, 105])
def test_trailer_covers_what_the_body_checksum_does_not(position: int) -> None:
    stored = bytearray(record(BASE, properties=b"a\x01b", trailer=True) + bytes(8))
    stored[position] ^= 0x02
    assert reason(bytes(stored)) == ("bad_checksum", "checksum")
    plain = bytearray(record(BASE, properties=b"a\x01b") + bytes(8))
    plain[position] ^= 0x02
    assert isinstance(decode_record(plain, offset=BASE), Record)


@pytest.mark.parametrize("torn_bytes", range(1, 21))
def test_torn_trailer_is_refused(torn_bytes: int) -> None:
    stored = record(BASE, properties=b"a\x01b", trailer=True)
    torn = stored[:-torn_bytes] + bytes(torn_bytes + 8)
    assert reason(torn) == ("nul_in_properties", "properties")


def test_end_mark_is_read_whatever_its_size_says() -> None:
    assert decode_record(blank(72), offset=184) == Blank(184, 72)
    assert decode_record(put(blank(72), 0, bytes(4)), offset=184) == Blank(184, 0)


@given(st.binary(max_size=300), st.integers(-(2**63), 2**63 - 1), st.integers(-10, 400))
def test_no_bytes_make_it_raise(buffer: bytes, offset: int, room: int) -> None:
    decode_record(buffer, offset=offset, room_bytes=room)
    parse_properties(buffer)
    trailer_of(buffer)


@given(st.binary(max_size=60), st.binary(min_size=1, max_size=127), st.binary(max_size=80), st.booleans())
def test_what_is_built_is_read_back(body: bytes, topic: bytes, properties: bytes, trailer: bool) -> None:
    topic, properties = topic.replace(b"\0", b"x"), properties.replace(b"\0", b"x")
    stored = record(7, body, topic=topic, properties=properties, trailer=trailer)
    found = decode_record(stored + bytes(8), offset=7)
    assert isinstance(found, Record)
    assert (found.body, found.topic, found.raw) == (body, topic, stored)
    assert found.properties.startswith(properties)


@given(st.integers(0, 10_000), st.integers(0, 7), st.booleans())
def test_flipped_bits_never_make_it_raise_and_the_trailer_finds_them(place: int, bit: int, trailer: bool) -> None:
    sound = record(BASE, properties=properties_of(("KEYS", "k1")), trailer=trailer)
    damaged = bytearray(sound + bytes(8))
    place %= len(sound)
    damaged[place] ^= 1 << bit
    found = decode_record(bytes(damaged), offset=BASE)
    if trailer and place < len(sound) - 21:
        assert isinstance(found, Bad)


def test_importing_the_decoder_loads_no_library() -> None:
    program = (
        "import sys, properties.decode, properties.decode.judge;"
        "bad = {'hypothesis', 'pytest', 'numpy', 'impl', 'model'} & {name.split('.')[0] for name in sys.modules};"
        "sys.exit(', '.join(sorted(bad)) or None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=DATA.parents[1], check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
