"""Test messages that every log refuses: each row, its limit, and precedence of rows."""

from typing import Any

import pytest

from tests.model.support import layout_of, message_of
from tornpage.model.commitlog import CommitLog, PutOutcome, put
from tornpage.model.message import PutStatus

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
    {"properties": {"A": "\ud800"}},
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
    {"born_timestamp": -(1 << 63) - 1},
    {"flag": -(1 << 31) - 1},
    {"sys_flag": 1 << 31},
    {"queue_id": 1 << 40, "properties": "DELAY\x011"},
    {"queue_id": -1, "properties": "DELAY\x011"},
    {"born_host": ("::1%lo", 1)},
    {"born_host": ("", 1)},
    {"store_host": ("1.2.3", 1)},
    {"store_host": ("1.2.3.4", 1 << 31)},
]
LEGAL: list[dict[str, Any]] = [
    {"topic": "t" * 127},
    {"topic": "t" * 125 + "é"},
    {"topic": "..."},
    {"topic": "\x01"},
    {"properties": {"A": "b\x01c"}},
    {"properties": "no pair at all"},
    {"queue_id": (1 << 31) - 1},
    {"flag": -(1 << 31)},
    {"prepared_transaction_offset": -(1 << 63)},
    {"born_host": ("::ffff:1.2.3.4", -1)},
    {"properties": {"__CRC32#": "\x02"}},
    {"properties": {"__CRC32#": "\0\ud800"}},
    {"properties": "__CRC32#\x01\0\ud800"},
    {"properties": {"A": ""}},
    {"born_timestamp": -(1 << 63)},
    {"store_host": ("::", (1 << 31) - 1)},
]


BIG: dict[str, Any] = {"file_bytes": 1 << 20}


def status_of(layout: dict[str, Any], **fields: Any) -> PutStatus:
    """Return the answer to a put into an empty log, checking that a refusal changes nothing."""
    log, outcome = put(CommitLog(), message_of(**fields), layout=layout_of(**(BIG | layout)), store_timestamp=1)
    assert outcome.records or log == CommitLog()
    return outcome.status


@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("fields", ILLEGAL, ids=ascii)
def test_illegal_message_is_refused(fields: dict[str, Any], trailer: bool) -> None:
    assert status_of({"trailer": trailer}, **fields) is PutStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize("trailer", [True, False])
@pytest.mark.parametrize("fields", LEGAL, ids=ascii)
def test_legal_message_is_taken(fields: dict[str, Any], trailer: bool) -> None:
    assert status_of({"trailer": trailer}, **fields) is PutStatus.PUT_OK


@pytest.mark.parametrize(
    ("trailer", "properties"),
    [
        (False, "A\x01".ljust(32_767, "x")),
        (True, "A\x01".ljust(32_746, "x")),
        (True, "A\x01".ljust(32_746, "x") + "\x02"),
        (False, "A\x01é".ljust(32_766, "x")),
        (False, "DELAY\x011\x02A\x01".ljust(32_767 - 24, "x")),
    ],
    ids=["bare", "separator-added", "separator-given", "characters", "what-the-store-adds"],
)
def test_longest_properties(trailer: bool, properties: str) -> None:
    """One character or byte more is too much.

    The store adds two pairs of 12 and 10 bytes and their separators.
    """
    one_more = properties.replace("x", "xx", 1)
    assert status_of({"trailer": trailer}, properties=properties) is PutStatus.PUT_OK
    assert status_of({"trailer": trailer}, properties=one_more) is PutStatus.PROPERTIES_SIZE_EXCEEDED


def test_properties_too_long_in_characters_are_answered_as_in_bytes() -> None:
    for text in ("x" * 32_768, "é" * 20_000, "é" * 32_768):
        assert status_of({}, properties=text) is PutStatus.PROPERTIES_SIZE_EXCEEDED


