"""Define the events that a consumer group is judged by.

They are recorded at the broker, in the network and at the listeners, and not in the state of a member.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tornpage.model.consumers.state import Entry, Queue, Record

__all__ = [
    "Arrived",
    "Began",
    "Crashed",
    "Durable",
    "Event",
    "Expired",
    "Finished",
    "FirstOffset",
    "Granted",
    "Opened",
    "Pulled",
    "Quiet",
    "Released",
    "Started",
    "Stopped",
    "Stored",
    "StoredProgress",
]


@dataclass(frozen=True, slots=True)
class Stored:
    """The broker appends a record."""

    record: Record


@dataclass(frozen=True, slots=True)
class Durable:
    """The log of the broker is durable below an offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Crashed:
    """The broker is lost. A power loss may take what is not durable, a kill nothing.

    If the crash falls into an action of the broker, `durable` is what was durable before that action, and `log_end` the
    end of the log then.
    """

    is_power_loss: bool
    durable: int | None = None
    log_end: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The broker opens again, with a log from `begin` to `end` and some progress."""

    end: int
    progress: Mapping[Queue, int]
    begin: int = 0


@dataclass(frozen=True, slots=True)
class Expired:
    """Retention deletes the log below an offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Started:
    """The process of a member starts."""

    life: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """A process ends, in order or not. Its listeners end with it."""

    life: int


@dataclass(frozen=True, slots=True)
class FirstOffset:
    """A member gets the place at which it begins to read a queue."""

    life: int
    queue: Queue
    offset: int


@dataclass(frozen=True, slots=True)
class Granted:
    """A member gets a queue, or the renewal of its ownership.

    The broker made the grant at `granted_ms`.
    Each ownership has a `lease` of its own.
    """

    life: int
    queue: Queue
    lease: str
    at_ms: int
    granted_ms: int


@dataclass(frozen=True, slots=True)
class Released:
    """The broker takes a queue back from its present owner, which gives it up."""

    life: int
    queue: Queue
    at_ms: int


@dataclass(frozen=True, slots=True)
class Pulled:
    """The broker answers a pull with some messages, or with none."""

    life: int
    queue: Queue
    offset: int
    count: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """Messages of a queue arrive at a member."""

    life: int
    queue: Queue
    offsets: tuple[int, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Began:
    """A listener begins on a batch."""

    run: int
    life: int
    queue: Queue
    offsets: tuple[int, ...]
    entries: tuple[Entry, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A listener ends. `is_success` is its result.

    Without a success the first `done` messages have succeeded. The others are to be retried with `delay_level`: 0 is
    the usual one, and -1 makes them dead letters.
    """

    run: int
    is_success: bool
    at_ms: int
    done: int = 0
    delay_level: int = 0


@dataclass(frozen=True, slots=True)
class StoredProgress:
    """The progress of a queue at the broker, after a request of a member to change it.

    None is no progress.
    """

    life: int
    queue: Queue
    asked: int
    after: int | None


@dataclass(frozen=True, slots=True)
class Quiet:
    """All faults are over and the group has had time.

    `pullers` are the lives that lately pulled from each queue.
    """

    pullers: Mapping[Queue, frozenset[int]]


Event = (
    Stored
    | Durable
    | Crashed
    | Opened
    | Expired
    | Started
    | Stopped
    | FirstOffset
    | Granted
    | Released
    | Pulled
    | Arrived
    | Began
    | Finished
    | StoredProgress
    | Quiet
)
"""One event of a group."""
