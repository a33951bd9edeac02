"""Define the values of the model: layout, environment, log, and the whole state.

1. A record has its place, its number in its queue, and the message as stored.
2. `0 <= flushed_offset <= committed_offset <= end_offset`. Readers see up to `readable_end`.
3. A file with a buffer of the pool keeps its uncommitted bytes in the memory of the process. Any other file has all its
   bytes in the page cache (model/pool.py).
4. Prepared files follow those of the log and are empty (model/commitlog.py).
5. Running flags 2, 4, 8 and 16 forbid writing. They last as long as the process, like buffers and times.
6. Queues and index have the records below `dispatched_offset` and no others (model/queues.py). This offset never goes
   down, so after a failed sync it may lie past what readers see.
7. Readers see no record before `min_offset`. `records` are all that were ever appended and not cut, including removed
   ones, so that numbers continue after them.
8. The progress of delivery is a number for each level. Saved progress outlives the process (model/schedule.py).

Source: docs/statuses.md, "every put".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, Unpack

from tornpage.model.broker.tables import Tables
from tornpage.model.message import Message
from tornpage.model.operations import AimFault, ReplicaState, Role, VerifyReads
from tornpage.model.progress import ConsumerProgress

if TYPE_CHECKING:
    from tornpage.model.commitlog import Appended
    from tornpage.model.holding import Holding
    from tornpage.model.waiting import Waiting

__all__ = [
    "BLANK_BYTES",
    "DELAYS_MS",
    "PAGE_BYTES",
    "Buffer",
    "Clock",
    "CommitLog",
    "Conditions",
    "Deleted",
    "Delivery",
    "Disk",
    "Environment",
    "Faults",
    "Hanging",
    "HeldPull",
    "Layout",
    "OpenPut",
    "Pending",
    "Process",
    "Progress",
    "Record",
    "State",
    "Timers",
]

BLANK_BYTES = 8
DELAYS_MS = tuple(1000 * seconds for seconds in (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200))
"""The delay of each level, 1 to 18, by default."""
PAGE_BYTES = 4096
"""The unit of the page rules, whatever page size the machine has."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes and promises with which a store was opened.

    `files_max` is the number of files for which the disk has room. `delay_levels` is the highest delay level.
    `pool_buffers` is the size of the transient store pool, 0 without one. `fast_fail` refuses a new file when no buffer
    is left for it. `files_ahead` is how many files are made before they are needed.

    `delays_ms` are the delays of the levels from 1 on. A level past them waits for a second. `index` says whether keys
    are indexed. One query returns at most `query_max` records. One pull returns at most as many messages and bytes as
    `transfer_…` allow. It returns fewer when they are further than `memory_ratio` hundredths of `memory_bytes` before
    the end of the log. It looks at no more than `pull_units_max` units unless it asks for more messages.

    Expired files are removed in the hours `delete_hours` of a day, when the record after them is `file_reserved_ms`
    old. Above `disk_used_percent` they are removed at any hour, and above `disk_forcibly_percent` at any age. Above
    `disk_warning_percent` no put is taken.

    `java_delays` takes delayed messages as RocketMQ 4.9.3 does, without a check of their copies. `pending_copies` is
    how many copies of a delay level may wait for their answers; 0 is delivery that waits for none. `held_pulls_max` is
    how many pulls may wait. The disk usage is checked every `clean_interval_ms`. `verify_reads` is explained in
    `model.verifying`. With `drops_joined`, dispatch and index read properties as RocketMQ up to 4.9.0 does
    (`model.properties`, rule 6).
    """

    file_bytes: int
    record_bytes_max: int
    trailer: bool
    sync_flush: bool
    files_max: int
    multi_dispatch: bool = False
    light_queues: bool = False
    light_queues_max: int = 20_000
    delay_levels: int = 18
    role: Role = "ASYNC_MASTER"
    page_cache_busy_ms: int = 1000
    pool_buffers: int = 0
    fast_fail: bool = False
    files_ahead: int = 0
    least_pages: int = 4
    flush_thorough_ms: int = 10_000
    commit_thorough_ms: int = 200
    note_thorough_ms: int = 60_000
    sync_flush_timeout_ms: int = 5000
    slave_timeout_ms: int = 3000
    allocation_retry_ms: int = 1000
    delays_ms: tuple[int, ...] = DELAYS_MS
    queue_file_bytes: int = 6_000_000
    index: bool = True
    query_max: int = 64
    pull_units_max: int = 800
    transfer_bytes_in_memory: int = 262_144
    transfer_count_in_memory: int = 32
    transfer_bytes_in_disk: int = 65_536
    transfer_count_in_disk: int = 8
    memory_bytes: int = 1 << 40
    memory_ratio: int = 40
    offset_check_in_slave: bool = False
    file_reserved_ms: int = 72 * 3_600_000
    delete_hours: tuple[int, ...] = (4,)
    disk_used_percent: int = 75
    disk_forcibly_percent: int = 85
    disk_warning_percent: int = 90
    java_delays: bool = False
    pending_copies: int = 0
    held_pulls_max: int = 100_000
    clean_interval_ms: int = 10_000
    verify_reads: VerifyReads = "always"
    drops_joined: bool = False

    @property
    def has_pool(self) -> bool:
        """Whether files may have buffers: only an asynchronous master uses the pool."""
        return self.pool_buffers > 0 and not self.sync_flush and self.role != "SLAVE"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the environment does to one put, or to one step of a service.

    `sync_fails`: the next file sync, if there is one, fails. It is that of a new file, which is then refused, or that
    of a flush. `no_room`: the disk has less room than a file needs. `append_fails`: the append to the mapped file
    fails. `replica`: the best replica of a `SYNC_MASTER` confirms in time, times out, never answers, lags too far, or
    is not there. `lock_held_ms`: how long the put lock has been held when this put arrives.
    """

    sync_fails: bool = False
    no_room: bool = False
    append_fails: bool = False
    replica: ReplicaState = "none"
    lock_held_ms: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One appended message at its physical offset, `size_bytes` long.

    `message` is the stored form.
    """

    offset: int
    size_bytes: int
    queue_offset: int
    store_timestamp: int
    message: Message

    @property
    def end_offset(self) -> int:
        """Physical offset just after the record."""
        return self.offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class Buffer:
    """The buffer of the file from `base_offset` to `end_offset`.

    Bytes below `committed_offset` were copied to the file.
    """

    base_offset: int
    end_offset: int
    committed_offset: int


@dataclass(frozen=True, slots=True)
class Hanging:
    """A log file that begins at `offset` and left the log while a reader held it.

    It also has the time of the last attempt to remove it.
    """

    offset: int
    since_ms: int
    tried_ms: int


Progress = tuple[tuple[int, int], ...]
"""Levels in order, each with the queue number of its next message to deliver."""


Deleted = tuple[tuple[str, int], ...]
"""Deleted topics in order.

