"""Define messages and batches, the length of their records, and every answer of a put.

1. A record has 91 bytes, 12 more for each IPv6 host, and the bytes of body, topic and properties. A body of None counts
   as empty.
2. Prepared and rolled-back transactions have no place in a queue.
3. In a synchronous store, and in a master that replicates, the answer waits unless the property WAIT is present and is
   not "true" in any spelling of its letters. The properties of the batch decide for a batch.

Source: docs/format.md, "Commit log record"; docs/statuses.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tornpage.model.properties import TRAILER_BYTES, property_of, stored_bytes

__all__ = [
    "ROLLBACK",
    "SCHEDULE_TOPIC",
    "TRANSACTION_BITS",
    "Batch",
    "Message",
    "PutStatus",
    "record_bytes",
    "stored_properties",
    "waits_for_disk",
]

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TRANSACTION_BITS = 0x0C
PREPARED = 0x04
ROLLBACK = 0x0C


class PutStatus(Enum):
    """Every answer a put can get (`PutMessageStatus`)."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPEDFILE_FAILED = "CREATE_MAPEDFILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    OS_PAGECACHE_BUSY = "OS_PAGECACHE_BUSY"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = "LMQ_CONSUME_QUEUE_NUM_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Message:
    """A message as the producer hands it in.

    It has every field that reaches the record or decides the answer.
    """

    topic: str
    body: bytes | None
    queue_id: int
    properties: Mapping[str, str] | str
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: tuple[str, int]
    store_host: tuple[str, int]
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @property
    def counts_in_its_queue(self) -> bool:
        """Whether the message is neither a prepared nor a rolled-back transaction."""
        return self.sys_flag & TRANSACTION_BITS not in (PREPARED, ROLLBACK)


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages for one queue in one body, and their common fields (`MessageExtBatch`)."""

    topic: str
    body: bytes | None
    queue_id: int
    properties: Mapping[str, str] | str
    sys_flag: int
    born_timestamp: int
    born_host: tuple[str, int]
    store_host: tuple[str, int]
    reconsume_times: int = 0


def waits_for_disk(given: Message | Batch) -> bool:
    """Return whether the answer waits for disk and replica, if the store has them wait.

    It does unless the property WAIT says no.
    """
    wait = property_of(given.properties, "WAIT")
    return wait is None or wait.lower() == "true"


def stored_properties(message: Message, *, trailer: bool) -> bytes:
    """Return the properties as stored, up to the trailer.

    Raises UnicodeEncodeError if they are not text.
    """
    return stored_bytes(message.properties, trailer=trailer)


def record_bytes(message: Message, *, trailer: bool) -> int:
    """Return the length of the record of a message that is not refused."""
    hosts = sum(20 if ":" in host[0] else 8 for host in (message.born_host, message.store_host))
    properties = len(stored_properties(message, trailer=trailer)) + (TRAILER_BYTES if trailer else 0)
    return 75 + hosts + len(message.body or b"") + len(message.topic.encode("utf-8")) + properties
