"""Test batches: what is stored of them, each refusing row, and that they stay together."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.model.support import batch_of, inner_of, layout_of, message_of, put_all
from tornpage.model.batch import Inner, parsed
from tornpage.model.commitlog import CommitLog, Conditions, PutOutcome, Record, put
from tornpage.model.message import PutStatus, record_bytes

VECTORS = {v["name"]: v for v in json.loads((Path(__file__).parents[1] / "data" / "vectors.json").read_text("utf-8"))}
BIG = layout_of(file_bytes=1 << 20)
ILLEGAL, TOO_LONG, OK = PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED, PutStatus.PUT_OK
LONG = b"A\x01".ljust(30_000, b"x")


def with_inners(*inners: bytes, **fields: Any) -> Any:
    """Return a batch of these inner messages."""
    return batch_of(body=b"".join(inners), **fields)


def status_of(given: Any, **layout: Any) -> PutStatus:
    """Return the answer to a put into an empty log, checking that a refusal changes nothing."""
    log, outcome = put(CommitLog(), given, layout=layout_of(**({"file_bytes": 1 << 20} | layout)), store_timestamp=1)
    assert outcome.records or log == CommitLog()
    return outcome.status


def test_vector_of_a_batch() -> None:
    """V6: client body, batch properties, and two records after ten messages of their queue."""
    vector, stored = VECTORS["V6-client"], [VECTORS["V6-1"], VECTORS["V6-2"]]
    body = bytes.fromhex(vector["hex"])
    assert len(body) == 69
    assert parsed(body) == tuple(Inner(m["flag"], m["body"].encode(), m["properties"]) for m in vector["messages"])
    earlier = Record(0, 1000, 9, 0, message_of("TopicTest", queue_id=4))
    before = CommitLog(records=(earlier,), end_offset=1000, files=1)
    given = batch_of(topic="TopicTest", queue_id=4, body=body, properties=vector["batchProperties"])
    after, outcome = put(before, given, layout=layout_of(file_bytes=4096), store_timestamp=1_700_000_000_001)
    assert [record.size_bytes for record in outcome.records] == [142, 124]
    assert (outcome.record, after.end_offset) == (outcome.records[0], 1266)
    for record, expected in zip(outcome.records, stored, strict=True):
        found = record.message
        assert (record.offset, record.queue_offset) == (expected["physicalOffset"], expected["queueOffset"])
        assert (found.properties, found.flag) == (expected["properties"], expected["flag"])
        assert (found.body, found.queue_id) == (expected["body"].encode(), expected["queueId"])
        assert record_bytes(found, trailer=False) == expected["sizeBytes"]


def test_a_message_takes_everything_else_from_the_batch() -> None:
    given = with_inners(
        inner_of(b"1", b"A\x01b", flag=-7),
        topic="B",
        queue_id=3,
        sys_flag=0x31,
        born_timestamp=5,
        born_host=("::1", 6),
        store_host=("1.2.3.4", 7),
        reconsume_times=8,
        properties={"C": "d"},
    )
    log, _ = put_all(given, layout=BIG)
    assert [record.message for record in log.records] == [
        message_of(
            "B",
            b"1",
            queue_id=3,
            properties="A\x01b\x02C\x01d",
            flag=-7,
            sys_flag=0x31,
            born_timestamp=5,
            born_host=("::1", 6),
            store_host=("1.2.3.4", 7),
            reconsume_times=8,
            prepared_transaction_offset=0,
        )
    ]


@pytest.mark.parametrize(
    ("inner", "common", "stored"),
    [
        (b"", "", ""),
        (b"A\x01b", "", "A\x01b"),
        (b"A\x01b\x02", "", "A\x01b\x02"),
        (b"", "C\x01d\x02", "C\x01d\x02"),
        (b"A\x01b", "C\x01d", "A\x01b\x02C\x01d"),
        (b"A\x01b\x02", "C\x01d", "A\x01b\x02C\x01d"),
        (b"A\x01b", "A\x01c", "A\x01b\x02A\x01c"),
        (b"junk", "C\x01d", "junk\x02C\x01d"),
        (b"UNIQ_KEY\x011", "UNIQ_KEY\x012\x02C\x01d", "UNIQ_KEY\x011\x02C\x01d"),
        (b"A\x01b", "UNIQ_KEY\x012", "A\x01b"),
        (b"A\x01b", {"UNIQ_KEY": "2", "C": "d"}, "A\x01b\x02C\x01d"),
        (b"__CRC32#\x011\x02A\x01b", "C\x01d\x02__CRC32#\x012", "A\x01b\x02C\x01d"),
        (b"__CRC32#\x011", {"__CRC32#": "2", "C": "d"}, "C\x01d"),
        (b"DELAY\x013", "DELAY\x010", "DELAY\x013\x02DELAY\x010"),
        (b"WAIT\x01false", "", "WAIT\x01false"),
        (b"\xc3\xa9\x01b", "C\x01\xe9", "\xe9\x01b\x02C\x01\xe9"),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("trailer", [False, True])
def test_properties_of_a_message_in_a_batch(inner: bytes, common: Any, stored: str, trailer: bool) -> None:
    layout = layout_of(file_bytes=4096, trailer=trailer)
    log, _ = put_all(with_inners(inner_of(properties=inner), properties=common), layout=layout)
    (record,) = log.records
    assert record.message.properties == stored
    separator = 1 if stored and not stored.endswith("\x02") else 0
    assert record.size_bytes == 92 + len(stored.encode()) + (20 + separator if trailer else 0)


def broken_bodies() -> list[bytes]:
    """Return client bodies that do not parse, alone and after a message that does."""
    good = inner_of(b"body", b"A\x01b")
    negative_body = struct.pack(">iiiiih", 22, 0, 0, 0, -1, 0)
    negative_properties = struct.pack(">iiiiih", 22, 0, 0, 0, 0, -1)
    nested = struct.pack(">iiiii", 258, 0, 0, 0, 236)  # what a reader would find if it trusted the lengths below
    back_into_the_body = struct.pack(">iiiii", 66, 0, 0, 0, 300) + bytes(46) + nested + bytes(234) + b"\xff\0\0\0"
    back_into_the_header = struct.pack(">iiiii", 272, 0, 0, 0, -5) + b"x" * 252
    broken = [
        back_into_the_body,
        back_into_the_header,
        struct.pack(">iiiiih", 0, 0, 0, 0, 0, -22),
        good[:-1],
        good[:19],
        good[:21],
        good[:4],
        b"\0",
        good + b"\0",
        good + bytes(22),
        inner_of(b"body", total_bytes=25),
        inner_of(b"body", total_bytes=27),
        inner_of(b"body", total_bytes=-26),
        inner_of(total_bytes=0),
        negative_body,
        negative_properties,
        struct.pack(">iiiiih", 23, 0, 0, 0, 2**31 - 1, 0),
        struct.pack(">iiiiih", 22 + 32_767, 0, 0, 0, 0, 32_767),
    ]
    return [*broken, *(good + body for body in broken)]


@pytest.mark.parametrize("body", broken_bodies())
def test_body_that_does_not_parse(body: bytes) -> None:
    assert parsed(body) is None
    assert status_of(batch_of(body=body)) is ILLEGAL


def test_magic_and_checksum_of_the_client_are_not_looked_at() -> None:
    body = struct.pack(">iiiiih", 22, -1, -1, 0, 0, 0)
    assert parsed(body) == (Inner(0, b"", ""),)


@pytest.mark.parametrize(
    ("given", "layout", "status"),
    [
        (batch_of(b"", topic=""), {}, ILLEGAL),
        (batch_of(b"", topic="t" * 127), {}, OK),
        (batch_of(b"", topic="t" * 128), {}, ILLEGAL),
        (batch_of(b"", topic="a/b"), {}, ILLEGAL),
        (batch_of(body=None), {}, ILLEGAL),
        (batch_of(), {}, ILLEGAL),
        (batch_of(b"x", sys_flag=4), {}, ILLEGAL),
        (batch_of(b"x", sys_flag=8), {}, ILLEGAL),
        (batch_of(b"x", sys_flag=12), {}, ILLEGAL),
        (batch_of(b"x", sys_flag=0x33), {}, OK),
        (batch_of(b"x", properties="DELAY\x011"), {}, ILLEGAL),
        (batch_of(b"x", properties={"DELAY": "x"}), {}, ILLEGAL),
        (batch_of(b"x", properties="DELAY\x012147483648"), {}, ILLEGAL),
        (batch_of(b"x", properties="DELAY\x01x", topic="RMQ_SYS_TRANS_HALF_TOPIC"), {}, ILLEGAL),
        (batch_of(b"x", properties="DELAY\x010"), {}, OK),
        (batch_of(b"x", properties="DELAY\x01-1"), {}, OK),
        (batch_of(b"x", properties="DELAY\x01"), {}, OK),
        (with_inners(inner_of(properties=b"DELAY\x01x")), {}, OK),
        (batch_of(b"x", topic="SCHEDULE_TOPIC_XXXX"), {}, ILLEGAL),
        (batch_of(b"x", properties="INNER_MULTI_DISPATCH\x01a"), {}, OK),
        (batch_of(b"x", properties="INNER_MULTI_DISPATCH\x01a"), {"multi_dispatch": True}, ILLEGAL),
        (batch_of(b"x", properties="INNER_MULTI_DISPATCH\x01 "), {"multi_dispatch": True}, OK),
        (with_inners(inner_of(), inner_of(properties=b"INNER_MULTI_DISPATCH\x01a")), {"multi_dispatch": True}, ILLEGAL),
        (with_inners(inner_of(), inner_of(properties=b"INNER_MULTI_DISPATCH\x01a")), {"light_queues": True}, OK),
        (batch_of(b"x", properties={"A\x01": "b"}), {}, ILLEGAL),
        (batch_of(b"x", properties={"A": "\x02"}), {}, ILLEGAL),
        (batch_of(b"x", properties={"A": "\x01"}), {}, OK),
        (batch_of(b"x", properties="A\x01\ud800"), {}, ILLEGAL),
        (batch_of(b"x", properties={"A": "\udcff"}), {}, ILLEGAL),
        (with_inners(inner_of(), inner_of(properties=LONG), properties=LONG.decode()), {}, TOO_LONG),
        (batch_of(b"x", properties="A\x01b\0"), {}, ILLEGAL),
        (with_inners(inner_of(), inner_of(properties=b"\0")), {}, ILLEGAL),
        (with_inners(inner_of(), inner_of(properties=b"A\x01\xff")), {}, ILLEGAL),
        (with_inners(inner_of(), inner_of(properties=b"A\x01\xed\xa0\x80")), {}, ILLEGAL),
        (batch_of(b"x", born_host=("x", 1)), {}, ILLEGAL),
        (batch_of(b"x", store_host=("::1", 1 << 31)), {}, ILLEGAL),
        (batch_of(b"x", queue_id=-1), {}, ILLEGAL),
        (batch_of(b"x", queue_id=1 << 31), {}, ILLEGAL),
        (batch_of(b"x", sys_flag=1 << 31), {}, ILLEGAL),
        (batch_of(b"x", reconsume_times=1 << 31), {}, ILLEGAL),
        (batch_of(b"x", born_timestamp=1 << 63), {}, ILLEGAL),
    ],
)
def test_rows_of_a_batch(given: Any, layout: dict[str, Any], status: PutStatus) -> None:
    assert status_of(given, **layout) is status


@pytest.mark.parametrize(
    ("given", "layout", "status"),
    [
        (with_inners(inner_of(properties=LONG), properties=LONG.decode(), topic=""), {}, ILLEGAL),
        (with_inners(inner_of(properties=LONG) + b"\0", properties=LONG.decode()), {}, ILLEGAL),
        (with_inners(inner_of(properties=LONG), properties=LONG.decode()), {"record_bytes_max": 30_000}, ILLEGAL),
        (with_inners(inner_of(properties=LONG), properties=LONG.decode(), sys_flag=4), {}, ILLEGAL),
        (with_inners(inner_of(properties=LONG), properties="DELAY\x011\x02" + LONG.decode()), {}, ILLEGAL),
        (
            with_inners(
                inner_of(properties=LONG),
                inner_of(properties=b"INNER_MULTI_DISPATCH\x01\xff"),
                properties=LONG.decode(),
            ),
            {"multi_dispatch": True},
            ILLEGAL,
        ),
        (with_inners(inner_of(properties=LONG), properties=LONG.decode() + "\ud800"), {}, ILLEGAL),
        (with_inners(inner_of(properties=LONG), properties={"A": LONG.decode(), "B\x02": ""}), {}, ILLEGAL),
        (
            with_inners(inner_of(properties=b"\0\xff"), inner_of(properties=LONG), properties=LONG.decode()),
            {},
            TOO_LONG,
        ),
        (with_inners(inner_of(properties=LONG), properties=LONG.decode(), queue_id=-1), {}, TOO_LONG),
        (with_inners(inner_of(properties=LONG), properties=LONG.decode()), {"file_bytes": 256}, TOO_LONG),
        (with_inners(inner_of(properties=LONG), properties=LONG.decode()), {"record_bytes_max": 50_000}, TOO_LONG),
        (batch_of(b"x", queue_id=-1), {"files_max": 0}, ILLEGAL),
        (batch_of(b"x"), {"files_max": 0}, PutStatus.CREATE_MAPEDFILE_FAILED),
    ],
)
def test_the_first_row_counts(given: Any, layout: dict[str, Any], status: PutStatus) -> None:
    assert status_of(given, **layout) is status


@pytest.mark.parametrize(("trailer", "most_bytes"), [(False, 32_767), (True, 32_746)])
def test_longest_properties_of_a_message_with_those_of_the_batch(trailer: bool, most_bytes: int) -> None:
    filler = b"A\x01".ljust(most_bytes - len("\x02C\x01d"), b"x")
    for extra, status in ((b"", OK), (b"x", TOO_LONG)):
        given = with_inners(inner_of(), inner_of(properties=filler + extra), properties="C\x01d")
        assert status_of(given, trailer=trailer) is status


def test_longest_batch() -> None:
    """The client body, each record, and all records together are not longer than the limit."""
    two = batch_of(b"", b"x")  # 45 bytes of body, records of 92 and 93 bytes
    assert status_of(two, record_bytes_max=185) is OK
    assert status_of(two, record_bytes_max=184) is ILLEGAL
    assert status_of(batch_of(b"x" * 100), record_bytes_max=192) is OK
    assert status_of(batch_of(b"x" * 100), record_bytes_max=191) is ILLEGAL
    assert status_of(batch_of(b"x"), record_bytes_max=22) is ILLEGAL
    assert status_of(two, file_bytes=193) is OK
    assert status_of(two, file_bytes=192) is ILLEGAL
    assert status_of(two, file_bytes=193, trailer=True) is ILLEGAL
    assert status_of(two, file_bytes=233, trailer=True) is OK


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_batch_never_spans_files(before: int) -> None:
    """Two records of 92 fit a file of 256.

    With one record there already, both go to the next file.
    """
    layout = layout_of()
    log, _ = put_all(*[message_of()] * before, layout=layout)
    after, outcome = put(log, batch_of(b"", b""), layout=layout, store_timestamp=9)
    start = 0 if before == 0 else 256
    assert [record.offset for record in outcome.records] == [start, start + 92]
    assert [record.queue_offset for record in outcome.records] == [before, before + 1]
    assert [record.store_timestamp for record in outcome.records] == [9, 9]
    assert after.files == (1 if before == 0 else 2)


@pytest.mark.parametrize(("left", "offset"), [(8, 92), (7, 300)])
def test_eight_bytes_stay_free_behind_a_batch(left: int, offset: int) -> None:
    layout = layout_of(file_bytes=300)
    log, _ = put_all(message_of(), layout=layout)
    _, outcome = put(log, batch_of(b"", b"x" * (300 - left - 3 * 92)), layout=layout, store_timestamp=2)
    assert outcome.record is not None
    assert outcome.record.offset == offset


def test_a_batch_is_taken_or_refused_as_a_whole() -> None:
    layout = layout_of(files_max=1)
    log, _ = put_all(message_of(), layout=layout)
    full = PutOutcome(PutStatus.CREATE_MAPEDFILE_FAILED)
    assert put(log, batch_of(b"", b""), layout=layout, store_timestamp=2) == (log, full)
    fails = Conditions(sync_fails=True)
    assert put(log, batch_of(b"", b""), layout=layout_of(), store_timestamp=2, conditions=fails) == (log, full)
    assert put(log, batch_of(b""), layout=layout, store_timestamp=2)[1].status is OK


def test_batches_and_messages_are_numbered_together() -> None:
    log, outcomes = put_all(
        batch_of(b"", b""),
        message_of(),
        message_of(sys_flag=4),
        batch_of(b"", b"", queue_id=1),
        batch_of(b""),
        layout=BIG,
    )
    assert [record.queue_offset for record in log.records] == [0, 1, 2, 0, 0, 1, 3]
    assert [len(outcome.records) for outcome in outcomes] == [2, 1, 1, 2, 1]


@pytest.mark.parametrize(
    ("inner", "common", "flushed"),
    [(b"", "", True), (b"WAIT\x01false", "", True), (b"WAIT\x01true", "WAIT\x01false", False), (b"", "WAIT\x01", True)],
)
def test_a_batch_waits_as_its_own_properties_say(inner: bytes, common: str, flushed: bool) -> None:
    layout = layout_of(sync_flush=True)
    log, _ = put_all(with_inners(inner_of(), inner_of(properties=inner), properties=common), layout=layout)
    assert log.flushed_offset == (log.end_offset if flushed else 0)
