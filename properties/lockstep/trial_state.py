"""What every trial has: a store on a recorded disk beside its model, and the memory of what both have done.

`Window` remembers, for each verb, the events it spans and the model before and after, so that a crash may fall on any
of them afterwards.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from impl.parts import Parts
from impl.policy import BrokerRole
from impl.read_buffer import RecordBuffer
from impl.store import MessageStore
from model.operations import Operation
from model.payloads import BORN_TIMESTAMP
from model.progress import ConsumerProgress
from model.state import BLANK_BYTES, CommitLog, Hanging, Record
from properties.contract import GuaranteeBroken, observed
from properties.disk.aimed_disk import AimedDisk
from properties.disk.choosing import PowerLoss
from properties.disk.dirty import DirtyTracker
from properties.disk.disk import Image
from properties.disk.failing_disk import FailingDisk
from properties.disk.journal import Entry, PagesDropped
from properties.disk.last_disk import LastDisk
from properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from properties.judge.derived_ledger import DerivedLedger
from properties.judge.judges import ROOT, durable_image
from properties.judge.ledger import Ledger
from properties.judge.progress_ledger import CONSUMER_OFFSETS, DELAY_OFFSETS, LIGHT_CONSUMER_OFFSETS, ProgressLedger
from properties.lockstep.delay_puts import taking_delays_as_java
from properties.lockstep.surroundings import Surroundings
from properties.planted import components_of
from properties.program.bit_maps import filters_of
from properties.program.case import Settings
from properties.program.log_places import file_at, log_files
from properties.program.translation import (
    layout_of,
    store_config,
)

__all__ = ["Held", "TrialState", "Window", "observed"]


_OTHER_FILES_BYTES = 4096 + 512 + 4
"""Room for checkpoint, floor and lock: less than one more log file of any size that trials use, with what is free."""


@dataclass(frozen=True, slots=True)
class Window:
    """One verb: events `first` to `last` (exclusive) fall into it; the model leads from `before` to `after`.

    It returned at `now_ms`, of time that nobody sets. Log files from `oldest` on may be back with the power: while a
    disk fails, a file may be removed and its directory not synced.
    """

    first: int
    last: int
    before: CommitLog
    after: CommitLog
    now_ms: int
    oldest: int

    def at(self, *, at_rest: bool) -> CommitLog:
        """Return what had been answered when a crash fell into the verb, or right after it."""
        return self.after if at_rest else self.before

    def at_power_loss(self, *, at_rest: bool) -> CommitLog:
        """Return the same, with the removed files that may be back."""
        log = self.at(at_rest=at_rest)
        return log if log.oldest_offset <= self.oldest else replace(log, hanging=Hanging(self.oldest, 0, 0))


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer that a reader keeps, and the record that it has to show."""

    buffer: RecordBuffer
    record: Record


