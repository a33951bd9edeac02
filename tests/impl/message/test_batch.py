"""Test the plain batch encoder: the shared vector, records read back, and all refusals."""

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tornpage.impl.message import batch, codec
from tornpage.impl.message.batch import BatchFrame, EncodedBatch
from tornpage.impl.message.message import BatchMember, PutStatus

VECTORS: dict[str, dict[str, Any]] = {
    vector["name"]: vector
    for vector in json.loads((Path(__file__).parents[2] / "data" / "vectors.json").read_text(encoding="utf-8"))
}
V6 = [
    BatchMember(message["body"].encode(), message["properties"], message["flag"])
    for message in VECTORS["V6-client"]["messages"]
]
V4 = bytes((127, 0, 0, 1)) + (50_000).to_bytes(4, "big")
V6_HOST = bytes(15) + b"\x01" + (10_911).to_bytes(4, "big")
FRAME = BatchFrame(
    topic=b"TopicTest",
    queue_id=4,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    born_host=V4,
    store_host=bytes((127, 0, 0, 1)) + (10_911).to_bytes(4, "big"),
    reconsume_times=0,
    properties=b"WAIT\x01true\x02CLUSTER\x01C1",
    trailer=True,
    record_bytes_max=1 << 20,
    room_bytes_max=1 << 20,
    multi_dispatch=False,
)
PLAIN = replace(FRAME, trailer=False)
BARE = replace(FRAME, properties=b"")


def inner(properties: bytes, content: bytes = b"body", flag: int = 0) -> bytes:
    """Return one message of a client body with any properties."""
    total = 22 + len(content) + len(properties)
    head = struct.pack(">iiiii", total, 0, 0, flag, len(content))
    return head + content + struct.pack(">h", len(properties)) + properties


def encoded(body: bytes, frame: BatchFrame) -> EncodedBatch:
    answer = batch.encode_batch(body, frame)
    assert isinstance(answer, EncodedBatch), answer
    return answer


def records(body: bytes, frame: BatchFrame) -> list[bytes]:
    """Return the records, encoded and placed at byte 1000, queue offset 10."""
    answer = encoded(body, frame)
    batch.place_batch(answer, queue_offset=10, physical_offset=1000, store_timestamp=1_700_000_000_001)
    starts = [0, *answer.ends]
    assert starts[-1] == len(answer.data)
    return [bytes(answer.data[start:end]) for start, end in pairwise(starts)]


def stored_properties(record: bytes) -> bytes:
    """Return the properties of a record with IPv4 hosts, trailer included."""
    body_bytes = int.from_bytes(record[84:88], "big")
    topic_bytes = record[88 + body_bytes]
    properties = record[91 + body_bytes + topic_bytes :]
    assert int.from_bytes(record[89 + body_bytes + topic_bytes : 91 + body_bytes + topic_bytes], "big") == len(
        properties
    )
    return properties


def test_client_body_is_that_of_the_vector() -> None:
    assert batch.encode_batch_body(V6).hex() == VECTORS["V6-client"]["hex"]


def test_records_are_those_of_the_vector() -> None:
    found = records(bytes.fromhex(VECTORS["V6-client"]["hex"]), PLAIN)
    assert [record.hex() for record in found] == [VECTORS[name]["hex"] for name in VECTORS["V6-client"]["stored"]]


