"""Messages as a listener gets them, and the results that it returns.

Source: `MessageExt`, `ConsumeConcurrentlyStatus`, `ConsumeOrderlyStatus`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b

from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.message.message import StoredMessage

__all__ = ["Batch", "ConcurrentStatus", "ConsumerMessage", "OrderlyStatus", "identity_of"]

_IDENTITY_BYTES = 16


def identity_of(stored: StoredMessage) -> str:
    """Return a digest of everything that a copy of a record has from it.

    Two records have equal identities only if their copies are equal. A physical offset does not tell records apart:
    after a crash that cut the log another record may begin there.
    """
    fields = (
        stored.message_id,
        stored.topic,
        stored.queue_id,
        stored.queue_offset,
        stored.store_timestamp,
        stored.flag,
        stored.born_timestamp,
        stored.born_host,
        stored.reconsume_times,
        sorted(stored.properties.items()),
        bytes(stored.body),
    )
    return blake2b(repr(fields).encode(), digest_size=_IDENTITY_BYTES).hexdigest()


class ConcurrentStatus(Enum):
    """The result of a concurrent listener.

    An exception of the listener counts as RECONSUME_LATER.
    """

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class OrderlyStatus(Enum):
    """The result of an orderly listener. An exception of the listener counts as SUSPEND.

    COMMIT and ROLLBACK are for manual commits; with automatic commits they count as SUCCESS.
    """

    SUCCESS = "SUCCESS"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    SUSPEND = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@dataclass(slots=True, eq=False)
class ConsumerMessage:
    """One message that a client has pulled from a queue.

    `queue` is where it was pulled, and `topic` the topic for which it was put: both differ for a message from the retry
    topic. `max_offset` is the maximum of the queue at the pull.
    """

    stored: StoredMessage
    queue: MessageQueue
    topic: str
    max_offset: int
    reconsume_times: int = 0

    @property
    def queue_offset(self) -> int:
        """Its offset in the queue."""
        return self.stored.queue_offset

    @property
    def commit_log_offset(self) -> int:
        """The physical offset of its record."""
        return self.stored.offset

    @property
    def body(self) -> bytes:
        """The body."""
        return self.stored.body

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties."""
        return self.stored.properties

    @property
    def tags(self) -> str | None:
        """The tag, None without one."""
        return self.stored.properties.get("TAGS")

    @property
    def keys(self) -> str | None:
        """The keys, separated by spaces; None without any."""
        return self.stored.properties.get("KEYS")

    @property
    def message_id(self) -> str:
        """The offset message id of this record."""
        return self.stored.message_id


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The messages of one call of a listener, in queue order.

    `number` rises with each batch of a consumer.
    """

    number: int
    queue: MessageQueue
    messages: tuple[ConsumerMessage, ...]
    began_ms: int
    holding: object = field(repr=False, default=None)
    """For the library: the state of the queue at the time of `take`."""
