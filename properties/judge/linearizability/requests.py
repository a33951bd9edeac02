"""What tasks ask a store, and what it answers, as values that say nothing of the store's own classes."""

from dataclasses import dataclass

from tornpage.model.message import Batch, Message

__all__ = [
    "CLOSED",
    "CleanStep",
    "Closed",
    "Closing",
    "CommitOffset",
    "CommitStep",
    "DispatchStep",
    "FlushRequest",
    "Flushed",
    "GetRequest",
    "Got",
    "KeyRequest",
    "PullRequest",
    "Pulled",
    "PutRequest",
    "QueryOffset",
    "QueueMaximum",
    "QueueMinimum",
    "ReadRecord",
    "TopicDeletion",
]


@dataclass(frozen=True, slots=True)
class Closed:
    """The answer of a verb behind a close."""

    def __str__(self) -> str:
        return "closed"


CLOSED = Closed()


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A message as a reader sees it: where its record begins, its number in the queue, and its body."""

    offset: int
    queue_offset: int
    body: bytes

    def __str__(self) -> str:
        return f"#{self.queue_offset} at {self.offset}"


@dataclass(frozen=True, slots=True)
class PutRequest:
    """Put a message or a batch; answered with a `properties.judge.answers.Answer`."""

    given: Message | Batch

    def __str__(self) -> str:
        return f"put({self.given.topic}/{self.given.queue_id}, {len(self.given.body or b'')} bytes)"


@dataclass(frozen=True, slots=True)
class GetRequest:
    """Get the record that begins at a physical offset; answered with `Got`."""

    offset: int

    def __str__(self) -> str:
        return f"get({self.offset})"


@dataclass(frozen=True, slots=True)
class Got:
    """What a get found."""

    status: str
    record: ReadRecord | None = None

    def __str__(self) -> str:
        return self.status if self.record is None else f"{self.status} {self.record}"


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Get messages of a queue from a queue offset on; answered with `Pulled`."""

    topic: str
    queue_id: int
    offset: int
    max_msg_nums: int = 32

    def __str__(self) -> str:
        return f"get_message({self.topic}/{self.queue_id}, from {self.offset})"


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull brought, where to go on, and what it said of its queue."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    records: tuple[ReadRecord, ...] = ()

    def __str__(self) -> str:
        found = ", ".join(map(str, self.records))
        return f"{self.status} [{found}], next {self.next_begin_offset}, queue {self.min_offset} to {self.max_offset}"


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Query the newest messages of a topic with a key; answered with a tuple of records, oldest first."""

    topic: str
    key: str
    max_num: int = 32

    def __str__(self) -> str:
        return f"query_message({self.topic}, {self.key!r}, {self.max_num} at most)"


@dataclass(frozen=True, slots=True)
class QueueMinimum:
    """Ask for the minimum of a queue; answered with a number."""

    topic: str
    queue_id: int

    def __str__(self) -> str:
        return f"min_offset_in_queue({self.topic}/{self.queue_id})"


@dataclass(frozen=True, slots=True)
class QueueMaximum:
    """Ask for the maximum of a queue; answered with a number."""

    topic: str
    queue_id: int

    def __str__(self) -> str:
        return f"max_offset_in_queue({self.topic}/{self.queue_id})"


@dataclass(frozen=True, slots=True)
class CommitOffset:
    """A consumer group wants message `offset` of a queue next; answered with the offset that counts."""

    group: str
    topic: str
    queue_id: int
    offset: int

    def __str__(self) -> str:
        return f"commit_offset({self.group}, {self.topic}/{self.queue_id}, {self.offset})"


@dataclass(frozen=True, slots=True)
class QueryOffset:
    """Where does a consumer group go on? Answered with a number, or None."""

    group: str
    topic: str
    queue_id: int

    def __str__(self) -> str:
        return f"query_offset({self.group}, {self.topic}/{self.queue_id})"


@dataclass(frozen=True, slots=True)
class FlushRequest:
    """Flush; answered with `Flushed`."""

    def __str__(self) -> str:
        return "flush()"


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush said."""

    durable: bool
    flushed_offset: int

    def __str__(self) -> str:
        return f"{'durable' if self.durable else 'not durable'} up to {self.flushed_offset}"


@dataclass(frozen=True, slots=True)
class CommitStep:
    """The commit service takes a step."""

    def __str__(self) -> str:
        return "step of commit"


@dataclass(frozen=True, slots=True)
class DispatchStep:
    """The dispatch service takes a step."""

    def __str__(self) -> str:
        return "step of reput"


@dataclass(frozen=True, slots=True)
class CleanStep:
    """The clean-up makes a run; answered with the physical offset at which the log begins then."""

    def __str__(self) -> str:
        return "run of clean"


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """Delete all topics but those in use; answered with the names of the deleted ones."""

    in_use: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"clean_unused_topics(in use: {', '.join(self.in_use) or 'none'})"


@dataclass(frozen=True, slots=True)
class Closing:
    """Close the store."""

    def __str__(self) -> str:
        return "close()"