def test_mapping_is_written_as_pairs_without_a_last_separator() -> None:
    body = batch.encode_batch_body([BatchMember(b"", {"A": "1\x01", "B": ""}, flag=-1)])
    assert body == inner(b"A\x011\x01\x02B\x01", content=b"", flag=-1)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "a batch without a message; give at least one"),
        (
            [BatchMember(b""), BatchMember(b"", {"A\x01": "1"})],
            r"message 1: property 'A\x01' holds a separator, byte 01 or 02; leave it out",
        ),
        (
            [BatchMember(b"", {"A": "\x02"})],
            "message 0: property 'A' holds a separator, byte 01 or 02; leave it out",
        ),
        ([BatchMember(b"", "A\x01\ud800")], "message 0: properties hold a lone surrogate; leave it out"),
        (
            [BatchMember(b"", "ä" * 16_384)],
            "message 0: properties of 32768 bytes; keep them at 32767 or less",
        ),
        ([BatchMember(b"", flag=1 << 31)], "message 0: flag 2147483648 has more than 32 bits; use a smaller one"),
        (
            [BatchMember(b"", flag=-(1 << 31) - 1)],
            "message 0: flag -2147483649 has more than 32 bits; use a smaller one",
        ),
    ],
)
def test_client_body_refuses_what_has_no_encoding(members: Sequence[BatchMember], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        batch.encode_batch_body(members)
    assert str(caught.value) == message


def test_client_body_takes_the_largest_properties_and_flags() -> None:
    member = BatchMember(b"", "a" * 32_767, flag=(1 << 31) - 1)
    assert batch.encode_batch_body([member]) == inner(b"a" * 32_767, content=b"", flag=(1 << 31) - 1)


@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize(("born", "sys_flag"), [(V4, 0x01), (V6_HOST, 0x11)])
@pytest.mark.parametrize(("stored_at", "more"), [(V4, 0), (V6_HOST, 0x20)])
def test_records_are_valid_and_decode_to_what_was_put(
    born: bytes, sys_flag: int, stored_at: bytes, more: int, trailer: bool
) -> None:
    frame = replace(
        FRAME,
        born_host=born,
        store_host=stored_at,
        sys_flag=sys_flag | more,
        reconsume_times=3,
        trailer=trailer,
    )
    members = [BatchMember(b"x" * index, {"KEYS": f"k{index}"} if index % 2 else "", flag=-index) for index in range(9)]
    found = records(batch.encode_batch_body(members), frame)
    log = memoryview(b"".join(found) + bytes(8))
    position = 0
    for index, member in enumerate(members):
        size_bytes, reason = codec.check_record(log, position, limit=len(log), offset=1000 + position)
        assert (size_bytes, reason) == (len(found[index]), None)
        message = codec.decode_record(log, position)
        assert (message.offset, message.queue_offset) == (1000 + position, 10 + index)
        assert (message.topic, message.queue_id, message.body, message.flag) == ("TopicTest", 4, member.body, -index)
        assert message.properties == ({"KEYS": f"k{index}"} if index % 2 else {}) | {"WAIT": "true", "CLUSTER": "C1"}
        assert (message.sys_flag, message.reconsume_times) == (sys_flag | more, 3)
        assert (message.born_timestamp, message.store_timestamp) == (1_700_000_000_000, 1_700_000_000_001)
        assert message.born_host == (("127.0.0.1", 50_000) if born == V4 else ("::1", 10_911))
        assert message.store_host == (("127.0.0.1", 50_000) if stored_at == V4 else ("::1", 10_911))
        assert message.prepared_transaction_offset == 0
        assert (b"__CRC32#" in found[index]) is trailer
        position += size_bytes


def test_placing_again_writes_over_the_first_place() -> None:
    body = batch.encode_batch_body(V6)
    twice, once = encoded(body, FRAME), encoded(body, FRAME)
    batch.place_batch(twice, queue_offset=1, physical_offset=2, store_timestamp=3)
    for answer in (twice, once):
        batch.place_batch(answer, queue_offset=7, physical_offset=1 << 40, store_timestamp=1_700_000_000_001)
    assert twice == once


@pytest.mark.parametrize(
    ("own", "common", "merged", "before_trailer"),
    [
        (b"", b"", b"", b""),
        (b"A\x011", b"", b"A\x011", b"A\x011\x02"),
        (b"A\x011\x02", b"", b"A\x011\x02", b"A\x011\x02"),
        (b"", b"B\x012", b"B\x012", b"B\x012\x02"),
        (b"A\x011", b"B\x012", b"A\x011\x02B\x012", b"A\x011\x02B\x012\x02"),
        (b"A\x011\x02", b"B\x012\x02", b"A\x011\x02B\x012\x02", b"A\x011\x02B\x012\x02"),
        (b"A\x011\x02__CRC32#\x0112", b"B\x012", b"A\x011\x02B\x012", b"A\x011\x02B\x012\x02"),
        (b"__CRC32#\x0112\x02A\x011", b"", b"A\x011", b"A\x011\x02"),
        (b"__CRC32#\x01\0\xff", b"", b"", b""),
        (b"A__CRC32#\x011", b"", b"A__CRC32#\x011", b"A__CRC32#\x011\x02"),
    ],
)
def test_properties_are_merged(own: bytes, common: bytes, merged: bytes, before_trailer: bytes) -> None:
    frame = replace(FRAME, properties=common)
    assert [stored_properties(r) for r in records(inner(own), replace(frame, trailer=False))] == [merged]
    (with_trailer,) = (stored_properties(record) for record in records(inner(own), frame))
    assert with_trailer[:-20] == before_trailer
    assert with_trailer[-20:].startswith(b"__CRC32#\x01")


GOOD = inner(b"A\x011")
LONG = inner(b"A\x01" + b"1" * 32_765)
NUL = inner(b"A\x01\0")
DISPATCHED = inner(b"INNER_MULTI_DISPATCH\x01q")
TORN = GOOD[:-1]
ILLEGAL, EXCEEDED = PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED
MULTI = replace(FRAME, multi_dispatch=True)


@pytest.mark.parametrize(
    ("body", "frame", "status"),
    [
        pytest.param(b"", FRAME, ILLEGAL, id="no message"),
        pytest.param(LONG, replace(FRAME, record_bytes_max=100), ILLEGAL, id="body too long, before properties"),
        pytest.param(LONG + TORN, FRAME, ILLEGAL, id="does not parse, before properties"),
        pytest.param(LONG + bytes(21), FRAME, ILLEGAL, id="bytes left over"),
        pytest.param(LONG + DISPATCHED, MULTI, ILLEGAL, id="multi-dispatch, before properties"),
        pytest.param(LONG + DISPATCHED, FRAME, EXCEEDED, id="no multi-dispatch"),
        pytest.param(LONG + inner(b"INNER_MULTI_DISPATCH\x01 "), MULTI, EXCEEDED, id="multi-dispatch, blank"),
        pytest.param(NUL + LONG, FRAME, EXCEEDED, id="properties, before NUL"),
        pytest.param(LONG, replace(FRAME, properties=b"A\x01\0"), EXCEEDED, id="properties, before NUL of the batch"),
        pytest.param(LONG, replace(FRAME, born_host=b""), EXCEEDED, id="properties, before hosts"),
        pytest.param(LONG, replace(FRAME, queue_id=-1), EXCEEDED, id="properties, before numbers"),
        pytest.param(LONG, replace(FRAME, room_bytes_max=100), EXCEEDED, id="properties, before room"),
        pytest.param(GOOD + NUL, FRAME, ILLEGAL, id="NUL"),
        pytest.param(GOOD + inner(b"A\x01\xff"), FRAME, ILLEGAL, id="no UTF-8"),
        pytest.param(GOOD + inner(b"A\x01\xc3"), FRAME, ILLEGAL, id="half a character before the batch's"),
        pytest.param(GOOD, replace(FRAME, properties=b"A\x01\0"), ILLEGAL, id="NUL of the batch"),
        pytest.param(GOOD, replace(FRAME, born_host=b""), ILLEGAL, id="born host"),
        pytest.param(GOOD, replace(FRAME, store_host=bytes(9)), ILLEGAL, id="store host"),
        pytest.param(GOOD, replace(FRAME, queue_id=-1), ILLEGAL, id="queue id negative"),
        pytest.param(GOOD, replace(FRAME, queue_id=1 << 31), ILLEGAL, id="queue id"),
        pytest.param(GOOD, replace(FRAME, sys_flag=1 << 31), ILLEGAL, id="sysFlag"),
        pytest.param(GOOD, replace(FRAME, born_timestamp=1 << 63), ILLEGAL, id="born time"),
        pytest.param(GOOD, replace(FRAME, reconsume_times=1 << 31), ILLEGAL, id="reconsume times"),
    ],
)
def test_first_row_that_fits_refuses(body: bytes, frame: BatchFrame, status: PutStatus) -> None:
    assert batch.encode_batch(body, frame) is status


@pytest.mark.parametrize(
    ("at", "field"),
    [(0, 26), (0, 28), (0, -1), (16, -1), (16, 5), (16, 1 << 30), (16, (1 << 31) - 1)],
)
def test_body_with_a_wrong_length_is_illegal(at: int, field: int) -> None:
    good = inner(b"A", content=b"body")
    wrong = good[:at] + struct.pack(">i", field) + good[at + 4 :]
    assert batch.encode_batch(good + wrong, FRAME) is ILLEGAL


def test_body_with_negative_properties_is_illegal() -> None:
    assert batch.encode_batch(struct.pack(">iiiiih", 22 - 1, 0, 0, 0, 0, -1), BARE) is ILLEGAL


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"INNER_MULTI_DISPATCH\x01q\x02INNER_MULTI_DISPATCH\x01 ", None),
        (b"INNER_MULTI_DISPATCH\x01 \x02INNER_MULTI_DISPATCH\x01q", ILLEGAL),
        (b"INNER_MULTI_DISPATCH\x01q\x02INNER_MULTI_DISPATCH\x01", ILLEGAL),
        (b"INNER_MULTI_DISPATCH\x01\x01", ILLEGAL),
        (b"XINNER_MULTI_DISPATCH\x01q", None),
        (b"INNER_MULTI_DISPATCH", None),
    ],
)
def test_multi_dispatch_is_read_as_rocketmq_reads_it(text: bytes, status: PutStatus | None) -> None:
    answer = batch.encode_batch(GOOD + inner(text), MULTI)
    assert answer is status if status else isinstance(answer, EncodedBatch)


