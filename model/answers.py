"""What a store answers at the return of an operation, in the form in which the model predicts it.

An `Answer` of the model has None for what it does not predict, an answer of the store for what it was not asked. A
None is not compared. `accepted` keeps the outcomes that an answer of the store allows.

1. A put answers with its status and, if it is stored, with place, number and time (docs/statuses.md).
2. A pull or a query names the records it brings by their physical offsets.
3. Watermarks are asked of every store that is open.
4. What the disk has left to fail is said by the disk, no store: it tells outcomes apart, and breaks no promise.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from tornpage.model.commitlog import PutOutcome
from tornpage.model.message import PutStatus
from tornpage.model.reading import Pulled
from tornpage.model.state import CommitLog, Faults, Progress, Record, State

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
    "pull_answer",
    "put_answer",
]

ANY_REFUSAL = "any refusal"
"""Stands for the status of every put that stored nothing, where the model does not say which one it has."""


class PutAnswer(NamedTuple):
    """What a put was answered; numbers are -1, the rest is empty, when nothing was stored."""

    status: str
    offset: int = -1
    size_bytes: int = -1
    queue_offset: int = -1
    store_timestamp: int = -1
    message_count: int = 0
    message_ids: str = ""


def put_answer(outcome: PutOutcome) -> PutAnswer:
    """Return the answer that a put gives."""
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
        ",".join(map(_message_id, outcome.records)),
    )


def _message_id(record: Record) -> str:
    """Return the offset message id: address, port and physical offset in hex (docs/format.md)."""
    address, port = record.message.store_host
    return f"{ipaddress.ip_address(address).packed.hex()}{port:08x}{record.offset:016x}".upper()


class ProducerPut(NamedTuple):
    """One put of two producers: its answer, and for how long the other producer held the put lock when it came."""

    answer: PutAnswer
    lock_held_ms: int = 0


class Got(NamedTuple):
    """What a get by physical offset brings; without a record the rest is empty."""

    status: str
    topic: str = ""
    body: bytes | None = None
    queue_id: int = -1
    queue_offset: int = -1
    store_timestamp: int = -1


class PullAnswer(NamedTuple):
    """What a pull says; `offsets` are where the records begin that it brings."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    offsets: tuple[int, ...] = ()


def pull_answer(pulled: Pulled) -> PullAnswer:
    """Return the answer that a pull gives."""
    return PullAnswer(
        pulled.status.value,
        pulled.next_begin_offset,
        pulled.min_offset,
        pulled.max_offset,
        tuple(record.offset for record in pulled.records),
    )


class RecordRead(NamedTuple):
    """A message as a reader sees it: where its record begins, its number in the queue, and its body."""

    offset: int
    queue_offset: int
    body: bytes


class QueueRead(NamedTuple):
    """What a pull brings to a client that names the queue, and what it says of that queue."""

    status: str
    next_begin_offset: int
    min_offset: int
    max_offset: int
    records: tuple[RecordRead, ...] = ()


class ProgressAnswer(NamedTuple):
    """What is known of a topic: least offsets of all groups, of the others, the group's next one, what it has left."""

    least: tuple[tuple[int, int], ...]
    least_of_others: tuple[tuple[int, int], ...]
    next_offset: int | None
    left: int


class Marks(NamedTuple):
    """The watermarks of an open store, physical offsets; readers see up to `readable`."""

    min_offset: int
    flushed: int
    readable: int
    end: int


def marks_of(log: CommitLog) -> Marks:
    """Return the watermarks of a log."""
    return Marks(log.min_offset, log.flushed_offset, log.readable_end, log.end_offset)


class NextRound(NamedTuple):
    """When a service has to come round again, by monotonic time; None when nothing waits for it."""

    due_ms: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """All that is said at the return of one operation; a field is None where nothing is predicted, or was asked.

    `put` may say of a later put that it waits; `ended` has the number of each later put that ends now, and its answer.
    `durable` is a flush's, `clean` a close's, `names` those of deleted topics. `offsets` are those that a query brings;
    `first_times` are those of the log and of one queue. `pull` is that of a pull that may wait, and `ended_pulls` has
    the number of each held pull that ended now.

    `failed` and `next_round` are of a service's step, `delays` is where the delay levels are. `producers` are the puts
    of two producers, and `jumped` says whether the clock did. `refused_reads`: reads are forbidden and refused.

    Under an I/O fault rule a store says further whether it is `read_only`, up to where it has `dispatched`, and the
    `level_ends` of its delay levels. The disk says at which `oldest_offset` the log files begin, and whether the abort
    marker is durably there (`marked`). `is_anew`: the numbers of deleted topics begin at 0.

    `client` is what one of several clients is told (`model.step_reads`): what a pull or a query brings, or a number,
    which is a minimum, a maximum, where a group goes on, up to where a flush made the log durable, or where the log
    begins after a clean-up; "unknown" where a group has to know itself, and "closed" by a store that is.

    `note` is how the model came to the outcome, for coverage; it is not compared.
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
        """Return the answer with these fields; each step ends in one, so it is faster than `dataclasses.replace`."""
        return Answer(**{name: getattr(self, name) for name in _NAMES if name not in fields_said}, **fields_said)


_NAMES = tuple(each.name for each in fields(Answer))
_values = attrgetter(*(each.name for each in fields(Answer) if each.compare))
"""Returns the fields of an answer that are compared."""


def matches(expected: Answer, found: Answer) -> bool:
    """Whether an answer of the store is one that the model predicts."""
    for wanted, said in zip(_values(expected), _values(found), strict=True):
        if wanted is not None and said is not None and wanted != said and _differ(wanted, said):
            return False
    return True


def _differ(expected: object, found: object) -> bool:
    if isinstance(expected, PutAnswer) and isinstance(found, PutAnswer) and expected.status == ANY_REFUSAL:
        return found.offset >= 0 or found.status == PutStatus.PUT_OK.value
    return True


def accepted(outcomes: Iterable[tuple[State, Answer]], found: Answer) -> Iterator[tuple[State, Answer]]:
    """Yield the outcomes that an answer of the store allows: none when the store has broken a promise."""
    return (outcome for outcome in outcomes if matches(outcome[1], found))
