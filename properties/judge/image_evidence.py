"""Provide evidence of a crash image: the image, its recovered store, and the truth.

The store is opened on recorded disks that hold the image. Each open recovers a copy of it by the real load path.

Units and index entries of records that retention has removed stay before those of the surviving records, so that queue
offsets continue. The log no longer shows what they have to be. Judges accept them as they are, as long as they come
first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.admission import is_topic
from tornpage.model.dispatch import Queue, places
from tornpage.model.message import Message
from tornpage.model.state import CommitLog, Layout
from tornpage.model.state import Record as ModelRecord
from tornpage.properties.contract import observed
from tornpage.properties.decode.config_files import load_config
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.index import decode_index
from tornpage.properties.decode.record import TRAILER_BYTES, Record
from tornpage.properties.decode.store import Floor
from tornpage.properties.decode.units import PREFILL_UNIT, decode_units
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.disk.journal import Entry
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.judge.evidence import (
    DERIVED,
    INDEX,
    QUEUES,
    Files,
    Key,
    LegalLogs,
    SeenFiles,
    below_root,
    key_of,
)
from tornpage.properties.judge.image import LogRead, SeenImage, Truth, read_log
from tornpage.properties.judge.ledgers import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    LIGHT_CONSUMER_OFFSETS,
    READERS,
    DerivedLedger,
    EntryPut,
    Ledger,
    LegalVersions,
    SavedVersion,
)
from tornpage.properties.judge.rulings import CannotTell
from tornpage.properties.judge.shape import StoreLayout
from tornpage.properties.judge.without_floor import damage_without_floor
from tornpage.properties.program.case import Disk, Settings
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import ROOT

__all__ = [
    "NOT_OPEN",
    "ImageEvidence",
    "ImageLedger",
    "Opened",
    "Recoveries",
    "WithRemovedEntries",
    "is_damaged",
    "is_text",
    "log_of",
    "model_record",
    "own_files",
    "recoveries_of",
    "removed_entries",
    "version_in",
    "without_removed_units",
]


class ImageLedger(Ledger):
    """The log files of an image, by base offset.

    A recovery may keep these bytes of the log and no others.
    """

    def __init__(self, files: Mapping[int, bytes], records: Iterable[Record], *, file_bytes: int) -> None:
        super().__init__(file_bytes=file_bytes)
        self._content = {base: bytearray(content) for base, content in files.items()}
        self.ends = [record.end_offset for record in records]

    def stored(self, record: ModelRecord) -> bytes:
        """Return the bytes of the image at the place of a record."""
        base = record.offset // self.file_bytes * self.file_bytes
        return bytes(self._content.get(base, b"")[record.offset - base : record.end_offset - base])

    def expected(self, base: int, end_offset: int) -> bytes:
        """Return the content of the file at `base`, up to the end of the log and of the image."""
        return bytes(self._content.get(base, b"")[: max(0, min(self.file_bytes, end_offset - base))])


def is_text(record: Record) -> bool:
    """Whether topic and properties are UTF-8, so that Java and Python decode them alike."""
    try:
        record.topic.decode()
        record.properties.decode()
    except UnicodeDecodeError:
        return False
    return True


def model_record(record: Record) -> ModelRecord:
    """Return a record as the model has it."""
    properties = record.properties if record.checksum is None else record.properties[:-TRAILER_BYTES]
    message = Message(
        topic=record.topic_text,
        body=record.body,
        queue_id=record.queue_id,
        properties=properties.decode("utf-8", "replace"),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
    )
    return ModelRecord(record.offset, record.size_bytes, record.queue_offset, record.store_timestamp, message)


def log_of(records: Sequence[Record], end_offset: int) -> CommitLog:
    """Return the model's log of these records, flushed and dispatched."""
    return CommitLog(
        records=tuple(map(model_record, records)),
        end_offset=end_offset,
        flushed_offset=end_offset,
        dispatched_offset=end_offset,
    )


