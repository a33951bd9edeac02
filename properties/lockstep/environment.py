"""The environment of a store: clocks, replicas, disk usage, locks, services.

Services are stepped by hand. Each part answers as an operation of the case says, so that a lockstep run is a function
of its operations.
"""

import errno
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType
from typing import Any, Literal
from weakref import WeakKeyDictionary, ref

from tornpage.impl.config.policy import PutLockKind
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.put_lock import make_put_lock
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.log.scan import walk_log
from tornpage.impl.message.delay_levels import HALF_TOPIC, SCHEDULE_TOPIC, DelayLevels
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.delayed_copy import refusal_of_copy
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.put.rewriting import delayed
from tornpage.impl.put.time_outs import Request
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.lockstep.cache import cached_dispatch, cached_walk
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import log_files
from tornpage.properties.scheduler import OUTSIDE, CooperativeLock
from tornpage.properties.scheduler.task import current_task

__all__ = ["Environment", "taking_delays_as_java"]

_TOTAL_BYTES = 10**12
_FAR_AHEAD = 1 << 60
_STAND_IN = "stand-in"


@dataclass(slots=True)
class _StoreParts:
    """The put lock of one store, and its services and some parts by name.

    Services and parts are weak references, because strong ones would keep every judged store alive. Each is a separate
    reference, because a weak dictionary costs six times as much.
    """

    lock: CooperativeLock
    services: dict[str, ref[HandDriven]] = field(default_factory=dict)
    parts: dict[str, ref[Any]] = field(default_factory=dict)

    def service(self, name: str) -> HandDriven | None:
        """Return a service if it still exists."""
        found = self.services.get(name)
        return None if found is None else found()


