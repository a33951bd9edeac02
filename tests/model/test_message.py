"""Messages of the model: how long their records are, which are refused, which wait."""

import json
from pathlib import Path
from typing import Any

import pytest

from model.message import Message, PutStatus, record_bytes, refusal, stored_properties, waits_for_disk
from tests.model.support import message_of

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["kind"] == "record"], ids=lambda v: v["name"])
def test_vectors_have_the_length_of_the_model(vector: dict[str, Any]) -> None:
    message = Message(
        vector["topic"],
        vector["body"].encode(),
        vector["queueId"],
        vector["properties"],
        vector["flag"],
        vector["sysFlag"],
        vector["bornTimestamp"],
        (vector["bornHost"][0], vector["bornHost"][1]),
        (vector["storeHost"][0], vector["storeHost"][1]),
    )
    assert record_bytes(message, trailer=False) == vector["sizeBytes"]
    assert refusal(message, trailer=False) is None


@pytest.mark.parametrize(
    ("fields", "size_bytes"),
    [
        ({}, 92),
        ({"body": b"12345"}, 97),
        ({"topic": "é"}, 93),
        ({"born_host": ("::1", 1)}, 104),
        ({"store_host": ("::1", 1)}, 104),
        ({"born_host": ("::1", 1), "store_host": ("::2", 1)}, 116),
        ({"properties": "A\x01b"}, 95),
        ({"properties": {"A": "b", "C": "d"}}, 99),
        ({"properties": "A\x01b\x02__CRC32#\x01123"}, 95),
        ({"properties": {"A": "b", "__CRC32#": "123"}}, 95),
    ],
)
def test_record_length(fields: dict[str, Any], size_bytes: int) -> None:
    assert record_bytes(message_of(**fields), trailer=False) == size_bytes


@pytest.mark.parametrize(
    ("properties", "stored"),
    [
        ("", b""),
        ("A\x01b", b"A\x01b\x02"),
        ("A\x01b\x02", b"A\x01b\x02"),
        ({"A": "b"}, b"A\x01b\x02"),
        ({}, b""),
        ("__CRC32#\x01123", b""),
        ("__CRC32#\x01123\x02A\x01b", b"A\x01b\x02"),
        ("X__CRC32#\x01123", b"X__CRC32#\x01123\x02"),
        ({"__CRC32#": "1", "A": "b"}, b"A\x01b\x02"),
    ],
)
def test_trailer_adds_twenty_bytes_and_a_separator_if_needed(properties: Any, stored: bytes) -> None:
    message = message_of(properties=properties)
    assert stored_properties(message, trailer=True) == stored
    assert record_bytes(message, trailer=True) == 92 + len(stored) + 20


ILLEGAL: list[dict[str, Any]] = [
    {"topic": ""},
    {"topic": "t" * 128},
    {"topic": "é" * 64},
    {"topic": "a/b"},
    {"topic": "a\0"},
    {"topic": "."},
    {"topic": ".."},
    {"topic": "\ud800"},
    {"properties": "\ud800"},
    {"properties": "A\x01\0"},
    {"properties": {"A\x01B": "c"}},
    {"properties": {"A\x02B": "c"}},
    {"properties": {"A": "b\x02c"}},
    {"queue_id": -1},
    {"queue_id": 1 << 31},
    {"flag": 1 << 31},
    {"sys_flag": -(1 << 31) - 1},
    {"reconsume_times": 1 << 31},
    {"born_timestamp": 1 << 63},
    {"prepared_transaction_offset": -(1 << 63) - 1},
    {"born_host": ("localhost", 1)},
    {"born_host": ("::1%lo", 1)},
    {"store_host": ("1.2.3", 1)},
    {"store_host": ("1.2.3.4", 1 << 31)},
]
LEGAL: list[dict[str, Any]] = [
    {"topic": "t" * 127},
    {"topic": "..."},
    {"properties": {"A": "b\x01c"}},
    {"properties": "no pair at all"},
    {"queue_id": (1 << 31) - 1},
    {"flag": -(1 << 31)},
    {"prepared_transaction_offset": -(1 << 63)},
    {"born_host": ("::ffff:1.2.3.4", -1)},
    {"properties": {"__CRC32#": "\x02"}},
]


@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("fields", ILLEGAL, ids=repr)
def test_illegal_message_is_refused(fields: dict[str, Any], trailer: bool) -> None:
    assert refusal(message_of(**fields), trailer=trailer) is PutStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("fields", LEGAL, ids=repr)
def test_legal_message_is_taken(fields: dict[str, Any], trailer: bool) -> None:
    assert refusal(message_of(**fields), trailer=trailer) is None


@pytest.mark.parametrize(("trailer", "most_bytes"), [(False, 32_767), (True, 32_746)])
def test_longest_properties(trailer: bool, most_bytes: int) -> None:
    text = "A\x01".ljust(most_bytes, "x")
    assert refusal(message_of(properties=text), trailer=trailer) is None
    assert refusal(message_of(properties=text + "x"), trailer=trailer) is PutStatus.PROPERTIES_SIZE_EXCEEDED


@pytest.mark.parametrize(
    ("properties", "waits"),
    [
        ("", True),
        ("WAIT\x01true", True),
        ("WAIT\x01True", True),
        ("WAIT\x01false", False),
        ("WAIT\x01", True),
        ("WAIT\x01no\x02WAIT\x01true", True),
        ("WAIT\x01true\x02WAIT\x01no", False),
        ("OTHER\x01WAIT\x01false", True),
        ({"WAIT": "false"}, False),
        ({"WAIT": "true"}, True),
    ],
)
def test_which_messages_wait(properties: Any, waits: bool) -> None:
    assert waits_for_disk(message_of(properties=properties)) is waits


@pytest.mark.parametrize(
    ("sys_flag", "counts"), [(0, True), (4, False), (8, True), (12, False), (0x3C, False), (3, True)]
)
def test_which_messages_count_in_their_queue(sys_flag: int, counts: bool) -> None:
    assert message_of(sys_flag=sys_flag).counts_in_its_queue is counts