@dataclass(frozen=True, slots=True)
class Opened:
    """A disk on which the store was opened.

    `store` is None if the open failed; `refusal` is then the reason.

    `crash_points` are the journal positions between two file operations of the open, and `end` is the position at its
    end. Later operations on the store are not part of the open.
    """

    files: RecordingFiles
    store: MessageStore | None
    refusal: str
    disk: Disk
    crash_points: tuple[int, ...]
    end: int

    def content(self) -> dict[str, bytes]:
        """Return the files as the process sees them, by name below the store directory."""
        start, files = len(ROOT) + 1, self.files
        return {path[start:]: files.peek(path, 0, 1 << 62) for path in files.paths() if path.startswith(f"{ROOT}/")}

    def durable(self) -> Image:
        """Return what the open left on the disk for certain."""
        return compose(disk_state(self.files.base, self.files.journal, self.end, disk=self.disk), {})

    def durable_content(self) -> dict[str, bytes]:
        """Return the files that are on the disk for certain, by name below the store directory."""
        return below_root(self.durable().files)


class Recoveries:
    """Opens the store of one layout any number of times.

    `now_ms` is its clock and `count` the number of opens.

    `checks_whole_log` makes each open check the whole log, including the part that a checksum proves unchanged.
    """

    def __init__(
        self,
        store_layout: StoreLayout,
        components: Parts,
        *,
        tracker: DirtyTracker,
        now_ms: int,
        disk: Disk = "posix-strict",
    ) -> None:
        self.disk = disk
        self.count = 0
        self.checks_whole_log = False
        self._config = store_layout.config
        self._clock = lambda: now_ms
        self._tracker = tracker
        self._components = components.replacing({ThreadRunner: lambda service: HandDriven(service, self._clock)})

    def opened(self, base: Image, journal: tuple[Entry, ...] = ()) -> Opened:
        """Open the store on an image, after the journal of a process that was killed on it."""
        files = RecordingFiles(base, tracker=self._tracker, journal=journal)
        store, refusal = self.open_on(files)
        files.mark("opened")
        return Opened(files, store, refusal, self.disk, tuple(dict.fromkeys(files.events)), len(files.journal))

    def open_on(self, files: RecordingFiles) -> tuple[MessageStore | None, str]:
        """Open the store on a disk; return the store, or None and the reason."""
        self.count += 1
        try:
            config = replace(self._config, check_whole_log_on_recover=self.checks_whole_log)
            store = MessageStore.open(ROOT, config, files=files, clock=self._clock, parts=self._components)
        except Exception as error:  # any error is a result for this image
            return None, f"{type(error).__name__}: {error}"
        return store, ""


@contextmanager
def recoveries_of(store_layout: StoreLayout, components: Parts, *, now_ms: int, disk: Disk) -> Iterator[Recoveries]:
    """Yield recoveries on disks; free the memory of the disks at the end."""
    tracker = choose_tracker("auto")
    try:
        yield Recoveries(store_layout, components, tracker=tracker, now_ms=now_ms, disk=disk)
    finally:
        tracker.close()


_OWN = re.compile(r"index/[0-9]{17}|consumequeue(_ext)?/[^/]+/(?:0|-?[1-9][0-9]{0,9})/[0-9]{20}")


class WithRemovedEntries(DerivedLedger):
    """Expected queues and index, with the index entries of removed records first."""

    def __init__(self, layout: Layout, records: Iterable[ModelRecord], removed_first: Sequence[EntryPut]) -> None:
        super().__init__(layout, records)
        self._removed_first = list(removed_first)

    def entries_at(self, end_offset: int) -> list[EntryPut]:
        """Return the entries of a log that ends at an offset, after those of removed records."""
        return self._removed_first + super().entries_at(end_offset)