class Environment:
    """The environment of the stores of one lockstep run.

    `now_ms` is monotonic time, by which services run. The wall clock is ahead of it by `clock_ahead_ms`, which may be
    negative. `set_forward_ms` is how far the wall clock was set forward since the last look of delivery.

    `replica` is the behaviour of the best replica. `append_fails` makes the mapped file refuse the next bytes once.
    `read_in_lock` has the readings of the clock under the put lock since it was last cleared. `interruption` runs once
    in the next query by key, before the first offset that the index has found is read.
    """

    def __init__(self, now_ms: int = BORN_TIMESTAMP) -> None:
        self.now_ms = now_ms
        self.clock_ahead_ms = 0
        self.set_forward_ms = 0
        self.replica: Literal["confirms", "silent", "hangs", "behind", "none"] = "none"
        self.append_fails = False
        self.most_percent_used = 0
        self.read_in_lock: set[int] = set()
        self.interruption: Callable[[], None] | None = None
        self._in_lock: tuple[int | None, int] | None = None
        self._newest = _StoreParts(CooperativeLock("put lock"))
        self._used = self._newest
        self._by_store: WeakKeyDictionary[MessageStore, _StoreParts] = WeakKeyDictionary()

    # ---- clocks --------------------------------------------------------------------------------------------------

    @property
    def clock_ms(self) -> int:
        """The time of the wall clock, from which records get their times."""
        return self.now_ms + self.clock_ahead_ms

    def advance(self, by_ms: int) -> None:
        """Advance both clocks; a negative value moves only the wall clock back."""
        self.now_ms += max(0, by_ms)
        self.clock_ahead_ms += min(0, by_ms)

    def set_clock(self, by_ms: int) -> None:
        """Set the wall clock; no part of the store is notified."""
        self.clock_ahead_ms += by_ms
        self.set_forward_ms += max(0, by_ms)

    @contextmanager
    def before_clock_steps(self, clock_ahead_ms: int) -> Iterator[None]:
        """Give the wall clock an earlier lead over monotonic time while the context is open."""
        kept = self.clock_ahead_ms, self.set_forward_ms
        self.set_forward_ms = max(0, self.set_forward_ms - max(0, self.clock_ahead_ms - clock_ahead_ms))
        self.clock_ahead_ms = clock_ahead_ms
        try:
            yield
        finally:
            self.clock_ahead_ms, self.set_forward_ms = kept

    # ---- stores --------------------------------------------------------------------------------------------------

    def inject(self, parts: Parts, *, caches_dispatch: bool = True) -> Parts:
        """Return the parts of a store that runs in this environment.

        Answers of compiled dispatch are arrays, which cannot be compared with cached ones by `==`.
        """
        dispatch = parts.of(dispatch_records)
        return parts.replacing(
            {
                make_replicas: lambda: _ScriptedReplicas(self),
                ThreadRunner: self._take_service,
                make_put_lock: self._take_lock,
                MappedFile: _refusing(parts.of(MappedFile), self),
                IndexService: _interrupted(parts.of(IndexService), self),
                MappedFileQueue: partial(parts.of(MappedFileQueue), guard=_queue_lock),
                GroupCommit: partial(parts.of(GroupCommit), guard=_group_commit_lock),
                CommitLog: _flushing_in_one_step(parts.of(CommitLog)),
                PullHold: _with_a_lock_that_is_seen(parts.of(PullHold)),
                Derived: self._taking("derived", _noting_proofs(parts.of(Derived))),
                QueueOffsetTable: self._taking("queue_offsets", parts.of(QueueOffsetTable)),
                walk_log: cached_walk(parts.of(walk_log)),
                dispatch_records: cached_dispatch(dispatch) if caches_dispatch else dispatch,
            }
        )

    def _taking(self, name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def taken(*arguments: Any, **options: Any) -> Any:
            part = make(*arguments, **options)
            self._newest.parts[name] = ref(part)
            return part

        return taken

    def _take_lock(self, kind: PutLockKind) -> CooperativeLock:
        self._newest.lock = CooperativeLock("put lock")
        return self._newest.lock

    def _take_service(self, service: Service) -> HandDriven:
        driven = HandDriven(service, lambda: self.now_ms)
        self._newest.services[service.name] = ref(driven)
        return driven

    def remember(self, store: MessageStore) -> None:
        """Note that `store` was just opened with these parts."""
        self._by_store[store], self._newest = self._newest, _StoreParts(CooperativeLock("put lock"))

    def use(self, store: MessageStore) -> None:
        """Answer for this store from now on; other stores may be open to be judged."""
        self._used, self._in_lock = self._by_store[store], None

    def clock(self) -> int:
        """Return the time for the store; under the put lock it is the begin of the put."""
        now_ms = self.clock_ms
        task = current_task()
        if self._used.lock.holder == (OUTSIDE if task is None else task.number):
            self._in_lock = (self._used.lock.acquisition, now_ms)
            self.read_in_lock.add(now_ms)
        return now_ms

    def lock_held_ms(self) -> int:
        """Return how long a put has held the put lock, by its own clock reading; 0 without one.

        A put that only has to release the lock does not count.
        """
        lock = self._used.lock
        if self._in_lock is None or self._in_lock[0] != lock.acquisition or lock.is_left_next:
            return 0
        return self.clock_ms - self._in_lock[1]

    def service(self, name: str) -> HandDriven | None:
        """Return a service of the store in use, None if it has none of that name."""
        return self._used.service(name)

    def services(self) -> list[HandDriven]:
        """Return all services of the store in use."""
        return [service for held in self._used.services.values() if (service := held()) is not None]

    def service_of(self, store: MessageStore, name: str) -> HandDriven | None:
        """Return a service of another open store."""
        return self._by_store[store].service(name)

    def give_up(self, store: MessageStore) -> None:
        """Break the reference cycles of a discarded store, so that it is freed immediately.

        A campaign discards thousands of stores. Each cycle would keep its whole disk until the next garbage collection.
        The disk itself stays as it is.
        """
        for held in self._by_store.pop(store).services.values():
            driven = held()
            if driven is not None:
                vars(driven).clear()
        for part in tuple(vars(store).values()):
            if not isinstance(part, FunctionType) and hasattr(part, "__dict__"):
                vars(part).clear()
        vars(store).clear()

    def parts_of(self, store: MessageStore) -> Mapping[str, Any]:
        """Return parts of a store by name.

        They are its queues and index (`derived`) and its queue offsets.
        """
        there = ((name, held()) for name, held in self._by_store[store].parts.items())
        return {name: part for name, part in there if part is not None}

    def proved_from(self, store: MessageStore) -> int | None:
        """Return the offset of the proof with which a store was opened, None without one."""
        derived: Any = self._by_store[store].parts["derived"]()
        found: int | None = derived.proved_from
        return found

    def memory_of(self, store: MessageStore) -> Hashable:
        """Return what a store remembers of its files; with their bytes it determines its answers.

        It has watermarks of the log and of each queue and index file, the progress of dispatch, and next queue offsets.
        """
        parts = self._by_store[store].parts
        derived: Derived | None = parts["derived"]()
        table: QueueOffsetTable | None = parts["queue_offsets"]()
        assert derived is not None
        assert table is not None
        index_files = () if derived.index is None else derived.index.index_files
        progress = derived.progress
        return (
            (store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset),
            (store.read_only_reason, store.dispatch_behind_bytes, derived.error),
            frozenset(
                (each.key, each.min_offset, each.max_offset, each.max_physic_offset, len(each.mapped))
                for each in derived.queues.all()
            ),
            tuple((each.path, each.header, each.times, each.is_proven) for each in index_files),
            (progress.offset, progress.store_timestamp, progress.index_header, progress.index_times),
            frozenset((key, table.next_offset(key)) for key in table.known()),
            (frozenset(table.light_queues), frozenset(derived.named_queues)),
            tuple(store.delay_offsets().items()),
        )

    def use_disk(self, files: RecordingFiles, percent: int) -> None:
        """Set the usage that the disk reports; this does not change what can be allocated."""
        self.most_percent_used = max(self.most_percent_used, percent)
        free_bytes = _TOTAL_BYTES * (100 - percent) // 100
        files.scripted_usage = DiskUsage(_TOTAL_BYTES, free_bytes)

    @staticmethod
    def percent_used(files: RecordingFiles) -> int:
        """Return the usage in percent that the disk reports."""
        usage = files.scripted_usage
        return 0 if usage is None else 100 * (usage.total_bytes - usage.free_bytes) // usage.total_bytes


def _queue_lock() -> CooperativeLock:
    return CooperativeLock("a lock of the row of log files")


def _group_commit_lock() -> AbstractContextManager[object]:
    return CooperativeLock("lock of group commit")


class _ScriptedReplicas:
    """Replicas that answer at once, or never."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    @property
    def acknowledged_offset(self) -> int | None:
        match self._environment.replica:
            case "none":
                return None
            case "behind":
                return 0
            case _:
                return _FAR_AHEAD

    def request(self, request: Request) -> None:
        if self._environment.replica != "hangs":
            confirms = self._environment.replica == "confirms"
            request.answer(PutStatus.PUT_OK if confirms else request.timeout_status)


def _refusing(kind: Any, environment: Environment) -> Any:
    """Return a class of mapped files that fail one append on request, half of it written."""

    class Refusing(kind):  # type: ignore[misc]
        def append(self, record: bytearray) -> None:
            if environment.append_fails and log_files([self.path]):
                environment.append_fails = False
                half_bytes = len(record) // 2
                self.target[self.written_position : self.written_position + half_bytes] = record[:half_bytes]
                raise OSError(errno.EIO, "the mapped file refuses the bytes", self.path)
            super().append(record)

    return Refusing


def _interrupted(kind: Any, environment: Environment) -> Any:
    """Return a class of index services whose queries run `interruption`.

    It runs before the first offset is read.
    """

    class Interrupted(kind):  # type: ignore[misc]
        def candidates(self, *arguments: Any) -> Iterator[int]:
            for offset in super().candidates(*arguments):
                deed, environment.interruption = environment.interruption, None
                if deed is not None:
                    deed()
                yield offset

    return Interrupted


def _noting_proofs(kind: Any) -> Any:
    """Return a class of derived data that notes the offset of the proof it was given."""

    class Noting(kind):  # type: ignore[misc]
        proved_from: int | None = None

        def reconcile(self, *arguments: Any, proof: Any, **options: Any) -> None:
            self.proved_from = None if proof is None else proof.offset
            super().reconcile(*arguments, proof=proof, **options)

    return Noting


def _with_a_lock_that_is_seen(kind: Any) -> Any:
    """Return a factory of pull holds with a lock that the scheduler knows.

    A consumer and dispatch may meet there.
    """
    return lambda *arguments, **options: kind(
        *arguments, **options | {"guard": lambda: CooperativeLock("lock of the held pulls")}
    )


def _flushing_in_one_step(kind: Any) -> Any:
    """Return a class of commit logs without yield points in a flush.

    The lock around a flush is the store's own.
    """

    class FlushingInOneStep(kind):  # type: ignore[misc]
        def flush(self, *arguments: Any, **options: Any) -> Any:
            task = current_task()
            if task is None:
                return super().flush(*arguments, **options)
            return task.run.quietly(lambda: super(FlushingInOneStep, self).flush(*arguments, **options))

    return FlushingInOneStep


def taking_delays_as_java(parts: Parts) -> Parts:
    """Return the parts of a store that accepts delayed puts as RocketMQ 4.9.3 does.

    Half messages are delayed (RMQ-B65), and so are messages of the schedule topic. A put is not refused for a copy that
    will not fit (RMQ-B22).
    """
    delay = parts.of(delayed)

    def as_java(message: Message, text: str, levels: DelayLevels) -> Message | PutStatus:
        if message.topic not in (HALF_TOPIC, SCHEDULE_TOPIC):
            return delay(message, text, levels)
        stored = delay(replace(message, topic=_STAND_IN), text, levels)
        if isinstance(stored, PutStatus):
            return stored
        if stored.topic == _STAND_IN:
            return delay(message, text, levels)
        return replace(stored, properties=str(stored.properties).replace(_STAND_IN, message.topic))

    return parts.replacing({delayed: as_java, refusal_of_copy: _never_refused})


def _never_refused(*_: object, **__: object) -> None:
    return None
