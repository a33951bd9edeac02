"""A store on its recorded disk, and its model, for every part of a lockstep run.

A `Span` has the events of one operation and the model before and after it, so that a crash can fall on any of them.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Literal

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.kernels.compiled import compiled_parts, load_compiled_parts
from tornpage.impl.message.message import PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.read.read_buffer import RecordBuffer
from tornpage.impl.store import MessageStore
from tornpage.model.broker.tables import table_of
from tornpage.model.dispatch import Queue
from tornpage.model.operations import AimFault, Operation, ServiceName
from tornpage.model.progress import ConsumerProgress
from tornpage.model.state import Clock, CommitLog, Environment, Faults, Hanging, Record, State
from tornpage.model.step import begin, services_of
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.fault_rule_disk import FaultRuleDisk
from tornpage.properties.disk.journal import SECTOR_BYTES, Entry, PagesDropped
from tornpage.properties.disk.last_disk import LastDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.judge.evidence import durable_image
from tornpage.properties.judge.ledgers import BROKER_TABLES, DELAY_OFFSETS
from tornpage.properties.lockstep.counting import Appended
from tornpage.properties.lockstep.environment import Environment as StoreEnvironment
from tornpage.properties.lockstep.environment import taking_delays_as_java
from tornpage.properties.lockstep.memory import Memory
from tornpage.properties.program.bit_maps import filters_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.confirming import confirming
from tornpage.properties.program.log_places import ROOT, file_at, log_directories, log_files
from tornpage.properties.program.translation import layout_of, store_config

__all__ = ["UNKNOWN_QUEUE", "Clients", "HeldBuffer", "Pair", "Span"]

UNKNOWN_QUEUE: Queue = ("topic without messages", 0)
_OTHER_FILES_BYTES = 4096 + 512 + 4
"""Room for checkpoint, floor and lock. With the free space it is less than one more log file of any size in cases."""


@dataclass(frozen=True, slots=True)
class Span:
    """One operation: its events, and the model before and after it.

    The events are those from `first` to `last` (exclusive).

    It returned at `now_ms` of monotonic time, with the wall clock ahead of it by `clock_ahead_ms`. Log files from
    `oldest` on may reappear after a power loss, because a file may be removed without a sync of its directory while a
    disk fails.
    """

    first: int
    last: int
    before: CommitLog
    after: CommitLog
    now_ms: int
    clock_ahead_ms: int
    oldest: int

    def at(self, *, at_rest: bool) -> CommitLog:
        """Return the log that was promised at a crash inside the operation, or right after it."""
        return self.after if at_rest else self.before

    def at_power_loss(self, *, at_rest: bool) -> CommitLog:
        """Return the same log with the removed files that may reappear."""
        log = self.at(at_rest=at_rest)
        return log if log.oldest_offset <= self.oldest else log.changed(hanging=Hanging(self.oldest, 0, 0))


@dataclass(frozen=True, slots=True)
class HeldBuffer:
    """A buffer that a reader holds, and the record that it has to show."""

    buffer: RecordBuffer
    record: Record


@dataclass(slots=True)
class Clients:
    """Futures of the clients of the open store, by the numbers in the model, and held buffers."""

    puts: dict[int, Future[PutResult]] = field(default_factory=dict)
    pulls: dict[int, Future[GetMessageResult]] = field(default_factory=dict)
    buffers: list[HeldBuffer] = field(default_factory=list)


class Pair:
    """A store and its model, beginning with an empty disk and an open store.

    `model` is the state after the last operation; its clock and environment are those that `state` takes from the real
    ones. `services` are those that the store has to have, `spans` the operations since the last recovery, and
    `coverage` counts coverage points. After dispatch broke off half-way (`is_partly_dispatched`) the content of queues
    is unknown until its next step. Log files from `oldest` on may be on the disk. `had_faults` says whether the disk
    may have failed since the last open.
    """

    def __init__(self, settings: Settings, *, parts: Parts, tracker: DirtyTracker) -> None:
        self.settings = settings
        self.layout = layout_of(settings)
        self.services: tuple[ServiceName, ...] = services_of(self.layout)
        self.environment = StoreEnvironment()
        self.memory = Memory(settings, self.layout)
        self.clients = Clients()
        self.appended = Appended()
        self.coverage: Counter[str] = Counter()
        self.model = State()
        self.spans: list[Span] = []
        self.oldest = 0
        self.had_faults = False
        self._tracker = tracker
        parts = taking_delays_as_java(parts) if settings.java_delays else parts
        if settings.compiled:
            parts = _with_compiled(parts)
        elif settings.confirms:
            parts = confirming(parts)
        self._parts = self.environment.inject(parts, caches_dispatch=not settings.compiled)
        self._config = store_config(settings)
        self.files = self.new_disk(EMPTY_DISK)
        self.store = self.open_on(self.files)
        self.environment.use(self.store)
        self.end_operation(0, self.model)

    # ---- the model -----------------------------------------------------------------------------------------------

    @property
    def log(self) -> CommitLog:
        """The log of the model."""
        return self.model.log

    @log.setter
    def log(self, log: CommitLog) -> None:
        self.model = replace(self.model, log=log)

    @property
    def consumers(self) -> ConsumerProgress:
        """The progress of consumer groups."""
        return self.model.consumers

    @property
    def closed(self) -> bool:
        """Whether the store is closed."""
        return not self.model.is_open

    @property
    def is_partly_dispatched(self) -> bool:
        """Whether dispatch broke off half-way."""
        return self.model.broke_off

    def state(self, rules: tuple[AimFault, ...] = ()) -> State:
        """Return the state of the model before the next operation.

        It has I/O fault rules if there are any.
        """
        around, model = self.environment, self.model
        return State(
            model.log,
            model.consumers,
            Clock(around.now_ms, around.clock_ahead_ms),
            Environment(around.replica, around.percent_used(self.files), self.faults_left(), rules),
            self.layout.role,
            model.is_open,
            model.broke_off,
            model.queue_sync_failed,
            model.puts,
            model.puts_later,
            model.pulls,
            model.pulls_begun,
            tuple(each.record for each in self.clients.buffers),
            model.tables,
        )

    def begin(self, operation: Operation, rules: tuple[AimFault, ...] = ()) -> State:
        """Let time pass and set the environment for an operation; return the state before."""
        before = self.state(rules)
        begun, around, files = begin(before, operation, self.layout), self.environment, self.files
        set_by_ms = begun.clock.ahead_ms - before.clock.ahead_ms
        around.now_ms = begun.clock.now_ms
        around.set_clock(set_by_ms)
        faults = begun.environment.faults
        self.had_faults |= bool(files.rules or faults.append or faults.syncs or faults.writes or faults.files)
        self.memory.was_corrupted |= set_by_ms < 0  # the checkpoint's times do not cover records written after this
        if begun.environment != before.environment:
            faults, percent = begun.environment.faults, begun.environment.percent_used
            around.replica, around.append_fails = begun.environment.replica, faults.append
            files.failing_syncs, files.failing_writes, files.refused_files = faults.syncs, faults.writes, faults.files
            if percent != before.environment.percent_used:
                around.use_disk(files, percent)
        return before

    # ---- disks and stores ----------------------------------------------------------------------------------------

    def new_disk(self, base: Image, journal: tuple[Entry, ...] = ()) -> FaultRuleDisk:
        """Return a disk with an image, and the journal of the process killed on it."""
        files = FaultRuleDisk(base, tracker=self._tracker, journal=journal, budget_bytes=self._room_bytes)
        self._use_disks(files)
        return files

    def last_disk(self, base: Image, journal: tuple[Entry, ...] = ()) -> FailingDisk:
        """Return a disk as `new_disk` does, for a store that is not crashed again.

        The store is only judged and then discarded.

        If a failed sync dropped pages, the disk keeps its history, because versions show which pages are dirty again.
        """
        if any(isinstance(entry, PagesDropped) for entry in journal):
            return self.new_disk(base, journal)
        files = LastDisk(base, disk=self.settings.disk, journal=journal, budget_bytes=self._room_bytes)
        self._use_disks(files)
        return files

    def _use_disks(self, files: RecordingFiles) -> None:
        """Set the usage of the disks of a store that was just closed or crashed."""
        self.environment.use_disk(files, 0)
        if not self.settings.trailer:
            files.cut_bytes = SECTOR_BYTES
        if self.settings.first_disk_full or self.settings.second_disk_full:
            files.full_directory = f"{ROOT}/{log_directories(2)[int(self.settings.second_disk_full)]}"

    @property
    def _room_bytes(self) -> int:
        return self.settings.files_max * self.settings.file_bytes + _OTHER_FILES_BYTES

    def open_on(self, files: RecordingFiles, *, whole_log: bool = False, verifies: bool = False) -> MessageStore:
        """Open the store on a disk by its real load path. A refusal breaks contract 7.

        With `verifies` every read verifies, whatever the setting. Without verification damage may be returned.
        """
        config = replace(self._config, check_whole_log_on_recover=True) if whole_log else self._config
        config = replace(config, verify_reads="always") if verifies else config
        try:
            store = MessageStore.open(
                ROOT,
                config,
                files=files,
                clock=self.environment.clock,
                parts=self._parts,
                filter_bit_map=filters_of(self.settings),
                memory_bytes=self.settings.memory_bytes or None,
            )
        except Exception as error:
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error
        self.environment.remember(store)
        return store

    def open_beside(self) -> MessageStore:
        """Open the directory of the open store once more, as a second process would."""
        return MessageStore.open(ROOT, self._config, files=self.files, clock=self.environment.clock, parts=self._parts)

    def take_role(self, role: Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"]) -> None:
        """Use another role from the next open on."""
        self.layout = replace(self.layout, role=role)
        self._config = replace(self._config, broker_role=BrokerRole(role))
        self.services = services_of(self.layout)

    def durable(self, files: RecordingFiles) -> Image:
        """Return what a disk holds for certain."""
        return durable_image(files, disk=self.settings.disk)

    # ---- log files -----------------------------------------------------------------------------------------------

    def peek(self, name: str, position: int, size_bytes: int) -> bytes:
        """Return bytes of a log file that the process sees.

        Contract 1: it is in one of the log directories.
        """
        here = [path for path in log_files(self.files.paths()) if path.endswith(f"/{name}")]
        if not here:
            raise GuaranteeBroken(1, "a log file is in none of the log's directories", self.log_file(int(name)), "none")
        return self.files.peek(here[0], position, size_bytes)

    def log_file(self, base: int, *, among: Collection[str] | None = None) -> str:
        """Return the path that the log file with this begin has to have.

        While the disk of one directory alone is full, each file is in the other one. Once both were full, a file may
        be in either. The paths `among` decide then, or the visible ones.
        """
        settings = self.settings
        if not (settings.first_disk_full or settings.second_disk_full):
            return file_at(base, file_bytes=settings.file_bytes, log_paths=settings.log_paths)
        names = log_directories(2)[:: 1 if settings.second_disk_full else -1]
        roomy, full = (f"{ROOT}/{name}/{base:020d}" for name in names)
        may_be_full = self.environment.most_percent_used > self.layout.disk_forcibly_percent
        return full if may_be_full and full in (self.files.paths() if among is None else among) else roomy

    # ---- queues --------------------------------------------------------------------------------------------------

    def queue(self, number: int) -> Queue:
        """Return a queue by its number modulo the number of queues; -1 is a queue without puts."""
        queues = list(self.memory.derived.queues)
        return queues[number % len(queues)] if queues and number >= 0 else UNKNOWN_QUEUE

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """Return minimum and maximum of a queue as far as the model has dispatched."""
        memory, disk = self.memory.derived.queues.get(queue), self.model.log.disk
        count = memory.count_at(disk.dispatched_offset) if memory is not None else 0
        if memory is None or not count:
            return 0, 0
        first = memory.units[0].queue_offset
        return first + min(memory.first_at(disk.min_offset), count), first + count

    # ---- operations ----------------------------------------------------------------------------------------------

    def faults_left(self) -> Faults:
        """Return the faults that the environment has left, according to the disk."""
        files = self.files
        return Faults(
            append=self.environment.append_fails,
            syncs=files.failing_syncs,
            writes=files.failing_writes,
            files=files.refused_files,
            fired=files.fired > 0,
            half_written_end=files.half_written_end,
        )

    def append(self, records: Sequence[Record], *, end_after: int) -> None:
        """Note the writes of a put: its records, or only the blank before a refused append."""
        for record in records:
            self.appended.add(self.store, record)
        self.memory.append(records, end_before=self.log.end_offset, end_after=end_after)

    def end_operation(self, first: int, after: State) -> None:
        """End an operation that began at event `first` and led to the state `after`."""
        self.files.mark("returned")
        memory, last, log = self.memory, len(self.files.events), after.log
        memory.versions.saved(memory.consumer_file, after.consumers.saved, first, last)
        memory.versions.saved(DELAY_OFFSETS, log.saved_delays, first, last)
        for path, table in BROKER_TABLES.items():
            memory.versions.saved(path, table_of(after.tables, table), first, last)
        self.spans.append(
            Span(
                first,
                last,
                self.log,
                log,
                self.environment.now_ms,
                self.environment.clock_ahead_ms,
                self.oldest,
            )
        )
        self.model = after
        if not self.files.rules:
            self.oldest = log.oldest_offset

    def note_committed(self) -> None:
        """Note in the judges' memory what no buffer of the pool holds back."""
        self.memory.note_committed(self.log, half_written_end=self.files.half_written_end, peek=self.peek)

    def note_whole(self) -> None:
        """Note what no buffer holds back, and what of the buffers is complete in the page cache."""
        self.note_committed()
        if self.layout.has_pool:
            self.memory.note_whole(self.peek)

    def cover(self, point: str, times: int = 1) -> None:
        """Count a coverage point (`must_happen` of the machines)."""
        if times:
            self.coverage[point] += times


def _with_compiled(parts: Parts) -> Parts:
    """Return parts with the compiled twins; replaced parts stay.

    Raises HarnessError if a twin cannot be loaded.
    """
    if not load_compiled_parts():
        raise HarnessError("the compiled twins cannot be loaded here: see `tornpage doctor`, or leave out --compiled")
    return compiled_parts().replacing(parts.replaced)
