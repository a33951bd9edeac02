"""Test messages of the model: length of records, waiting, and counting in the queue."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.model.support import batch_of, layout_of, message_of
from tornpage.model import admission
from tornpage.model.message import Message, record_bytes, stored_properties, waits_for_disk

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
    assert admission.as_given(message) is None
    assert admission.as_stored(message, message, layout=layout_of(file_bytes=65_536)) is None


@pytest.mark.parametrize(
    ("fields", "size_bytes"),
    [
        ({}, 92),
        ({"body": b"12345"}, 97),
        ({"body": None}, 92),
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
        ({"WAIT": ""}, True),
        ({"WAIT": " true"}, False),
        ("WAIT\x01false\x02WAIT\x01", False),
    ],
)
def test_which_messages_wait(properties: Any, waits: bool) -> None:
    assert waits_for_disk(message_of(properties=properties)) is waits
    assert waits_for_disk(batch_of(b"", properties=properties)) is waits


@pytest.mark.parametrize(
    ("sys_flag", "counts"), [(0, True), (4, False), (8, True), (12, False), (0x3C, False), (3, True)]
)
def test_which_messages_count_in_their_queue(sys_flag: int, counts: bool) -> None:
    assert message_of(sys_flag=sys_flag).counts_in_its_queue is counts
