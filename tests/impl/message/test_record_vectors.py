"""Test records, blanks and ids in both directions against the shared vectors."""

from pathlib import Path

import pytest

from tests.support.impl.records import VECTORS, host, message_of_vector, record_of
from tests.support.impl.stores import SetClock, open_store
from tornpage.impl.message import codec
from tornpage.impl.message.hosts import message_id
from tornpage.impl.message.message import Message
from tornpage.properties.decode.record import parse_properties

RECORDS = ("V1", "V2", "V3", "V3b", "V5", "V6-1", "V6-2", "V12-1", "V12-2", "V12-3")


@pytest.mark.parametrize("name", RECORDS)
def test_vector_is_encoded_to_its_bytes(name: str) -> None:
    vector = VECTORS[name]
    record = record_of(
        message_of_vector(vector),
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
    assert message_id(host(vector["storeHost"]), vector["physicalOffset"]) == vector["hex"]
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
    clock = SetClock()
    message = message_of_vector(VECTORS["V12-1"])
    with open_store(tmp_path, file_bytes=256, trailer=False, clock=clock) as store:
        results = []
        for clock.now_ms in (1_700_000_000_001, 1_700_000_000_002, 1_700_000_000_003):
            results.append(store.put(message))
        assert [result.offset for result in results] == [0, 92, 256]
        assert [result.queue_offset for result in results] == [0, 1, 2]
        decoded = list(store.messages())
    for name, parts in VECTORS["V12"]["files"].items():
        expected = b"".join(bytes.fromhex(VECTORS[part]["hex"]) for part in parts)
        assert (tmp_path / "commitlog" / name).read_bytes() == expected.ljust(256, b"\0")
    assert [stored.store_timestamp for stored in decoded] == [VECTORS[f"V12-{n}"]["storeTimestamp"] for n in (1, 2, 3)]
