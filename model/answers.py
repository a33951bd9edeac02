"""Define the answers of a store to operations, as the model predicts them.

A field of an `Answer` is None where the model predicts nothing, or where the store was not asked. A None is not
compared. `accepted` keeps the outcomes that an answer of the store allows.

1. A put answers with its status. If the message is stored, the answer also has place, number and time
   (docs/statuses.md).
2. A pull or a query names its records by their physical offsets.
3. The watermarks are read from every open store after each operation.
4. The number of faults left comes from the simulated disk, not from the store. It tells outcomes apart and breaks no
   promise.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from tornpage.model.commitlog import PutOutcome
from tornpage.model.message import PutStatus
from tornpage.model.reading import Pulled
from tornpage.model.state import CommitLog, Faults, Progress, State

__all__ = [
    "ANY_REFUSAL",
    "Answer",
    "Got",
    "Marks",
    "NextRound",
    "ProducerPut",
    "ProgressAnswer",
    "PullAnswer",
    "PutAnswer",
    "QueueRead",
    "RecordRead",
    "accepted",
    "marks_of",
    "matches",
    "message_id",
    "pull_answer",
    "put_answer",
]

ANY_REFUSAL = "any refusal"
"""The status of a put that stored nothing, where the model does not predict which status."""


class PutAnswer(NamedTuple):
    """The answer to a put. If nothing was stored, numbers are -1 and the rest is empty."""

    status: str
    offset: int = -1
    size_bytes: int = -1
    queue_offset: int = -1
    store_timestamp: int = -1
    message_count: int = 0
    message_ids: str = ""


def put_answer(outcome: PutOutcome) -> PutAnswer:
    """Return the answer of a put."""
    if not outcome.records:
        return PutAnswer(outcome.status.value)
    first, last = outcome.records[0], outcome.records[-1]
    return PutAnswer(
        outcome.status.value,
        first.offset,
        last.end_offset - first.offset,
        first.queue_offset,
        first.store_timestamp,
        len(outcome.records),
        ",".join(message_id(record.message.store_host, record.offset) for record in outcome.records),
    )


def message_id(host: tuple[str, int], offset: int) -> str:
    """Return the offset message id: address, port and physical offset in hex (docs/format.md)."""
    address, port = host
    return f"{ipaddress.ip_address(address).packed.hex()}{port:08x}{offset & 2**64 - 1:016x}".upper()


class ProducerPut(NamedTuple):
    """One put of two producers.

    It has its answer, and how long the other producer had held the put lock when this put arrived.
    """

    answer: PutAnswer
    lock_held_ms: int = 0


class Got(NamedTuple):
    """The result of a get by physical offset; without a record the rest is empty."""

    status: str
    topic: str = ""
    body: bytes | None = None
    queue_id: int = -1
    queue_offset: int = -1
    store_timestamp: int = -1


class PullAnswer(NamedTuple):
    """The answer to a pull; `offsets` are the physical offsets of its records."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    offsets: tuple[int, ...] = ()


def pull_answer(pulled: Pulled) -> PullAnswer:
    """Return the answer of a pull."""
    return PullAnswer(
        pulled.status.value,
        pulled.next_begin_offset,
        pulled.min_offset,
        pulled.max_offset,
        tuple(record.offset for record in pulled.records),
    )


class RecordRead(NamedTuple):
    """A message as a reader sees it: physical offset, number in the queue, body."""

    offset: int
    queue_offset: int
    body: bytes


