"""Everything that the judges of one image look at: the image before, the store after its recovery, and the truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tornpage.impl.store import MessageStore
from tornpage.model.dispatch import Queue, places
from tornpage.model.refusal import is_topic
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.store import Floor
from tornpage.properties.judge.derived_ledger import DerivedLedger
from tornpage.properties.judge.directory.image import SeenImage
from tornpage.properties.judge.directory.records import ImageLedger, is_text, log_of, model_record
from tornpage.properties.judge.directory.recoveries import Opened, Recoveries
from tornpage.properties.judge.directory.shape import Shape
from tornpage.properties.judge.directory.survivors import LogRead, read_log
from tornpage.properties.judge.directory.truth import Truth
from tornpage.properties.judge.recovered import Recovered, key_of

__all__ = ["Evidence", "is_damaged"]

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
