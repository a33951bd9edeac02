"""Short messages, batches and layouts for the tests of the model."""

import struct
from typing import Any

from tornpage.model.commitlog import CommitLog, Layout, PutOutcome, put
from tornpage.model.message import Batch, Message

__all__ = ["batch_of", "client_body", "inner_of", "layout_of", "message_of", "put_all"]


def message_of(topic: str = "T", body: bytes | None = b"", **fields: Any) -> Message:
    """Return a message of 92 bytes (without trailer) by default."""
    values: dict[str, Any] = {
        "queue_id": 0,
        "properties": "",
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp": 0,
        "born_host": ("127.0.0.1", 1),
        "store_host": ("127.0.0.1", 2),
    }
    return Message(topic=topic, body=body, **(values | fields))


def inner_of(body: bytes = b"", properties: bytes = b"", *, flag: int = 0, total_bytes: int | None = None) -> bytes:
    """Return one message of a client body, with a wrong total length if one is given."""
    total = 22 + len(body) + len(properties) if total_bytes is None else total_bytes
    return struct.pack(">iiiii", total, 0, 0, flag, len(body)) + body + struct.pack(">h", len(properties)) + properties


def client_body(*bodies: bytes) -> bytes:
    """Return the client body of messages without properties."""
    return b"".join(inner_of(body) for body in bodies)


def batch_of(*bodies: bytes, **fields: Any) -> Batch:
    """Return a batch of messages.

    Their records have 92 bytes (without trailer) plus their bodies.
    """
    values: dict[str, Any] = {
        "topic": "T",
        "body": client_body(*bodies),
        "queue_id": 0,
        "properties": "",
        "sys_flag": 0,
        "born_timestamp": 0,
        "born_host": ("127.0.0.1", 1),
        "store_host": ("127.0.0.1", 2),
    }
    return Batch(**(values | fields))


def layout_of(**fields: Any) -> Layout:
    """Return files of 256 bytes: two records of 92 each, no trailer, answers before the disk."""
    values: dict[str, Any] = {
        "file_bytes": 256,
        "record_bytes_max": 1 << 20,
        "trailer": False,
        "sync_flush": False,
        "files_max": 1 << 20,
    }
    return Layout(**(values | fields))


def put_all(
    *given: Message | Batch, layout: Layout, log: CommitLog | None = None
) -> tuple[CommitLog, list[PutOutcome]]:
    """Put messages and batches one after the other at times 1, 2, 3 and so on."""
    log = log or CommitLog()
    outcomes = []
    for each in given:
        log, outcome = put(log, each, layout=layout, store_timestamp=len(log.records) + 1)
        outcomes.append(outcome)
    return log, outcomes
