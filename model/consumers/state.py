"""Define what is known of a consumer group: log, runs of listeners, ownership.

1. A life is one start of a member's process. It has a number of its own.
2. A message has an identity. Its copies in the retry topic have the same identity and a higher number of times.
3. An entry is one message, or one copy, at one place of a queue.
4. A run is one call of a listener. It has one batch of entries of one queue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

__all__ = ["Entry", "Grant", "Group", "Held", "Place", "Queue", "Record", "Rules", "Run", "dead_topic", "retry_topic"]

_DELAYS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
DELAYS_MS = tuple(1_000 * seconds for seconds in _DELAYS_S)
"""The delay of each level from 1, in milliseconds."""


class Queue(NamedTuple):
    """A queue of a topic."""

    topic: str
    queue_id: int


class Entry(NamedTuple):
    """A message after `times` failed tries. `matches` is whether the subscription has its tag."""

    identity: int
    times: int = 0
    matches: bool = True


class Record(NamedTuple):
    """A record of the log at [begin, end).

    A delayed copy is stored with its `level` and reaches its queue later as a record of its own with level 0.
    """

    begin: int
    end: int
    queue: Queue
    entry: Entry
    level: int = 0
    at_ms: int = 0


class Place(NamedTuple):
    """A queue as one life owns it."""

    life: int
    queue: Queue


class Grant(NamedTuple):
    """An ownership: its lease, and when its last grant arrived and was made."""

    lease: str
    at_ms: int
    granted_ms: int


@dataclass(frozen=True, slots=True)
class Run:
    """A running listener. Its result counts for the ownership with this `lease` only."""

    place: Place
    offsets: tuple[int, ...]
    entries: tuple[Entry, ...]
    at_ms: int
    lease: str


@dataclass(frozen=True, slots=True)
class Held:
    """What one life has of a queue since it owns it.

    `first` is where it begins to read, None before it has asked. `arrived` are the offsets that it was sent. `given`
    are those that a listener got without a failure. `ended` are those with a success in time. A concurrent run that
    takes as long as the limit of a hand-over may be too late for it. `failed` has the time of the last failure of each.
    """

    first: int | None = None
    arrived: frozenset[int] = frozenset()
    given: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    failed: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the members of a group were configured with."""

    group: str = "G"
    topic: str = "T"
    is_orderly: bool = False
    syncs: bool = False
    times_max: int = 16
    threshold: int = 1000
    lock_valid_ms: int = 30_000
    lock_life_ms: int = 60_000
    empty_pulls_max: int = 45
    requests_max: int = 20
    pause_ms: int = 0
    hand_over_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Group:
    """Everything that is known.

    `log` are the records that the broker has had, up to the end of its log. Retention has deleted those below
    `begin`. The first `durable` bytes of the log survive a power loss. `progress` is what the broker has stored,
    `was` every value that it may find after a crash. `settled` are entries that need no other delivery, `tries`
    counts the failed runs of each entry, and `copies` the stored copies of each since the broker was opened.
    `asked` are the delay levels that the listeners of failed runs asked for, 0 for the usual one.
    `finished` are identities with a success, `dead` those in the dead-letter queue. `excused` are identities whose
    copy a power loss took before it was durable, and those that retention deleted. `empty_pulls` are the times of
    pulls without a message within the last second.
    """

    rules: Rules = Rules()
    log: tuple[Record, ...] = ()
    begin: int = 0
    durable: int = 0
    is_up: bool = True
    progress: Mapping[Queue, int] = field(default_factory=dict)
    was: Mapping[Queue, frozenset[int]] = field(default_factory=dict)
    settled: frozenset[Entry] = frozenset()
    finished: frozenset[int] = frozenset()
    dead: frozenset[int] = frozenset()
    excused: frozenset[int] = frozenset()
    tries: Mapping[Entry, int] = field(default_factory=dict)
    copies: Mapping[Entry, int] = field(default_factory=dict)
    asked: Mapping[Entry, frozenset[int]] = field(default_factory=dict)
    running: frozenset[int] = frozenset()
    runs: Mapping[int, Run] = field(default_factory=dict)
    held: Mapping[Place, Held] = field(default_factory=dict)
    grants: Mapping[Place, Grant] = field(default_factory=dict)
    empty_pulls: Mapping[Place, tuple[int, ...]] = field(default_factory=dict)
    queues: Mapping[Queue, tuple[Entry, ...]] = field(default_factory=dict)

    def entries(self, queue: Queue) -> tuple[Entry, ...]:
        """Return the entries of a queue by offset."""
        return self.queues.get(queue, ())

    def with_log(self, log: tuple[Record, ...]) -> "Group":
        """Return the group with another log."""
        queues: dict[Queue, tuple[Entry, ...]] = {}
        for record in log:
            if not record.level:
                queues[record.queue] = (*queues.get(record.queue, ()), record.entry)
        return replace(self, log=log, queues=queues)


def retry_topic(group: str) -> str:
    """Return the topic of copies that are delivered again."""
    return f"%RETRY%{group}"


def dead_topic(group: str) -> str:
    """Return the topic of messages that are not delivered any more."""
    return f"%DLQ%{group}"