def own_files(content: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files without foreign files among queues and index.

    A store leaves foreign files where they are.
    """
    return {name: data for name, data in content.items() if not name.startswith(DERIVED) or _OWN.fullmatch(name)}


def without_removed_units(content: Mapping[str, bytes], *, begin: int) -> dict[str, bytes]:
    """Return the files with the filler in place of each unit whose record lies before `begin`.

    Queue files without any other unit are left out.
    """
    if not begin:
        return dict(content)
    kept: dict[str, bytes] = {}
    for name, data in content.items():
        units = decode_units(data) if name.startswith(QUEUES) else []
        removed = [number for number, unit in enumerate(units) if unit[1] > 0 and 0 <= unit[0] < begin]
        others = [unit for unit in units if unit[1] > 0 and unit[0] >= begin]
        if not removed:
            kept[name] = data
        elif others:
            changed = bytearray(data)
            for number in removed:
                changed[number * UNIT_BYTES : (number + 1) * UNIT_BYTES] = PREFILL_UNIT
            kept[name] = bytes(changed)
    return kept


def removed_entries(content: Mapping[str, bytes], settings: Settings, *, begin: int) -> list[EntryPut] | None:
    """Return the index entries of records before `begin`.

    Returns None if the time of the first entry is relative to a file that is removed.

    The entries' times have the resolution of the entries: whole seconds.
    """
    found: list[EntryPut] = []
    names = sorted(name for name in content if name.startswith(INDEX)) if begin else []
    for place, name in enumerate(names):
        view = decode_index(content[name], slots=settings.index_slots, entries=settings.index_entries)
        header = view.header
        if place == 0 and view.entries and view.entries[0].seconds:
            return None
        for entry in view.entries:
            if entry.offset >= begin:
                return found
            is_end = entry.number in (1, len(view.entries))
            at_ms = (
                (header.begin_timestamp if entry.number == 1 else header.end_timestamp)
                if is_end
                else (header.begin_timestamp + 1000 * entry.seconds)
            )
            found.append((entry.key_hash, entry.offset, at_ms))
    return found


_NUMBER_MAX = (1 << 62) // UNIT_BYTES


def is_damaged(seen: SeenImage, log: LogRead, floor: Floor | None, *, has_pool: bool) -> bool:
    """Return whether an image has what no crash leaves.

    Examples: log files with wrong names or sizes, an end below the floor, bytes past a clean end, and what
    `damage_without_floor` finds.
    """
    is_clean = not seen.view.is_unclean
    below_floor = floor is not None and log.end < floor.offset
    if log.problems or below_floor or (is_clean and log.dirty_at is not None and not log.is_left_over):
        return True
    return floor is None and bool(damage_without_floor(seen.content, log, is_clean=is_clean, has_pool=has_pool))


def _has_a_file(queue: Queue, number: int) -> bool:
    """Whether a queue file can be named for a message.

    The log of another store may state any numbers.
    """
    return is_topic(queue[0]) and 0 <= number <= _NUMBER_MAX


@dataclass
class ImageEvidence:
    """One image and its first recovery.

    `floor` is the durable floor in the image, None without one.

    The files of the image stand for what was appended, and the log of their valid records is the legal one.
    """

    seen: SeenImage
    store_layout: StoreLayout
    before: LogRead
    opened: Opened
    recoveries: Recoveries
    truth: Truth | None
    floor: Floor | None
    cached_logs: dict[str, CommitLog] = field(default_factory=dict)

    was_corrupted: ClassVar[bool] = True
    """Queues, index and checkpoint of the image were written by another store."""
    has_bit_maps: ClassVar[bool] = False
    queues_created_late: ClassVar[bool] = False
    derived_begin: ClassVar[int] = 0
    """Filler replaces the units of removed records, and their index entries come first in `index_ledger`."""

    # ---- the open ----------------------------------------------------------------------------------------------

    @property
    def did_open(self) -> bool:
        """Whether the store opened and can answer."""
        return self.opened.store is not None

    @property
    def store(self) -> MessageStore:
        """The recovered store. Raises CannotTell if it did not open."""
        if self.opened.store is None:
            raise CannotTell(NOT_OPEN)
        return self.opened.store

    @property
    def refusal(self) -> str:
        """Why the store did not open."""
        return self.opened.refusal

    @property
    def is_writable(self) -> bool:
        """Whether the store opened read-write."""
        return self.did_open and self.store.read_only_reason is None

    @property
    def is_recovered(self) -> bool:
        """Whether the store opened read-write. A read-only store leaves the image as it is."""
        return self.is_writable

    @property
    def is_damaged(self) -> bool:
        """Whether the image has what no crash leaves, by the judges' own decoder."""
        has_pool = self.store_layout.config.transient_store_pool_enable
        return is_damaged(self.seen, self.before, self.floor, has_pool=has_pool)

    @property
    def damage(self) -> str:
        """What no crash leaves in the image; empty if there is nothing."""
        if not self.is_damaged:
            return ""
        if self.before.problems:
            return self.before.problems[0].sentence
        is_end_clean = self.before.dirty_at is None or self.before.is_left_over
        if self.floor is None and (self.seen.view.is_unclean or is_end_clean):
            has_pool = self.store_layout.config.transient_store_pool_enable
            is_clean = not self.seen.view.is_unclean
            return damage_without_floor(self.seen.content, self.before, is_clean=is_clean, has_pool=has_pool)
        return f"{self.before.reason}, although the log was durable up to there"

    # ---- files -------------------------------------------------------------------------------------------------

    @cached_property
    def content(self) -> dict[str, bytes]:
        """The files after the recovery, as the process sees them, by name."""
        return self.opened.content()

    @cached_property
    def files(self) -> Files:
        """The files after the recovery by path, and the image."""
        return SeenFiles({f"{ROOT}/{name}": data for name, data in self.content.items()}, self.seen.image)

    @cached_property
    def durable(self) -> Image:
        """What the disk holds for certain after the recovery."""
        return self.opened.durable()

    @cached_property
    def durable_content(self) -> dict[str, bytes]:
        """The files of the disk after the recovery, by name."""
        return below_root(self.durable.files)

    def with_content(self, content: dict[str, bytes]) -> ImageEvidence:
        """Return the same evidence with other files whose log is the same, byte for byte."""
        other = replace(self)
        known = {name: value for name, value in self.__dict__.items() if name in _OF_THE_FIRST_RECOVERY}
        other.__dict__.update(known, content=content)
        return other

    def disks_of_the_checkpoint(self, *, of_queues: bool = False) -> tuple[Image, ...]:
        """Return the disk after the recovery.

        Returns none for queues and index if their content is not known.
        """
        if of_queues and (5 in self.store_layout.unknown or self.not_derivable or self.after.begin):
            return ()
        return (self.durable,)

    # ---- the log -----------------------------------------------------------------------------------------------

    @cached_property
    def after(self) -> LogRead:
        """The log after the recovery, by the judges' own decoder."""
        return self.read(self.content)

    def read(self, content: dict[str, bytes]) -> LogRead:
        """Read the log of some files with this store layout."""
        floor = 0 if self.floor is None else self.floor.offset
        return read_log(
            content, self.store_layout.log_directories, file_bytes=self.store_layout.settings.file_bytes, floor=floor
        )

    def log_paths(self, *, durable: bool = False) -> list[str]:
        """Return the paths of the process's or the disk's log files, lowest base first."""
        log = self.read(self.durable_content) if durable else self.after
        return [f"{ROOT}/{name}" for name in log.files.values()]

    @property
    def begin(self) -> int:
        """Where the log of the image begins."""
        return self.before.begin

    @property
    def end(self) -> int:
        """Where the log ends after the recovery; past every offset in a read-only store."""
        return self.after.end if self.is_writable else _PAST_ALL

    @cached_property
    def key(self) -> Key:
        """The decoder's key of the log after the recovery. Deleted topics are not judged."""
        return key_of(_as_model(self.after))

    @cached_property
    def legal(self) -> LegalLogs:
        """The log of the valid prefix of the image, which a recovery keeps completely."""
        log = _as_model(self.before)
        return {key_of(log): log}

    @property
    def log(self) -> CommitLog:
        """The legal log. Raises CannotTell if the store has another one."""
        log = self.legal.get(self.key)
        if log is None:
            raise CannotTell("the recovered log is not that of the image, which number 2 judges")
        return log

    @cached_property
    def ledger(self) -> Ledger:
        """The log files of the image."""
        content = self.seen.content
        files = {base: content[name] for base, name in self.before.files.items()}
        return ImageLedger(files, self.before.records, file_bytes=self.store_layout.settings.file_bytes)

    # ---- queues and index --------------------------------------------------------------------------------------

    @cached_property
    def derived(self) -> DerivedLedger:
        """Expected queues and index of the surviving records; empty if not derivable."""
        records = () if self.not_derivable else log_of(self.after.records, self.after.end).records
        return DerivedLedger(self.store_layout.layout, records)

    @property
    def index_ledger(self) -> DerivedLedger:
        """The same for the index, with the entries of removed records first."""
        removed_first = removed_entries(own_files(self.content), self.store_layout.settings, begin=self.after.begin)
        if removed_first is None:
            raise CannotTell("the first entry of the index has its time relative to a file that is removed")
        return WithRemovedEntries(
            self.store_layout.layout, log_of(self.after.records, self.after.end).records, removed_first
        )

    def derived_files(self) -> dict[str, bytes]:
        """Return the files of queues and index, with filler for units of removed records."""
        return without_removed_units(own_files(self.content), begin=self.after.begin)

    def end_of_queue(self, queue: Queue) -> int:
        """Return the number after the last message of a queue, by the store.

        Removed records count too.
        """
        return observed("max_offset_in_queue", lambda: self.store.max_offset_in_queue(*queue))

    @cached_property
    def not_derivable(self) -> str:
        """Why queues and index cannot be derived from the surviving records; empty if they can."""
        if not all(map(is_text, self.after.records)):
            return "a record has a topic or properties that are not UTF-8, which Java decodes in its own way"
        last: dict[Queue, tuple[int, int]] = {}
        for record in map(model_record, self.after.records):
            for queue, number in places(record, self.store_layout.layout):
                if not _has_a_file(queue, number):
                    name = f"{queue[0]}/{queue[1]}"
                    return f"record {record.offset} has number {number} in queue {name}, which no queue file can hold"
                before = last.get(queue, (number - 1, -1))
                if (number, record.offset) != before and number != before[0] + 1:
                    name = f"{queue[0]}/{queue[1]}"
                    return f"queue {name} has number {number} at {record.offset} after number {before[0]}"
                last[queue] = number, record.offset
        return ""

    # ---- settings and progress ---------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings that the store was opened with."""
        return self.store_layout.settings

    @property
    def layout(self) -> Layout:
        """The settings as the model has them."""
        return self.store_layout.layout

    @cached_property
    def own_progress(self) -> tuple[str, ...]:
        """The paths of the progress files that this store may correct.

        There are none for a read-only store.
        """
        if not self.is_writable:
            return ()
        consumers = LIGHT_CONSUMER_OFFSETS if self.store_layout.settings.light_queues else CONSUMER_OFFSETS
        is_master = self.store_layout.config.broker_role is not BrokerRole.SLAVE
        return (consumers, *((DELAY_OFFSETS,) if is_master else ()))

    @cached_property
    def versions_before(self) -> dict[str, SavedVersion]:
        """The versions of the store's progress files in the image, for those that are readable."""
        found = {path: version_in(self.seen.image.files, path) for path in self.own_progress}
        return {path: version for path, version in found.items() if version is not None}

    @property
    def legal_versions(self) -> LegalVersions:
        """Raises CannotTell: an image does not show which progress was saved."""
        raise CannotTell("an image does not show which progress was saved")

    @property
    def torn_before(self) -> frozenset[tuple[str, bytes]]:
        """Raises CannotTell: an image does not show what was torn before the crash."""
        raise CannotTell("an image does not show which files were torn before the crash")


_OF_THE_FIRST_RECOVERY = ("after", "derived", "durable", "durable_content", "ledger", "legal", "not_derivable")
_PAST_ALL = 1 << 62
NOT_OPEN = "the store did not open"


def _as_model(log: LogRead) -> CommitLog:
    return log_of(log.records, log.end).changed(min_offset=log.begin)


def version_in(files: Mapping[str, bytes], path: str) -> SavedVersion | None:
    """Return the version in a progress file or its backup; None if neither is readable."""
    document = load_config(dict(files), path)
    try:
        return None if document is None else READERS[path](document)
    except ValueError:
        return None