@pytest.mark.parametrize(
    ("own_bytes", "common", "trailer", "fits"),
    [
        (32_767, b"", False, True),
        (32_766, b"", True, False),  # separator and trailer
        (32_746, b"", True, True),
        (32_747, b"", True, False),
        (32_765, b"B", False, True),
        (32_766, b"B", False, False),
        (32_745, b"\x02", True, True),
        (32_746, b"\x02", True, False),
    ],
)
def test_properties_are_bounded_with_all_that_is_added(
    own_bytes: int, common: bytes, trailer: bool, fits: bool
) -> None:
    answer = batch.encode_batch(inner(b"a" * own_bytes), replace(FRAME, properties=common, trailer=trailer))
    assert isinstance(answer, EncodedBatch) if fits else answer is EXCEEDED


@pytest.mark.parametrize("bound", ["record_bytes_max", "room_bytes_max"])
def test_sum_of_the_records_is_bounded(bound: str) -> None:
    size_bytes = len(encoded(GOOD * 3, FRAME).data)
    assert isinstance(batch.encode_batch(GOOD * 3, replace(FRAME, **{bound: size_bytes})), EncodedBatch)  # type: ignore[arg-type]
    assert batch.encode_batch(GOOD * 3, replace(FRAME, **{bound: size_bytes - 1})) is ILLEGAL  # type: ignore[arg-type]