Each has the offset below which its records count in no queue.
"""


class Delivery(NamedTuple):
    """Message `number` of a level was delivered, or was passed by for good.

    The physical offset is the end of its copy. For a message that was passed by it is the end of the message itself.
    """

    level: int
    number: int
    end_offset: int


class Pending(NamedTuple):
    """Message `number` of a level was handled; the level goes on once its `waits` have ended."""

    level: int
    number: int
    waits: "Waiting | None"


@dataclass(frozen=True, slots=True)
class Disk:
    """What a log has on the disk or in the page cache: what the next process may find.

    `end_offset` is where the next record goes unless it needs a new file. `dispatched_offset` is up to where queues and
    index were built. `cut` are the records that recoveries removed.

    `files` includes those before `min_offset`, which are gone except the one that is `hanging`. `deleted` has each
    topic that was ever deleted. `undecided` is what a crash may find in its place after the disk refused a deletion,
    since the disk may have done it anyway.

    `saved_delays` is the last saved progress of the delay levels. `delivered` has every delivery whose copy is in the
    log.
    """

    records: tuple[Record, ...] = ()
    end_offset: int = 0
    flushed_offset: int = 0
    files: int = 0
    dispatched_offset: int = 0
    cut: tuple[Record, ...] = ()
    min_offset: int = 0
    hanging: Hanging | None = None
    deleted: Deleted = ()
    undecided: tuple[Deleted, ...] = ()
    saved_delays: Progress = ()
    delivered: tuple[Delivery, ...] = ()


@dataclass(frozen=True, slots=True)
class Process:
    """What the process has in memory: a crash loses all of it.

    `poisoned` says that a sync has failed. `flags` are the running flags (`RunningFlags`). `buffers` are those in use,
    lowest file first. `prepared` files exist after the `files` of the log, and `asked` are wanted there, made or not.
    `appended_in_this_life` counts the records of this process. After a step that the disk refused, the first `queued`
    units of the whole log are in their queues in addition to what was dispatched. `manual_runs` is the number of
    clean-up runs that operators asked for.

    `delays` is the progress of the delay levels. `pending` are the deliveries after the progress of their levels, in
    order. `refusals` counts for each level how often in a row its next copy was refused.
    """

    poisoned: bool = False
    flags: int = 0
    buffers: tuple[Buffer, ...] = ()
    prepared: int = 0
    asked: int = 0
    appended_in_this_life: int = 0
    queued: int = 0
    manual_runs: int = 0
    delays: Progress = ()
    pending: tuple[Pending, ...] = ()
    refusals: Progress = ()


@dataclass(frozen=True, slots=True)
class Timers:
    """When services of the process last did something, or try again; None is never.

    `retry_ms` is the next try to make a file that could not be made. `flushed_ms`, `committed_ms` and `noted_ms` are
    the last thorough rounds of the timed flush, the timed commit and the flush of the queues. `delays_due_ms` is the
    next save of the progress of the delay levels.
    """

    retry_ms: int = 0
    flushed_ms: int | None = None
    committed_ms: int | None = None
    noted_ms: int | None = None
    delays_due_ms: int | None = None


class _Changes(TypedDict, total=False):
    """The fields of a log by name, whichever part has them."""

    records: tuple[Record, ...]
    end_offset: int
    flushed_offset: int
    files: int
    dispatched_offset: int
    cut: tuple[Record, ...]
    min_offset: int
    hanging: Hanging | None
    deleted: Deleted
    undecided: tuple[Deleted, ...]
    saved_delays: Progress
    delivered: tuple[Delivery, ...]
    poisoned: bool
    flags: int
    buffers: tuple[Buffer, ...]
    prepared: int
    asked: int
    appended_in_this_life: int
    queued: int
    manual_runs: int
    delays: Progress
    pending: tuple[Pending, ...]
    refusals: Progress
    retry_ms: int
    flushed_ms: int | None
    committed_ms: int | None
    noted_ms: int | None
    delays_due_ms: int | None


Part = TypeVar("Part", Disk, Process, Timers)


def _changed(part: Part, fields: Mapping[str, Any], names: frozenset[str]) -> Part:
    if names.isdisjoint(fields):
        return part
    return type(part)(**{name: fields[name] if name in fields else getattr(part, name) for name in names})


_FRESH = Disk(), Process(), Timers()
_DISK, _PROCESS, _TIMERS = (frozenset(part.__dataclass_fields__) for part in _FRESH)


@dataclass(frozen=True, slots=True, init=False)
class CommitLog:
    """A log: its disk, its process, and its timers. After a crash it is `CommitLog(log.disk)`.

    Each field of a part can be read by its name, and given or changed by it.
    """

    disk: Disk
    process: Process
    timers: Timers

    def __init__(
        self,
        disk: Disk = _FRESH[0],
        process: Process = _FRESH[1],
        timers: Timers = _FRESH[2],
        **fields: Unpack[_Changes],
    ) -> None:
        if fields:
            disk = _changed(disk, fields, _DISK)
            process = _changed(process, fields, _PROCESS)
            timers = _changed(timers, fields, _TIMERS)
        object.__setattr__(self, "disk", disk)
        object.__setattr__(self, "process", process)
        object.__setattr__(self, "timers", timers)

    def changed(self, **fields: Unpack[_Changes]) -> "CommitLog":
        """Return the log with other values of some fields."""
        return CommitLog(self.disk, self.process, self.timers, **fields)

    @property
    def records(self) -> tuple[Record, ...]:
        return self.disk.records

    @property
    def end_offset(self) -> int:
        return self.disk.end_offset

    @property
    def flushed_offset(self) -> int:
        return self.disk.flushed_offset

    @property
    def files(self) -> int:
        return self.disk.files

    @property
    def dispatched_offset(self) -> int:
        return self.disk.dispatched_offset

    @property
    def cut(self) -> tuple[Record, ...]:
        return self.disk.cut

    @property
    def min_offset(self) -> int:
        return self.disk.min_offset

    @property
    def hanging(self) -> Hanging | None:
        return self.disk.hanging

    @property
    def deleted(self) -> Deleted:
        return self.disk.deleted

    @property
    def undecided(self) -> tuple[Deleted, ...]:
        return self.disk.undecided

    @property
    def saved_delays(self) -> Progress:
        return self.disk.saved_delays

    @property
    def delivered(self) -> tuple[Delivery, ...]:
        return self.disk.delivered

    @property
    def poisoned(self) -> bool:
        return self.process.poisoned

    @property
    def flags(self) -> int:
        return self.process.flags

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return self.process.buffers

    @property
    def prepared(self) -> int:
        return self.process.prepared

    @property
    def asked(self) -> int:
        return self.process.asked

    @property
    def appended_in_this_life(self) -> int:
        return self.process.appended_in_this_life

    @property
    def queued(self) -> int:
        return self.process.queued

    @property
    def manual_runs(self) -> int:
        return self.process.manual_runs

    @property
    def delays(self) -> Progress:
        return self.process.delays

    @property
    def pending(self) -> tuple[Pending, ...]:
        return self.process.pending

    @property
    def refusals(self) -> Progress:
        return self.process.refusals

    @property
    def retry_ms(self) -> int:
        return self.timers.retry_ms

    @property
    def flushed_ms(self) -> int | None:
        return self.timers.flushed_ms

    @property
    def committed_ms(self) -> int | None:
        return self.timers.committed_ms

    @property
    def noted_ms(self) -> int | None:
        return self.timers.noted_ms

    @property
    def delays_due_ms(self) -> int | None:
        return self.timers.delays_due_ms

    @property
    def oldest_offset(self) -> int:
        """Physical offset of the first byte on the disk: where the log begins after a crash."""
        return self.min_offset if self.hanging is None else self.hanging.offset

    @property
    def retained(self) -> tuple[Record, ...]:
        """The records that were not removed."""
        return tuple(record for record in self.records if record.offset >= self.min_offset)

    @property
    def committed_offset(self) -> int:
        """Physical offset up to which everything is in the page cache."""
        held = [buffer for buffer in self.buffers if buffer.committed_offset < min(self.end_offset, buffer.end_offset)]
        return held[0].committed_offset if held else self.end_offset

    @property
    def readable_end(self) -> int:
        """Physical offset up to which readers see records."""
        return self.flushed_offset if self.poisoned else self.committed_offset


# ---- the whole store and its environment -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clock:
    """The time: `now_ms` is monotonic, for timers; the wall clock is `ahead_ms` ahead of it.

    `ahead_ms` may be negative.
    """

    now_ms: int = 0
    ahead_ms: int = 0

    @property
    def wall_ms(self) -> int:
        """The time of the wall clock, which records are stamped with."""
        return self.now_ms + self.ahead_ms


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults left in the environment.

    `append` says whether the next append fails; `syncs`, `writes` and `files` are counts. `fired` says whether an I/O
    fault rule has made a call fail. `half_written_end` is the physical offset up to which the last failed write got.
    The disk gives all of these after an operation.
    """

    append: bool = False
    syncs: int = 0
    writes: int = 0
    files: int = 0
    fired: bool = False
    half_written_end: int = 0


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment: the best `replica`, disk usage, faults, and I/O fault `rules`."""

    replica: ReplicaState = "none"
    percent_used: int = 0
    faults: Faults = Faults()
    rules: tuple[AimFault, ...] = ()


class OpenPut(NamedTuple):
    """A later put without an answer yet.

    It has its number in the session, what was appended, and what it waits for.
    """

    number: int
    appended: "Appended"
    waits: "Waiting"


class HeldPull(NamedTuple):
    """A pull that waits: its number in the session, and its request."""

    number: int
    asked: "Holding"


NO_PROGRESS = ConsumerProgress()


@dataclass(frozen=True, slots=True)
class State:
    """A store, its clients and its environment: all that an operation needs (`model.step`).

    `puts` and `pulls` wait. `puts_later` and `pulls_begun` count those numbered in the session. `buffers` are the
    records that readers hold, oldest first. `tables` are the broker tables. `role` is the role since a change, None
    before the first change.

    After dispatch `broke_off`, how far it came is unknown until one of its steps succeeds. No operation that depends on
    it is carried out meanwhile. After a flush of the queues failed (`queue_sync_failed`), a close may be unclean
    because of that.
    """

    log: CommitLog = CommitLog()
    consumers: ConsumerProgress = NO_PROGRESS
    clock: Clock = Clock()
    environment: Environment = Environment()
    role: Role | None = None
    is_open: bool = True
    broke_off: bool = False
    queue_sync_failed: bool = False
    puts: tuple[OpenPut, ...] = ()
    puts_later: int = 0
    pulls: tuple[HeldPull, ...] = ()
    pulls_begun: int = 0
    buffers: tuple[Record, ...] = ()
    tables: Tables = ()
