"""Provide what judges look at in a crash image: the image, the store after its recovery, and the truth.

Our store is opened on recorded disks that hold the image; each opening recovers a copy of it by the real load path.

Units and index entries of records that retention has removed stay before those of the records that are there, so that
numbers go on. The log no longer says what they have to be: judges take them as they are, as long as they stand first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from impl.parts import Parts
from impl.runner import ThreadRunner
from impl.store import MessageStore
from model.dispatch import Queue, places
from model.message import Message
from model.refusal import is_topic
from model.state import CommitLog, Layout
from model.state import Record as ModelRecord
from properties.decode.consumequeue import UNIT_BYTES
from properties.decode.index import decode_index
from properties.decode.record import TRAILER_BYTES, Record
from properties.decode.store import Floor
from properties.decode.units import PREFILL_UNIT, decode_units
from properties.disk.dirty import DirtyTracker, choose_tracker
from properties.disk.disk import Image
from properties.disk.images import compose, disk_state
from properties.disk.journal import Entry
from properties.disk.recording_files import RecordingFiles
from properties.judge.evidence import DERIVED, INDEX, QUEUES, Recovered, key_of
from properties.judge.image import LogRead, SeenImage, Truth, below_root, read_log
from properties.judge.ledgers import DerivedLedger, EntryPut, Ledger
from properties.judge.shape import Shape
from properties.program.case import Disk, Settings
from properties.program.hand_driven import HandDriven
from properties.program.log_places import ROOT

__all__ = [
    "Evidence",
    "ImageLedger",
    "Opened",
    "Recoveries",
    "WithFront",
    "front_entries",
    "is_damaged",
    "is_text",
    "log_of",
    "model_record",
    "own_files",
    "recoveries_of",
    "without_front",
]


class ImageLedger(Ledger):
    """The bytes of records that were found, not put: there is nothing to compare them with yet."""

    def __init__(self, records: Sequence[Record], *, file_bytes: int) -> None:
        super().__init__(file_bytes=file_bytes)
        for record in records:
            base = record.offset // file_bytes * file_bytes
            self._file(base)[record.offset - base : record.end_offset - base] = record.raw
            self.ends.append(record.end_offset)


def is_text(record: Record) -> bool:
    """Whether topic and properties are UTF-8, so that Java and Python read the same in them."""
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
    """A disk on which the store was opened; `store` is None when that was refused, with `refusal` for a reason.

    `places` are those in the journal between two file operations of the opening, `end` is where it ended: what is done
    with the store afterwards is no part of it.
    """

    files: RecordingFiles
    store: MessageStore | None
    refusal: str
    disk: Disk
    places: tuple[int, ...]
    end: int

    def content(self) -> dict[str, bytes]:
        """Return the files as the process sees them, by name below the store directory."""
        start, files = len(ROOT) + 1, self.files
        return {path[start:]: files.peek(path, 0, 1 << 62) for path in files.paths() if path.startswith(f"{ROOT}/")}

    def durable(self) -> Image:
        """Return what the opening has left on the disk for sure."""
        return compose(disk_state(self.files.base, self.files.journal, self.end, disk=self.disk), {})

    def durable_content(self) -> dict[str, bytes]:
        """Return the files that are on the disk for sure, by name below the store directory."""
        return below_root(self.durable())


class Recoveries:
    """Opens the store of one shape as often as one likes; `now_ms` is its clock, `count` how often it was opened.

    `looks_at_all` has it look at the whole log each time, also where a proof says that nothing has changed.
    """

    def __init__(
        self, shape: Shape, components: Parts, *, tracker: DirtyTracker, now_ms: int, disk: Disk = "posix-strict"
    ) -> None:
        self.disk = disk
        self.count = 0
        self.looks_at_all = False
        self._config = shape.config
        self._clock = lambda: now_ms
        self._tracker = tracker
        self._components = components.replacing({ThreadRunner: lambda service: HandDriven(service, self._clock)})

    def opened(self, base: Image, journal: tuple[Entry, ...] = ()) -> Opened:
        """Open the store on a disk that holds an image, and the journal of a process that was killed on it."""
        files = RecordingFiles(base, tracker=self._tracker, journal=journal)
        store, refusal = self.open_on(files)
        files.mark("opened")
        return Opened(files, store, refusal, self.disk, tuple(dict.fromkeys(files.events)), len(files.journal))

    def open_on(self, files: RecordingFiles) -> tuple[MessageStore | None, str]:
        """Open the store on a disk; return it, or None and why not."""
        self.count += 1
        try:
            config = replace(self._config, check_whole_log_on_recover=self.looks_at_all)
            store = MessageStore.open(ROOT, config, files=files, clock=self._clock, parts=self._components)
        except Exception as error:  # whatever it is, it is an answer about this image
            return None, f"{type(error).__name__}: {error}"
        return store, ""


@contextmanager
def recoveries_of(shape: Shape, components: Parts, *, now_ms: int, disk: Disk) -> Iterator[Recoveries]:
    """Yield recoveries on disks whose memory is given back at the end."""
    tracker = choose_tracker("auto")
    try:
        yield Recoveries(shape, components, tracker=tracker, now_ms=now_ms, disk=disk)
    finally:
        tracker.close()


_OWN = re.compile(r"index/[0-9]{17}|consumequeue(_ext)?/[^/]+/(?:0|-?[1-9][0-9]{0,9})/[0-9]{20}")


class WithFront(DerivedLedger):
    """The memory of queues and index of some records, with index entries in front that were there already."""

    def __init__(self, layout: Layout, records: Iterable[ModelRecord], front: Sequence[EntryPut]) -> None:
        super().__init__(layout, records)
        self._front = list(front)

    def entries_at(self, end_offset: int) -> list[EntryPut]:
        """Return the index entries of a log that ends at an offset, those in front of it first."""
        return self._front + super().entries_at(end_offset)


def own_files(content: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files without what does not belong among queues and index, which a store leaves where it is."""
    return {name: data for name, data in content.items() if not name.startswith(DERIVED) or _OWN.fullmatch(name)}


