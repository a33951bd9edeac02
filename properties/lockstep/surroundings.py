"""What lies around a store in a trial: replicas, disk space, a mapped file that may refuse, the put lock, services.

Each answers as an operation of the case says, so that a trial stays a function of its operations.
"""

import errno
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any, Literal
from weakref import WeakKeyDictionary, ref

from impl.commit_log import CommitLog
from impl.derived import Derived
from impl.dispatch_records import dispatch_records
from impl.files import DiskUsage
from impl.group_commit import GroupCommit
from impl.index_service import IndexService
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.parts import Parts
from impl.policy import PutLockKind
from impl.pull_hold import PullHold
from impl.put_lock import make_put_lock
from impl.queue_offsets import QueueOffsetTable
from impl.replication import make_replicas
from impl.runner import Service, ThreadRunner
from impl.scan import walk_log
from impl.store import MessageStore
from properties.disk.recording_files import RecordingFiles
from properties.lockstep.remembered import remembered_dispatch, remembered_walk
from properties.program.hand_driven import HandDriven
from properties.program.log_places import log_files
from properties.scheduler import OUTSIDE, CooperativeLock
from properties.scheduler.task import current_task

__all__ = ["Surroundings"]

_TOTAL_BYTES = 10**12
_FAR_AHEAD = 1 << 60


@dataclass(slots=True)
class _Held:
    """What the surroundings hold of one store: its put lock, its services and some parts by name.

    Services and parts belong to the store, and lead to it: held here, they would keep every store that was judged
    alive. So they are referred to weakly, each alone: a dictionary that forgets by itself costs six times that.
    """

    lock: CooperativeLock
    services: dict[str, ref[HandDriven]] = field(default_factory=dict)
    parts: dict[str, ref[Any]] = field(default_factory=dict)

    def service(self, name: str) -> HandDriven | None:
        """Return a service that is still there."""
        found = self.services.get(name)
        return None if found is None else found()


class Surroundings:
    """One trial's; `clock` is its virtual clock in milliseconds, `runner_clock` one that nobody sets.

    `replica` is what the best replica does, `append_fails` whether the mapped file refuses the next bytes (once);
    `read_in_lock` has the readings of the clock under the put lock, until somebody clears it. `interruption` is done
    once in the next query by key, when the index has an offset for it that nobody has looked at.
    """

    def __init__(self, clock: Callable[[], int], runner_clock: Callable[[], int] | None = None) -> None:
        self.replica: Literal["confirms", "silent", "hangs", "behind", "none"] = "none"
        self.append_fails = False
        self.read_in_lock: set[int] = set()
        self.interruption: Callable[[], None] | None = None
        self._clock = clock
        self._runner_clock = runner_clock or clock
        self._in_lock: tuple[int | None, int] | None = None
        self._newest = _Held(CooperativeLock("put lock"))
        self._used = self._newest
        self._by_store: WeakKeyDictionary[MessageStore, _Held] = WeakKeyDictionary()

    def components(self, parts: Parts) -> Parts:
        """Return the parts of a store that lives in these surroundings."""
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
                Derived: self._taking("derived", parts.of(Derived)),
                QueueOffsetTable: self._taking("queue_offsets", parts.of(QueueOffsetTable)),
                walk_log: remembered_walk(parts.of(walk_log)),
                dispatch_records: remembered_dispatch(parts.of(dispatch_records)),
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
        driven = HandDriven(service, self._runner_clock)
        self._newest.services[service.name] = ref(driven)
        return driven

    def remember(self, store: MessageStore) -> None:
        """Say that `store` is the one just opened with these parts."""
        self._by_store[store], self._newest = self._newest, _Held(CooperativeLock("put lock"))

    def use(self, store: MessageStore) -> None:
        """Speak of this store from now on; others may be open beside it, to be judged."""
        self._used, self._in_lock = self._by_store[store], None

    def clock(self) -> int:
        """The clock that the store reads; a reading under the put lock is when the put began in it."""
        now_ms = self._clock()
        task = current_task()
        if self._used.lock.holder == (OUTSIDE if task is None else task.number):
            self._in_lock = (self._used.lock.acquisition, now_ms)
            self.read_in_lock.add(now_ms)
        return now_ms

    def lock_held_ms(self) -> int:
        """For how long a put has been in the put lock, by its own reading of the clock; 0 when none is.

        A put that has only the release itself before it is no longer in it.
        """
        lock = self._used.lock
        if self._in_lock is None or self._in_lock[0] != lock.acquisition or lock.is_left_next:
            return 0
        return self._clock() - self._in_lock[1]

    def service(self, name: str) -> HandDriven | None:
        """Return a service of the store in use, None if it has none of that name."""
        return self._used.service(name)

    def service_of(self, store: MessageStore, name: str) -> HandDriven | None:
        """Return a service of another store that is open beside the one in use."""
        return self._by_store[store].service(name)

    def give_up(self, store: MessageStore) -> None:
        """Take a store apart that nobody asks any more, so that it is gone at once.

        Services and runners lead to each other, and so do the parts of a store. Left alone, such a knot waits for a
        look for garbage, with its whole disk; a campaign has thousands of them. The disk itself stays as it is.
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
        """Return what made a store out of its parts: what it derives from the log, and its queue offsets, by name."""
        there = ((name, held()) for name, held in self._by_store[store].parts.items())
        return {name: part for name, part in there if part is not None}

    def memory_of(self, store: MessageStore) -> Hashable:
        """Return what a store remembers of its files: what it answers is a function of that and of their bytes.

        Watermarks of the log, of each queue and index file, how far dispatch has come, and which number comes next.
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

    @staticmethod
    def use_disk(files: RecordingFiles, percent: int) -> None:
        """Say how full the disk is; what can still be allocated is not changed by it."""
        free_bytes = _TOTAL_BYTES * (100 - percent) // 100
        files.scripted_usage = DiskUsage(_TOTAL_BYTES, free_bytes)

    @staticmethod
    def percent_used(files: RecordingFiles) -> int:
        """Return how full the disk says it is."""
        usage = files.scripted_usage
        return 0 if usage is None else 100 * (usage.total_bytes - usage.free_bytes) // usage.total_bytes


