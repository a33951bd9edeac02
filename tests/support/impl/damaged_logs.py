"""Write stores, damage single fields by hand, and read them as a consumer does."""

import struct
from collections.abc import Callable
from pathlib import Path

from tests.support.impl.stores import caught_up, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.store import MessageStore

FILE_BYTES = 1 << 14
QUEUE_ID_AT = 12
QUEUE_OFFSET_AT = 20
TOPIC_AT = 88 + 3 + 1
"""Where the topic begins in a record with a body of three bytes and hosts of IPv4."""


def config(*, file_bytes: int = FILE_BYTES) -> MessageStoreConfig:
    """Return a configuration without a checksum over the fields of a record."""
    return config_of(file_bytes=file_bytes, trailer=False)


def filled(directory: Path, count: int = 9, *, queues: int = 1, topic: str = "T") -> list[PutResult]:
    """Write a store as RocketMQ would leave it: closed, without the files of our own."""
    with open_store(directory, config=config()) as store:
        results = [put(store, number, number % queues, topic) for number in range(count)]
    forget_our_files(directory)
    return results


def put(store: MessageStore, number: int, queue_id: int = 0, topic: str = "T") -> PutResult:
    """Put a message with a body of three digits."""
    result = store.put(Message(topic, f"{number:03d}".encode(), queue_id=queue_id))
    assert result.status is PutStatus.PUT_OK
    return result


def forget_our_files(directory: Path) -> None:
    """Remove the files that RocketMQ does not have."""
    for name in ("durableFloor", "derivedFloor", "deletedTopics"):
        (directory / "config" / name).unlink(missing_ok=True)


def change(directory: Path, offset: int, data: bytes, *, file_bytes: int = FILE_BYTES) -> None:
    """Overwrite bytes of the log at a physical offset."""
    base = offset // file_bytes * file_bytes
    with open(directory / "commitlog" / f"{base:020d}", "r+b") as file:
        file.seek(offset - base)
        file.write(data)


def set_queue_offset(directory: Path, result: PutResult, number: int) -> None:
    """Have a record claim another queue offset."""
    change(directory, result.offset + QUEUE_OFFSET_AT, struct.pack(">q", number))


def bodies(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[bytes]:
    """Return the bodies that a consumer gets who pulls a queue from its minimum to its end."""
    found: list[bytes] = []
    offset, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
    while offset < end:
        with store.get_message(topic, queue_id, offset, max_msg_nums=8) as result:
            found += [message.message().body for message in result.messages]
            assert result.next_begin_offset > offset, (result.status, offset)
            offset = result.next_begin_offset
    return found


def put_is_reached(store: MessageStore, topic: str = "T", queue_id: int = 0) -> None:
    """Put a message, and assert that a consumer who pulls to the end gets it last."""
    if store.read_only_reason is None:
        put(store, 999, queue_id, topic)
        caught_up(store)
        assert bodies(store, topic, queue_id)[-1] == b"999"


def notes(store: MessageStore) -> list[str]:
    """Return the codes of the findings about queue offsets."""
    codes = ("queue_offset_outvoted", "repeated_queue_offset", "impossible_queue_offset", "queue_gap")
    return [finding.code for finding in store.findings if finding.code in codes]


Damage = Callable[[Path], None]
