"""Build the messages of put operations: bodies, hosts and times from small numbers.

Equal operations give equal bytes on every machine, so that a case stays small.
"""

import random
from dataclasses import replace
from functools import lru_cache

from tornpage.model.message import Batch, Message
from tornpage.model.operations import BatchDefect, Put, PutBatch

__all__ = ["BORN_TIMESTAMP", "batch_of", "body_of", "born_at", "given_of", "message_of"]

BORN_TIMESTAMP = 1_700_000_000_000
_HOSTS = {False: ("192.0.2.7", 50_000), True: ("2001:db8::7", 50_000)}
_STORE_HOSTS = {False: ("198.51.100.3", 10_911), True: ("2001:db8::3", 10_911)}
_WHOLE_RECORD = bytes.fromhex(
    "0000005cdaa320a700000000000000000000000000000000000000000000000000000000000000000000018bcfe56800"
    "7f0000010000c3500000018bcfe568017f00000100002a9f0000000000000000000000000000000001540000"
)
"""A valid record with physical offset 0, for bodies that must not be taken for records."""


@lru_cache(maxsize=4096)
def body_of(kind: str, size_bytes: int, fill: int) -> bytes:
    """Return the body of a Put; equal arguments give equal bytes on every machine."""
    match kind:
        case "zeros":
            return bytes(size_bytes)
        case "record":
            return (_WHOLE_RECORD * (size_bytes // len(_WHOLE_RECORD) + 1))[: max(size_bytes, len(_WHOLE_RECORD))]
        case _:
            return random.Random(fill * 1_000_003 + size_bytes).randbytes(size_bytes)


def given_of(put: Put | PutBatch) -> Message | Batch:
    """Return what the producer hands in with a put."""
    return message_of(put) if isinstance(put, Put) else batch_of(put)


def born_at(put: Put | PutBatch, given: Message | Batch, now_ms: int) -> Message | Batch:
    """Return what is put at clock time `now_ms`; a put may take its born time from the clock."""
    return replace(given, born_timestamp=now_ms) if put.born_now else given


def message_of(put: Put) -> Message:
    """Return the model's message for a Put."""
    return Message(
        topic=put.topic,
        body=None if put.body_kind == "none" else body_of(put.body_kind, put.body_bytes, put.fill),
        queue_id=put.queue_id,
        properties=dict(put.pairs) or put.properties,
        flag=put.flag,
        sys_flag=put.sys_flag,
        born_timestamp=BORN_TIMESTAMP + put.fill,
        born_host=_HOSTS[put.born_v6],
        store_host=_STORE_HOSTS[put.store_v6],
    )


def batch_of(put: PutBatch) -> Batch:
    """Return the model's batch for a PutBatch."""
    return Batch(
        topic=put.topic,
        body=_client_body(put),
        queue_id=put.queue_id,
        properties=put.properties,
        sys_flag=put.sys_flag,
        born_timestamp=BORN_TIMESTAMP,
        born_host=_HOSTS[put.born_v6],
        store_host=_STORE_HOSTS[put.store_v6],
    )


def _client_body(put: PutBatch) -> bytes | None:
    """Return the client batch body (docs/format.md, "Batch body") with the wanted defect."""
    if put.defect == "no body":
        return None
    frames = [
        _frame(body_of("random", member.body_bytes, member.fill), member.properties.encode(), member.flag)
        for member in put.members
    ]
    if not frames or put.defect == "empty":
        return b""
    frames[-1] = _spoilt(frames[-1], put.defect)
    return b"".join(frames)


def _frame(body: bytes, properties: bytes, flag: int) -> bytes:
    total = 22 + len(body) + len(properties)
    head = b"".join(number.to_bytes(4, "big", signed=True) for number in (total, 0, 0, flag, len(body)))
    return head + body + len(properties).to_bytes(2, "big") + properties


def _spoilt(frame: bytes, defect: BatchDefect) -> bytes:
    match defect:
        case "cut short":
            return frame[:-1]
        case "wrong total":
            return (len(frame) + 1).to_bytes(4, "big") + frame[4:]
        case "negative length":
            return frame[:16] + b"\xff\xff\xff\xff" + frame[20:]
        case "bytes left over":
            return frame + b"left"
        case _:
            return frame