def _queue_lock() -> CooperativeLock:
    return CooperativeLock("a lock of the row of log files")


def _group_commit_lock() -> AbstractContextManager[object]:
    return CooperativeLock("lock of group commit")


class _ScriptedReplicas:
    """Replicas that answer at once, or never."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    @property
    def acknowledged_offset(self) -> int | None:
        match self._surroundings.replica:
            case "none":
                return None
            case "behind":
                return 0
            case _:
                return _FAR_AHEAD

    def request(self, next_offset: int) -> Future[bool]:
        answer: Future[bool] = Future()
        if self._surroundings.replica != "hangs":
            answer.set_result(self._surroundings.replica == "confirms")
        return answer


def _refusing(kind: Any, surroundings: Surroundings) -> Any:
    """Return a class of mapped files that refuse the bytes of one append when told so, half of them written."""

    class Refusing(kind):  # type: ignore[misc]
        def append(self, record: bytearray) -> None:
            if surroundings.append_fails and log_files([self.path]):
                surroundings.append_fails = False
                half_bytes = len(record) // 2
                self.target[self.written_position : self.written_position + half_bytes] = record[:half_bytes]
                raise OSError(errno.EIO, "the mapped file refuses the bytes", self.path)
            super().append(record)

    return Refusing


def _interrupted(kind: Any, surroundings: Surroundings) -> Any:
    """Return a class of index services that somebody interrupts in the middle of a query."""

    class Interrupted(kind):  # type: ignore[misc]
        def candidates(self, *arguments: Any) -> Iterator[int]:
            for offset in super().candidates(*arguments):
                deed, surroundings.interruption = surroundings.interruption, None
                if deed is not None:
                    deed()
                yield offset

    return Interrupted


def _with_a_lock_that_is_seen(kind: Any) -> Any:
    """Return a factory of holds whose lock the scheduler knows: a consumer and dispatch may meet there."""
    return lambda *arguments, **options: kind(
        *arguments, **options | {"guard": lambda: CooperativeLock("lock of the held pulls")}
    )


def _flushing_in_one_step(kind: Any) -> Any:
    """Return a class of commit logs that have no yield points in a flush: the lock around it is the store's own."""

    class FlushingInOneStep(kind):  # type: ignore[misc]
        def flush(self, *arguments: Any, **options: Any) -> Any:
            task = current_task()
            if task is None:
                return super().flush(*arguments, **options)
            return task.run.quietly(lambda: super(FlushingInOneStep, self).flush(*arguments, **options))

    return FlushingInOneStep
