"""Messages as producers pass them, and the answers of the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from tornpage.impl.message.hosts import Host, message_id

__all__ = [
    "NOT_WRITTEN",
    "BatchMember",
    "GetResult",
    "GetStatus",
    "Message",
    "MessageBatch",
    "PutResult",
    "PutStatus",
    "StoredMessage",
    "message_of_record",
]


@dataclass(frozen=True, slots=True)
class Message:
    """One message to put.

    `properties` is a mapping, or RocketMQ's properties string (name 0x01 value, pairs separated by 0x02), which is
    taken unchanged. `born_timestamp` is the producer's clock in milliseconds; None takes the store's clock at the put.
    `store_host` None takes the configured host. Source: `MessageExtBrokerInner`.
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


@dataclass(frozen=True, slots=True)
class BatchMember:
    """One message of a batch; its other fields are those of the batch.

    Source: docs/format.md, "Batch body".
    """

    body: bytes
    properties: Mapping[str, str] | str = ""
    flag: int = 0


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Messages of one queue, put all or none.

    `body` is the client batch body, as `impl.message.batch.encode_batch_body` returns it. `properties` are added to
    those of each message. `born_timestamp` is in milliseconds; None takes the store's clock. Source: `MessageExtBatch`.
    """

    topic: str
    body: bytes | None
    queue_id: int = 0
    properties: Mapping[str, str] | str = ""
    sys_flag: int = 0
    born_timestamp: int | None = None
    born_host: Host = ("127.0.0.1", 0)
    store_host: Host | None = None
    reconsume_times: int = 0


class PutStatus(Enum):
    """The status of a put. Source: `PutMessageStatus`, with its spelling and order.

    The last two are not in RocketMQ. Only a member of a Raft group answers with them. After OUTCOME_UNKNOWN the message
    is stored once or not at all.
    """

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
    NOT_LEADER = "NOT_LEADER"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"


NOT_WRITTEN = -1
"""The numbers of a `PutResult` if nothing was written, as in RocketMQ."""


class PutResult(NamedTuple):
    """The outcome of a put.

    If nothing was written, numbers are NOT_WRITTEN and `message_id` is empty. `offset` is the physical offset of the
    first record, `size_bytes` the length of all records. `queue_offset` is the number of the first message in its
    queue. `store_timestamp` is in milliseconds. `record_ends` are the ends of the records of a batch, in bytes from
    `offset`. Source: `PutMessageResult`, `AppendMessageResult`.
    """

    status: PutStatus
    offset: int = NOT_WRITTEN
    size_bytes: int = NOT_WRITTEN
    queue_offset: int = NOT_WRITTEN
    store_timestamp: int = NOT_WRITTEN
    message_count: int = 0
    store_host: Host = ("", 0)
    record_ends: Sequence[int] = ()

    @property
    def stored(self) -> bool:
        """Whether the record is in the log, durable or not."""
        return self.offset >= 0

    @property
    def record_offsets(self) -> tuple[int, ...]:
        """The physical offset of each record."""
        if not self.stored:
            return ()
        return (self.offset, *(self.offset + int(end) for end in self.record_ends[:-1]))

    @property
    def message_id(self) -> str:
        """The offset message id; the ids of a batch are joined by commas.

        It is empty if nothing was written.
        """
        return ",".join(message_id(self.store_host, offset) for offset in self.record_offsets)


class GetStatus(Enum):
    """The status of a read by physical offset or by queue.

    Source: `GetMessageStatus`, with its spelling.
    """

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"


class _Undecoded:
    """What a stored message has of its record until its fields are decoded."""

    __slots__ = ("_undecoded",)

    _undecoded: tuple[bytes, bytes, Callable[[bytes, bytes], dict[str, Any]]]
    """The bytes before and after the body, and the function that decodes them."""


@dataclass(frozen=True, slots=True)
class StoredMessage(_Undecoded):
    """One record of the log; `properties` omits the checksum trailer.

    Timestamps are milliseconds, `offset` is physical, `size_bytes` is the whole record. A message that was read has its
    body; its other fields are decoded when the first of them is looked at. Source: docs/format.md, "Commit log record".
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

    if not TYPE_CHECKING:  # a checker would allow any attribute

        def __getattr__(self, name: str) -> Any:
            """Decode all fields but the body; called for a field that has no value yet."""
            if name == "_undecoded":
                raise AttributeError(name)
            head, tail, decode = self._undecoded
            fields = decode(head, tail)
            for field, value in fields.items():
                object.__setattr__(self, field, value)
            if name not in fields:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return fields[name]


_new: Callable[[type[StoredMessage]], StoredMessage] = object.__new__
_set_body: Callable[[StoredMessage, bytes], None] = vars(StoredMessage)["body"].__set__
_set_undecoded: Callable[..., None] = vars(_Undecoded)["_undecoded"].__set__


def message_of_record(
    head: bytes, body: bytes, tail: bytes, decode: Callable[[bytes, bytes], dict[str, Any]]
) -> StoredMessage:
    """Return the message of a record that is split at its body.

    `decode(head, tail)` returns all other fields by name.
    """
    message = _new(StoredMessage)
    _set_body(message, body)
    _set_undecoded(message, (head, tail, decode))
    return message


@dataclass(frozen=True, slots=True)
class GetResult:
    """The outcome of a read by physical offset; `message` is None unless the status is FOUND."""

    status: GetStatus
    message: StoredMessage | None = None