class QueueRead(NamedTuple):
    """The answer to a pull of a client that names the queue, with the bounds of that queue."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    records: tuple[RecordRead, ...] = ()


class ProgressAnswer(NamedTuple):
    """Consumer progress of a topic.

    It has the least offsets of all groups, those of the other groups, the group's next number, and the number of its
    messages left.
    """

    least: tuple[tuple[int, int], ...]
    least_of_others: tuple[tuple[int, int], ...]
    next_offset: int | None
    left: int


class Marks(NamedTuple):
    """The watermarks of an open store as physical offsets; readers see up to `readable`."""

    min_offset: int
    flushed: int
    readable: int
    end: int


def marks_of(log: CommitLog) -> Marks:
    """Return the watermarks of a log."""
    return Marks(log.min_offset, log.flushed_offset, log.readable_end, log.end_offset)


class NextRound(NamedTuple):
    """The monotonic time of a service's next round; None when nothing waits for it."""

    due_ms: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that is known when one operation returns.

    A field is None where nothing is predicted, or where the store was not asked.

    `put` may say that a later put waits. `ended` has the number and the answer of each later put that ended now.
    `durable` belongs to a flush, `clean` to a close, `names` to a deletion of topics. `offsets` are the result of a
    query. `removed` says whether a removed entry of a broker table was there. `first_times` are the first store
    timestamps of the log and of one queue. `pull` is the answer to a pull that may wait. `ended_pulls` has the number
    of each held pull that ended now.

    `failed` and `next_round` belong to a step of a service. `delays` is the progress of the delay levels. `producers`
    are the puts of two producers, and `jumped` says whether the clock jumped. `refused_reads` says that reads are
    forbidden and were refused.

    Under an I/O fault rule the store also answers whether it is `read_only`, up to where it has `dispatched`, and the
    `level_ends` of its delay levels. The disk gives the `oldest_offset`, at which the log files begin, and whether the
    abort marker is durable (`marked`). `is_anew` says that the numbers of deleted topics begin at 0.

    `client` is the answer to one of several clients (`model.step_reads`): the result of a pull or a query, or a number.
    The number is a minimum, a maximum, the place where a group goes on, the offset up to which a flush made the log
    durable, or the offset at which the log begins after a clean-up. It is "unknown" where the group has to know the
    place itself, and "closed" for a closed store.

    `note` names how the model came to the outcome, for coverage. It is not compared.
    """

    put: PutAnswer | Literal["waits"] | None = None
    ended: tuple[tuple[int, PutAnswer], ...] | None = None
    durable: bool | None = None
    clean: bool | None = None
    got: Got | None = None
    pulled: PullAnswer | None = None
    offsets: tuple[int, ...] | None = None
    time_offset: int | None = None
    first_times: tuple[int | None, int | None] | None = None
    pull: PullAnswer | Literal["held", "refused", "not readable"] | None = None
    ended_pulls: tuple[tuple[int, PullAnswer | Literal["not readable", "closed"]], ...] | None = None
    committed: int | Literal["refused"] | None = None
    progress: ProgressAnswer | None = None
    names: tuple[str, ...] | Literal["refused"] | None = None
    is_anew: bool | None = None
    removed: bool | None = None
    failed: bool | None = None
    next_round: NextRound | None = None
    delays: Progress | None = None
    producers: tuple[tuple[ProducerPut, ...], ...] | None = None
    jumped: bool | None = None
    refused_reads: bool | None = None
    read_only: bool | None = None
    dispatched: int | None = None
    level_ends: tuple[tuple[int, int], ...] | None = None
    oldest_offset: int | None = None
    marked: bool | None = None
    client: QueueRead | tuple[RecordRead, ...] | int | Literal["unknown", "closed"] | None = None
    marks: Marks | None = None
    faults: Faults | None = None
    note: object = field(default=None, compare=False)

    def with_all(self, **fields_said: Any) -> "Answer":
        """Return the answer with these fields.

        Every step calls this, and it is faster than `dataclasses.replace`.
        """
        return Answer(**{name: getattr(self, name) for name in _NAMES if name not in fields_said}, **fields_said)


_NAMES = tuple(each.name for each in fields(Answer))
_values = attrgetter(*(each.name for each in fields(Answer) if each.compare))
"""Return the compared fields of an answer."""


def matches(expected: Answer, found: Answer) -> bool:
    """Return whether an answer of the store is one that the model predicts."""
    for wanted, said in zip(_values(expected), _values(found), strict=True):
        if wanted is not None and said is not None and wanted != said and _differ(wanted, said):
            return False
    return True


def _differ(expected: object, found: object) -> bool:
    if isinstance(expected, PutAnswer) and isinstance(found, PutAnswer) and expected.status == ANY_REFUSAL:
        return found.offset >= 0 or found.status == PutStatus.PUT_OK.value
    return True


def accepted(outcomes: Iterable[tuple[State, Answer]], found: Answer) -> Iterator[tuple[State, Answer]]:
    """Yield the outcomes that an answer of the store allows.

    None is left when the store has broken a promise.
    """
    return (outcome for outcome in outcomes if matches(outcome[1], found))
