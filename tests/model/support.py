"""Short messages and layouts for the tests of the model."""

from typing import Any

from model.commitlog import CommitLog, Layout, PutOutcome, append
from model.message import Message

__all__ = ["layout_of", "message_of", "put_all"]


def message_of(topic: str = "T", body: bytes = b"", **fields: Any) -> Message:
    """Return a message of 92 bytes (without trailer) unless told otherwise."""
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


def layout_of(**fields: Any) -> Layout:
    """Return files of 256 bytes, two records of 92 in each, no trailer, answers before the disk."""
    values: dict[str, Any] = {
        "file_bytes": 256,
        "record_bytes_max": 1 << 20,
        "trailer": False,
        "sync_flush": False,
        "files_max": 1 << 20,
    }
    return Layout(**(values | fields))


def put_all(*messages: Message, layout: Layout, log: CommitLog | None = None) -> tuple[CommitLog, list[PutOutcome]]:
    """Put messages one after the other at times 1, 2, 3 and so on."""
    log = log or CommitLog()
    outcomes = []
    for message in messages:
        log, outcome = append(log, message, layout=layout, store_timestamp=len(log.records) + 1)
        outcomes.append(outcome)
    return log, outcomes
