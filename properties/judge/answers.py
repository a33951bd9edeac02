"""Answers to puts, from the store and from the model, in one comparable form; message ids are worked out here."""

import ipaddress
from dataclasses import dataclass

from tornpage.impl.message.message import PutResult
from tornpage.model.commitlog import PutOutcome
from tornpage.model.state import Record

__all__ = ["Answer", "expected_answer", "found_answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a put was answered; numbers are -1, the rest is empty, when nothing was written."""

    status: str
    offset: int = -1
    size_bytes: int = -1
    queue_offset: int = -1
    store_timestamp: int = -1
    message_count: int = 0
    message_ids: str = ""


def found_answer(result: PutResult) -> Answer:
    """Return what the store answered."""
    return Answer(
        result.status.value,
        result.offset,
        result.size_bytes,
        result.queue_offset,
        result.store_timestamp,
        result.message_count,
        result.message_id,
    )


def expected_answer(outcome: PutOutcome) -> Answer:
    """Return what the model says."""
    if not outcome.records:
        return Answer(outcome.status.value)
    first, last = outcome.records[0], outcome.records[-1]
    return Answer(
        outcome.status.value,
        first.offset,
        last.end_offset - first.offset,
        first.queue_offset,
        first.store_timestamp,
        len(outcome.records),
        ",".join(map(_message_id, outcome.records)),
    )


def _message_id(record: Record) -> str:
    """Return the offset message id: address, port and physical offset in hex (docs/format.md)."""
    address, port = record.message.store_host
    return f"{ipaddress.ip_address(address).packed.hex()}{port:08x}{record.offset:016x}".upper()