def without_front(content: Mapping[str, bytes], *, begin: int) -> dict[str, bytes]:
    """Return the files with the filler in place of each unit whose record lies in front of `begin`.

    Queue files that have nothing else are left out.
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


def front_entries(content: Mapping[str, bytes], settings: Settings, *, begin: int) -> list[EntryPut] | None:
    """Return the index entries in front of `begin`; None where the file before the first is gone, which has its time.

    Their times are those of the entries themselves, in whole seconds.
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


def is_damaged(seen: SeenImage, log: LogRead, floor: Floor | None) -> bool:
    """Whether an image holds what no crash leaves: other files, an end below its floor, bytes behind a clean end."""
    is_clean = not seen.view.is_unclean
    below_floor = floor is not None and log.end < floor.offset
    return bool(log.problems) or below_floor or (is_clean and log.dirty_at is not None)


def _has_a_place(queue: Queue, number: int) -> bool:
    """Whether a queue file can be named for a message: logs of others may say anything."""
    return is_topic(queue[0]) and 0 <= number <= _NUMBER_MAX


@dataclass
class Evidence:
    """One image and its first recovery; `floor` is the durable floor that the image has, None without one."""

    seen: SeenImage
    shape: Shape
    before: LogRead
    opened: Opened
    recoveries: Recoveries
    truth: Truth | None
    floor: Floor | None

    @property
    def store(self) -> MessageStore | None:
        """The recovered store, None when it did not open."""
        return self.opened.store

    @property
    def is_writable(self) -> bool:
        """Whether the store opened read-write."""
        return self.store is not None and self.store.read_only_reason is None

    @property
    def is_damaged(self) -> bool:
        """Whether the image holds what no crash leaves behind: by its own decoder, whatever the store says."""
        return is_damaged(self.seen, self.before, self.floor)

    @cached_property
    def content(self) -> dict[str, bytes]:
        """The files after the recovery, as the process sees them."""
        return self.opened.content()

    @cached_property
    def durable(self) -> dict[str, bytes]:
        """The files after the recovery that are on the disk for sure."""
        return self.opened.durable_content()

    @cached_property
    def after(self) -> LogRead:
        """The log after the recovery, by the judges' own decoder."""
        return self.read(self.content)

    def read(self, content: dict[str, bytes]) -> LogRead:
        """Read the log of some files of this shape."""
        floor = 0 if self.floor is None else self.floor.offset
        return read_log(content, self.shape.log_directories, file_bytes=self.shape.settings.file_bytes, floor=floor)

    @cached_property
    def derived(self) -> DerivedLedger:
        """What queues and index of the surviving records have to hold, nothing where that cannot be worked out."""
        records = () if self.not_derivable else log_of(self.after.records, self.after.end).records
        return DerivedLedger(self.shape.layout, records)

    @cached_property
    def not_derivable(self) -> str:
        """Why queues and index cannot be worked out from the surviving records; nothing if they can."""
        if not all(map(is_text, self.after.records)):
            return "a record has a topic or properties that are no UTF-8: what Java makes of them is not decided here"
        last: dict[Queue, tuple[int, int]] = {}
        for record in map(model_record, self.after.records):
            for queue, number in places(record, self.shape.layout):
                if not _has_a_place(queue, number):
                    name = f"{queue[0]}/{queue[1]}"
                    return f"in the log {record.offset} is number {number} of queue {name}: no queue file can have it"
                before = last.get(queue, (number - 1, -1))
                if (number, record.offset) != before and number != before[0] + 1:
                    name = f"{queue[0]}/{queue[1]}"
                    return f"in the log queue {name} has number {number} at {record.offset}, behind number {before[0]}"
                last[queue] = number, record.offset
        return ""

    @cached_property
    def recovered(self) -> Recovered:
        """The recovered store as the judges of the lab look at it; what the image said before is not our store's."""
        assert self.store is not None
        log = log_of(self.after.records, self.after.end).changed(min_offset=self.after.begin)
        ledger = ImageLedger(self.after.records, file_bytes=self.shape.settings.file_bytes)
        return Recovered(
            self.store,
            self.opened.files,
            ledger,
            self.derived,
            {key_of(log): log},
            self.opened.durable(),
            self.shape.settings,
            self.shape.layout,
            was_harmed=True,
        )