def test_what_the_store_leaves_out_is_not_counted() -> None:
    """A rebuilt string has neither the producer's checksum nor parts that are no pair."""
    assert status_of({}, properties="__CRC32#\x01".ljust(40_000, "x")) is PutStatus.PUT_OK
    assert status_of({}, properties="DELAY\x011\x02".ljust(40_000, "x")) is PutStatus.PUT_OK
    assert status_of({}, properties="DELAY\x010\x02".ljust(40_000, "x")) is PutStatus.PROPERTIES_SIZE_EXCEEDED


@pytest.mark.parametrize(
    ("fields", "size_bytes"),
    [
        ({"body": b"x" * 100}, 192),
        ({"body": b"x" * 100, "born_host": ("::1", 1)}, 204),
        ({"properties": "DELAY\x011"}, 91 + 19 + 7 + 13 + 11),
    ],
)
@pytest.mark.parametrize("trailer_bytes", [0, 20])
def test_longest_record(fields: dict[str, Any], size_bytes: int, trailer_bytes: int) -> None:
    """The record is measured as stored, with trailer and added properties.

    8 bytes of a file stay free.
    """
    separator = 1 if trailer_bytes and "properties" in fields else 0
    size_bytes += trailer_bytes + separator
    trailer = trailer_bytes > 0
    fits = {"trailer": trailer, "record_bytes_max": size_bytes, "file_bytes": size_bytes + 8}
    assert status_of(fits, **fields) is PutStatus.PUT_OK
    assert status_of(fits | {"record_bytes_max": size_bytes - 1}, **fields) is PutStatus.MESSAGE_ILLEGAL
    assert status_of(fits | {"file_bytes": size_bytes + 7}, **fields) is PutStatus.MESSAGE_ILLEGAL


LONG = "A\x01".ljust(40_000, "x")
DISPATCH = {"multi_dispatch": True, "light_queues": True, "light_queues_max": 0}
NAMED = "\x02INNER_MULTI_DISPATCH\x01"


@pytest.mark.parametrize(
    ("layout", "fields", "status"),
    [
        ({}, {"topic": "", "properties": LONG}, PutStatus.MESSAGE_ILLEGAL),
        ({}, {"properties": {"A\x01": LONG}}, PutStatus.MESSAGE_ILLEGAL),
        ({}, {"properties": "DELAY\x01x\x02" + LONG}, PutStatus.MESSAGE_ILLEGAL),
        ({}, {"properties": "DELAY\x011\x02" + LONG, "topic": "SCHEDULE_TOPIC_XXXX"}, PutStatus.MESSAGE_ILLEGAL),
        ({}, {"properties": LONG + "\ud800"}, PutStatus.MESSAGE_ILLEGAL),
        ({}, {"properties": LONG + "\0"}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({}, {"properties": LONG, "born_host": ("x", 1)}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({}, {"properties": LONG, "queue_id": -1}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({"record_bytes_max": 1}, {"properties": LONG}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({"file_bytes": 1}, {"properties": LONG}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        (DISPATCH, {"properties": LONG + NAMED + "a/b"}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        (DISPATCH, {"properties": LONG + NAMED + "%LMQ%a"}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        (DISPATCH | {"record_bytes_max": 1}, {"properties": NAMED + "%LMQ%a"}, PutStatus.MESSAGE_ILLEGAL),
        (DISPATCH, {"properties": NAMED + "%LMQ%a,"}, PutStatus.MESSAGE_ILLEGAL),
        (DISPATCH, {"properties": NAMED + "%LMQ%a"}, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
        (DISPATCH | {"files_max": 0}, {"properties": NAMED + "%LMQ%a"}, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
        (DISPATCH | {"files_max": 0}, {"properties": NAMED + "a"}, PutStatus.CREATE_MAPEDFILE_FAILED),
        ({"files_max": 0}, {"topic": "."}, PutStatus.MESSAGE_ILLEGAL),
    ],
)
def test_the_first_row_counts(layout: dict[str, Any], fields: dict[str, Any], status: PutStatus) -> None:
    assert status_of(layout, **fields) is status


def test_a_refusal_comes_before_the_disk() -> None:
    assert put(CommitLog(), message_of(""), layout=layout_of(files_max=0), store_timestamp=1)[1] == (
        PutOutcome(PutStatus.MESSAGE_ILLEGAL)
    )