class TrialState:
    """Store, model, ledger, disk and surroundings of one trial; an empty disk and an open store to begin with."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, components: Parts | None = None) -> None:
        self.settings = settings
        self.now_ms = BORN_TIMESTAMP
        self.layout = layout_of(settings)
        self._tracker = tracker
        self.clock_ahead_ms = 0
        self.surroundings = Surroundings(lambda: self.clock_ms, lambda: self.now_ms)
        parts = components or components_of(settings.bug)
        self._components = self.surroundings.components(taking_delays_as_java(parts) if settings.java_delays else parts)
        self._config = store_config(settings)
        self.performed: list[Operation] = []
        self.losses: list[PowerLoss] = []
        self.effects: Counter[str] = Counter()
        self.log = CommitLog()
        self.ledger = Ledger(file_bytes=settings.file_bytes)
        self.derived = DerivedLedger(self.layout)
        self.is_partly_dispatched = False
        self.was_harmed = False
        self.torn_files: frozenset[tuple[str, bytes]] = frozenset()
        self.queue_sync_failed = False
        self._unnoted: list[Record | int] = []
        self._held: list[Held] = []
        self.consumers = ConsumerProgress()
        self.consumer_file = LIGHT_CONSUMER_OFFSETS if settings.light_queues else CONSUMER_OFFSETS
        self.versions = ProgressLedger({self.consumer_file: (), DELAY_OFFSETS: ()})
        self.files = self.new_disk(EMPTY_DISK)
        self.closed = False
        self.windows: list[Window] = []
        self._oldest = 0
        self.store = self.open_on(self.files)
        self.surroundings.use(self.store)
        self.end_verb(0, self.log)

    @property
    def clock_ms(self) -> int:
        """What the clock says that records get their times from; `now_ms` is time that nobody sets."""
        return self.now_ms + self.clock_ahead_ms

    def let_pass(self, by_ms: int) -> None:
        """Let time pass, or have somebody set the clock back: time that nobody sets does not go back."""
        self.now_ms += max(0, by_ms)
        self.clock_ahead_ms += min(0, by_ms)
        self.was_harmed |= by_ms < 0  # the checkpoint's times say nothing of what comes after it then

    # ---- disks and stores ----------------------------------------------------------------------------------------

    def new_disk(self, base: Image, journal: tuple[Entry, ...] = ()) -> AimedDisk:
        """Return a disk that holds an image, and the journal of the process killed on it."""
        files = AimedDisk(base, tracker=self._tracker, journal=journal, budget_bytes=self._room_bytes)
        self.surroundings.use_disk(files, 0)
        return files

    def last_disk(self, base: Image, journal: tuple[Entry, ...] = ()) -> FailingDisk:
        """Return a disk as `new_disk` does, for a store that is judged and then given up: no crash falls into it.

        Where a failed sync has dropped pages it keeps a history all the same: which of them are dirty again is told by
        their versions.
        """
        if any(isinstance(entry, PagesDropped) for entry in journal):
            return self.new_disk(base, journal)
        files = LastDisk(base, disk=self.settings.disk, journal=journal, budget_bytes=self._room_bytes)
        self.surroundings.use_disk(files, 0)
        return files

    @property
    def _room_bytes(self) -> int:
        return self.settings.files_max * self.settings.file_bytes + _OTHER_FILES_BYTES

    def open_on(self, files: RecordingFiles, *, whole_log: bool = False) -> MessageStore:
        """Open the store on a disk by its real load path. A refusal breaks contract 7."""
        config = replace(self._config, check_whole_log_on_recover=True) if whole_log else self._config
        try:
            store = MessageStore.open(
                ROOT,
                config,
                files=files,
                clock=self.surroundings.clock,
                parts=self._components,
                bit_map_of=filters_of(self.settings),
            )
        except Exception as error:
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error
        self.surroundings.remember(store)
        return store

    def take_role(self, role: Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"]) -> None:
        """Have the next open be in a role."""
        self.layout = replace(self.layout, role=role)
        self._config = replace(self._config, broker_role=BrokerRole(role))

    def durable(self, files: RecordingFiles) -> Image:
        """Return what a disk of this trial holds for sure."""
        return durable_image(files, disk=self.settings.disk)

    # ---- what every verb needs -----------------------------------------------------------------------------------

    def disk_holds_the_log(self) -> None:
        """After every operation the files hold, byte for byte, what was put and committed, then zeros (contract 1).

        A file without a buffer that follows uncommitted ones is looked at once they are committed.
        """
        file_bytes, committed = self.settings.file_bytes, self.log.committed_offset
        buffered = {buffer.base_offset for buffer in self.log.buffers}
        bases = range(self.log.oldest_offset, (self.log.files + self.log.prepared) * file_bytes, file_bytes)
        for base, path in zip(bases, self._files_at(bases), strict=True):
            if base <= committed or base in buffered or base >= self.log.end_offset:
                found, kept = self.files.peek(path, 0, file_bytes), max(0, committed - base)
                half = max(kept, self.files.half_written_end - base if committed < self.log.end_offset else 0)
                expected = self.ledger.expected(base, committed)
                if found[:kept] != expected[:kept] or found[half:] != expected[half:]:
                    raise GuaranteeBroken(1, f"the log file at {base} holds other bytes than were put")

    def _files_at(self, bases: range) -> list[str]:
        """Return the paths of the log files, which are those that begin at these offsets. Raises GuaranteeBroken."""
        expected = [self.log_file(base) for base in bases]
        found = log_files(self.files.paths())
        if found != expected:
            raise GuaranteeBroken(8, "the log has other files than the model", str(expected), str(found))
        return found

    def end_verb(self, first: int, after: CommitLog) -> None:
        """Note that a verb which began at event `first` has returned and led to the log `after`."""
        self.files.mark("returned")
        self.versions.saved(self.consumer_file, self.consumers.saved, first, len(self.files.events))
        self.versions.saved(DELAY_OFFSETS, after.saved_delays, first, len(self.files.events))
        self.windows.append(Window(first, len(self.files.events), self.log, after, self.now_ms, self._oldest))
        self.log = after
        if not self.files.aimed:
            self._oldest = after.oldest_offset

    def appended(self, records: Sequence[Record], *, end_after: int) -> None:
        """Say what a put wrote: its records, or only the blank before a refused append."""
        end_before = self.log.end_offset
        for record in records:
            if record.offset % self.settings.file_bytes == 0 and end_before < record.offset:
                self._unnoted.append(end_before)
            self._unnoted.append(record)
            end_before = record.end_offset
        if end_after > end_before:
            self._unnoted.append(end_before)

    def note_what_the_page_cache_has(self) -> None:
        """Take records and blanks into the judges' memory as soon as no buffer holds them back."""
        end = max(self.log.committed_offset, self.files.half_written_end)
        while self._unnoted:
            item = self._unnoted[0]
            if (item.end_offset if isinstance(item, Record) else item + BLANK_BYTES) > end:
                break
            self._note_next()
        if self.files.half_written_end > self.log.committed_offset:
            self._note_what_came_whole()

    def note_what_is_whole(self) -> None:
        """Take in what no buffer holds back, and of what may be in a buffer what has got into the page cache whole."""
        self.note_what_the_page_cache_has()
        if self.layout.has_pool:
            self._note_what_came_whole()

    def _note_what_came_whole(self) -> None:
        """Take in what is whole in the page cache; the zeros that a record may end with are there before it is."""
        with suppress(GuaranteeBroken):
            while self._unnoted:
                self._note_next()

    def _note_next(self) -> None:
        item = self._unnoted[0]
        if isinstance(item, Record):
            self.ledger.note(item, end_before=item.offset, peek=self.peek)
            self.derived.note(item)
        else:
            self.ledger.note_blank(item, self.peek)
        self._unnoted.pop(0)

    def happened(self, effect: str, times: int = 1) -> None:
        """Count what must not stay away for ever (`must_happen` of the machines)."""
        if times:
            self.effects[effect] += times

    def peek(self, name: str, position: int, size_bytes: int) -> bytes:
        """Return what the process sees of a log file, in whichever log directory it is (contract 1: in one of them)."""
        here = [path for path in log_files(self.files.paths()) if path.endswith(f"/{name}")]
        if not here:
            raise GuaranteeBroken(1, "a log file is in none of the log's directories", self.log_file(int(name)), "none")
        return self.files.peek(here[0], position, size_bytes)

    def log_file(self, base: int) -> str:
        """Return where the log file that begins at a physical offset has to be."""
        return file_at(base, file_bytes=self.settings.file_bytes, log_paths=self.settings.log_paths)

    def compare_watermarks(self) -> None:
        """The store's watermarks are those of the model (contract 9); then what they say is committed is taken in."""
        if not self.closed:
            if self.store.min_offset != self.log.min_offset:
                begins = str(self.log.min_offset), str(self.store.min_offset)
                raise GuaranteeBroken(10, "the log begins elsewhere than its clean-up has left it", *begins)
            observed("check", self.store.check)
            expected = (self.log.flushed_offset, self.log.readable_end, self.log.end_offset)
            found = (self.store.flushed_offset, self.store.committed_offset, self.store.max_offset)
            if expected != found:
                raise GuaranteeBroken(9, "watermarks (flushed, readable, written) are wrong", str(expected), str(found))
        self.note_what_the_page_cache_has()
