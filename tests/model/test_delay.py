"""Test delay levels: moved messages, their place, and their written properties."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.model.support import layout_of, message_of, put_all
from tornpage.model import delay
from tornpage.model.commitlog import CommitLog, put
from tornpage.model.message import PutStatus

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors.json").read_text(encoding="utf-8"))
LAYOUT = layout_of(file_bytes=4096)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (None, 0),
        ("", 0),
        ("0", 0),
        ("-0", 0),
        ("3", 3),
        ("+3", 3),
        ("-3", -3),
        ("007", 7),
        ("0" * 5000 + "5", 5),
        ("2147483647", 2**31 - 1),
        ("2147483648", None),
        ("-2147483648", -(2**31)),
        ("-2147483649", None),
        ("9" * 5000, None),
        ("x", None),
        ("+", None),
        ("--1", None),
        ("1 ", None),
        (" ", None),
        ("1_0", None),
        ("1.0", None),
        ("0x1", None),
        ("１", None),
        ("1\n", None),
        ("1\x01", None),
    ],
    ids=lambda value: ascii(value)[:16],
)
def test_level(text: str | None, level: int | None) -> None:
    assert delay.level_of({} if text is None else {"DELAY": text}) == level
    assert delay.level_of("" if text is None else f"A\x01b\x02DELAY\x01{text}\x02") == level


def test_last_level_counts() -> None:
    assert delay.level_of("DELAY\x01x\x02DELAY\x013") == 3
    assert delay.level_of("DELAY\x013\x02DELAY\x01") == 3


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"properties": "DELAY\x01x"}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": "DELAY\x01x", "sys_flag": 8}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": "DELAY\x01x", "sys_flag": 4}, PutStatus.PUT_OK),
        ({"properties": "DELAY\x01x", "sys_flag": 12}, PutStatus.PUT_OK),
        ({"properties": "DELAY\x01x", "topic": "RMQ_SYS_TRANS_HALF_TOPIC"}, PutStatus.PUT_OK),
        ({"properties": "DELAY\x01x", "topic": "SCHEDULE_TOPIC_XXXX"}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": "DELAY\x011", "topic": "SCHEDULE_TOPIC_XXXX"}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": "DELAY\x011", "topic": "SCHEDULE_TOPIC_XXXX", "sys_flag": 8}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": "DELAY\x011", "topic": "SCHEDULE_TOPIC_XXXX", "sys_flag": 4}, PutStatus.PUT_OK),
        ({"properties": "DELAY\x010", "topic": "SCHEDULE_TOPIC_XXXX"}, PutStatus.PUT_OK),
        ({"properties": "DELAY\x01-1", "topic": "SCHEDULE_TOPIC_XXXX"}, PutStatus.PUT_OK),
        ({"properties": "", "topic": "SCHEDULE_TOPIC_XXXX"}, PutStatus.PUT_OK),
    ],
)
def test_which_levels_are_refused(fields: dict[str, Any], status: PutStatus) -> None:
    log, outcome = put(CommitLog(), message_of(**fields), layout=LAYOUT, store_timestamp=1)
    assert outcome.status is status
    assert [record.message for record in log.records] == ([message_of(**fields)] if outcome.records else [])


@pytest.mark.parametrize(
    ("fields", "properties", "queue_id"),
    [
        ({"properties": "DELAY\x011"}, "DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x010", 0),
        ({"properties": {"DELAY": "+3"}, "queue_id": 7}, "DELAY\x01+3\x02REAL_TOPIC\x01T\x02REAL_QID\x017", 2),
        ({"properties": "DELAY\x0118"}, "DELAY\x0118\x02REAL_TOPIC\x01T\x02REAL_QID\x010", 17),
        ({"properties": "DELAY\x0119"}, "DELAY\x0118\x02REAL_TOPIC\x01T\x02REAL_QID\x010", 17),
        (
            {"properties": "WAIT\x01false\x02DELAY\x01099\x02A\x01b\x02", "topic": "%RETRY%g"},
            "WAIT\x01false\x02DELAY\x0118\x02A\x01b\x02REAL_TOPIC\x01%RETRY%g\x02REAL_QID\x010",
            17,
        ),
        (
            {"properties": "REAL_QID\x01x\x02DELAY\x012\x02junk\x02A\x01\x02REAL_TOPIC\x01y\x02DELAY\x014"},
            "REAL_QID\x010\x02DELAY\x014\x02REAL_TOPIC\x01T",
            3,
        ),
        (
            {"properties": "__CRC32#\x011\x02DELAY\x011", "sys_flag": 8},
            "DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x010",
            0,
        ),
    ],
)
def test_delayed_message_is_stored_under_its_level(fields: dict[str, Any], properties: str, queue_id: int) -> None:
    log, _ = put_all(message_of(**fields), layout=LAYOUT)
    (record,) = log.records
    expected = message_of(**(fields | {"topic": "SCHEDULE_TOPIC_XXXX", "queue_id": queue_id, "properties": properties}))
    assert record.message == expected
    assert record.size_bytes == 91 + 19 + len(properties)


def test_levels_of_another_table() -> None:
    log, _ = put_all(message_of(properties="DELAY\x014"), layout=layout_of(delay_levels=3))
    assert log.records[0].message.queue_id == 2
    assert log.records[0].message.properties == "DELAY\x013\x02REAL_TOPIC\x01T\x02REAL_QID\x010"


def test_level_zero_and_below_change_nothing() -> None:
    for properties in ("DELAY\x010\x02", "DELAY\x01-5\x02", {"DELAY": ""}):
        log, _ = put_all(message_of(properties=properties), layout=LAYOUT)
        assert log.records[0].message == message_of(properties=properties)


def test_delayed_messages_of_one_level_share_a_queue() -> None:
    given = [message_of(topic, properties="DELAY\x013") for topic in ("A", "B")]
    log, _ = put_all(*given, message_of("SCHEDULE_TOPIC_XXXX", queue_id=2), message_of("A"), layout=LAYOUT)
    assert [record.queue_offset for record in log.records] == [0, 1, 2, 0]


def test_vector_of_a_delayed_record() -> None:
    """V5: the producer gave the properties in this order.

    Existing ones are rewritten in place.
    """
    vector = next(vector for vector in VECTORS if vector["name"] == "V5")
    given = message_of(
        "TopicTest",
        b"delayed",
        queue_id=1,
        properties="DELAY\x013\x02REAL_TOPIC\x01?\x02REAL_QID\x01?\x02WAIT\x01true\x02TAGS\x01TagA",
    )
    log, _ = put_all(given, layout=LAYOUT)
    (record,) = log.records
    found = record.message
    assert (found.topic, found.queue_id, found.properties) == (vector["topic"], vector["queueId"], vector["properties"])
    assert (record.size_bytes, record.queue_offset) == (176, 0) == (vector["sizeBytes"], vector["queueOffset"])
    log, _ = put_all(
        message_of("TopicTest", b"delayed", queue_id=1, properties="DELAY\x013\x02WAIT\x01true\x02TAGS\x01TagA"),
        layout=LAYOUT,
    )
    assert log.records[0].size_bytes == 176, "another order, the same length"
