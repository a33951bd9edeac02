"""Messages as producers hand them in, and what the store answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["GetResult", "GetStatus", "Host", "Message", "PutResult", "PutStatus", "StoredMessage"]

Host = tuple[str, int]
"""IPv4 or IPv6 address as text, and port."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message to put.

    `properties` is a mapping, or RocketMQ's properties string (name 0x01 value, pairs separated by 0x02) taken as it
    is. `born_timestamp` is the producer's clock in milliseconds; None means the store's clock at the put.
    Source: `MessageExtBrokerInner`.
    """

    topic: str
    body: bytes | None
    queue_id: int = 0
    properties: Mapping[str, str] | str = ""
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int | None = None
    born_host: Host = ("127.0.0.1", 0)
    store_host: Host | None = None
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class PutStatus(Enum):
    """Answer to a put. Source: `PutMessageStatus`, with its spelling."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPEDFILE_FAILED = "CREATE_MAPEDFILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"


@dataclass(frozen=True, slots=True)
class PutResult:
    """What a put did. The numbers are -1 (and `message_id` empty) when nothing was written.

    `offset` is the physical offset of the record, `size_bytes` its length, `queue_offset` its ordinal in its queue,
    `store_timestamp` milliseconds. Source: `PutMessageResult`, `AppendMessageResult`.
    """

    status: PutStatus
    offset: int = -1
    size_bytes: int = -1
    queue_offset: int = -1
    store_timestamp: int = -1
    message_id: str = ""

    @property
    def stored(self) -> bool:
        """Whether the record is in the log, durable or not."""
        return self.offset >= 0


class GetStatus(Enum):
    """Answer to a get by physical offset, in RocketMQ's words. Source: `GetMessageStatus`."""

    FOUND = "FOUND"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One record of the log, every field decoded; `properties` hides the checksum trailer.

    Units as in `Message`; `size_bytes` is the whole record. Source: docs/format.md, "Commit log record".
    """

    offset: int
    size_bytes: int
    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    properties: Mapping[str, str]
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: Host
    store_timestamp: int
    store_host: Host
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    message_id: str


@dataclass(frozen=True, slots=True)
class GetResult:
    """What a get found; `message` is None unless the status is FOUND."""

    status: GetStatus
    message: StoredMessage | None = None
