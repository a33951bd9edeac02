"""Records for tests: encoded and placed as in a store, or from the shared vectors."""

import json
from pathlib import Path
from typing import Any

from tornpage.impl.message import codec
from tornpage.impl.message.encoder import RecordEncoder
from tornpage.impl.message.hosts import Host
from tornpage.impl.message.message import Message, PutStatus

__all__ = ["V4_LOOPBACK", "VECTORS", "check", "encoder_of", "host", "message_of_vector", "record_of", "refusal"]

VECTORS: dict[str, dict[str, Any]] = {
    vector["name"]: vector
    for vector in json.loads((Path(__file__).parents[2] / "data" / "vectors.json").read_text(encoding="utf-8"))
}
V4_LOOPBACK: Host = ("127.0.0.1", 10911)


def host(pair: list[Any]) -> Host:
    """Return a host as JSON has it."""
    return pair[0], pair[1]


def message_of_vector(vector: dict[str, Any]) -> Message:
    """Return the message of a record vector."""
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


def encoder_of(
    *, trailer: bool, store_host: Host = V4_LOOPBACK, record_bytes_max: int = (1 << 31) - 1
) -> RecordEncoder:
    """Return an encoder for files without an end."""
    return RecordEncoder(
        store_host=store_host, trailer=trailer, record_bytes_max=record_bytes_max, room_bytes_max=1 << 40
    )


def record_of(
    message: Message,
    *,
    trailer: bool = False,
    queue_offset: int = 0,
    physical_offset: int = 0,
    store_timestamp: int = 1_700_000_000_001,
) -> bytearray:
    """Return the whole record of a legal message."""
    record = encoder_of(trailer=trailer).encode(message, now_ms=5)
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
    """Check a record with this many zeros after it, at the end of the file."""
    return codec.check_record(memoryview(bytes(data) + bytes(room)), 0, limit=len(data) + room, offset=offset)


def refusal(**fields: Any) -> PutStatus:
    """Return the refusal of a message with these fields, with a trailer by default."""
    values = {"topic": "T", "body": b"b"} | fields
    trailer = values.pop("trailer", True)
    answer = encoder_of(trailer=trailer).encode(Message(**values), now_ms=5)
    assert isinstance(answer, PutStatus), bytes(answer)
    return answer
