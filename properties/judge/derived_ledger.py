"""The judges' memory of queues and index: what every record of the log adds to them.

Filled record by record from the model, so that what a log of any length must have derived is a look-up: units of a
queue and entries of the index in the order of the log, records of a key. Offsets are physical.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tornpage.model.dispatch import Queue, places
from tornpage.model.index import keys_of
from tornpage.model.queues import Unit, tags_code
from tornpage.model.state import Layout, Record
from tornpage.properties.decode.index import index_hash

__all__ = ["DerivedLedger", "EntryPut", "Key", "QueueMemory"]

Key = tuple[str, str]
"""Topic and key."""

EntryPut = tuple[int, int, int]
"""What one entry of the index is about: hash of the key, physical offset and store timestamp (ms) of the record."""

_UNIT = struct.Struct(">qiq")
_hash_of = lru_cache(maxsize=4096)(index_hash)


@dataclass(slots=True)
class QueueMemory:
    """One queue: unit n from the first on is `units[n]`; it is there when the log reaches `ends[n]`.

    `stored` are all units as a queue file has them, without an extension.
    """

    units: list[Unit] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    stored: bytearray = field(default_factory=bytearray)

    def count_at(self, end_offset: int) -> int:
        """Return how many units a log that ends at an offset has in this queue."""
        return bisect_right(self.ends, end_offset)

    def first_at(self, min_offset: int) -> int:
        """Return the index of the first unit whose record does not lie in front of an offset."""
        return bisect_left(self.units, min_offset, key=_begin_of) if min_offset else 0

    def append(self, unit: Unit) -> None:
        """Take in the next unit."""
        assert not self.units or unit.queue_offset == self.units[-1].queue_offset + 1, "the model left a gap in a queue"
        self.units.append(unit)
        self.ends.append(unit.record.end_offset)
        self.stored += _UNIT.pack(unit.record.offset, unit.record.size_bytes, unit.tags_code)


class DerivedLedger:
    """Expected queues and index of every log that begins with the records noted so far, in their order.

    Records of a topic that was `deleted` count in its queues from the offset on that is given with it.
    """

    def __init__(self, layout: Layout, records: Iterable[Record] = (), deleted: Iterable[tuple[str, int]] = ()) -> None:
        self._layout = layout
        self._deleted = dict(deleted)
        self._records: list[Record] = []
        self.queues: dict[Queue, QueueMemory] = {}
        self.keys: dict[Key, list[Record]] = {}
        self.entries: list[EntryPut] = []
        self._entry_ends: list[int] = []
        for record in records:
            self.note(record)

    def note(self, record: Record) -> None:
        """Take in the next record of the log."""
        self._records.append(record)
        code = tags_code(record, self._layout)
        for queue, number in places(record, self._layout):
            if record.offset < self._deleted.get(queue[0], 0):
                continue
            memory = self.queues.setdefault(queue, QueueMemory())
            if not memory.units or memory.units[-1].queue_offset < number:  # named twice, it is there once
                memory.append(Unit(number, record, code))
        if self._layout.index:
            self._note_keys(record)

    def _note_keys(self, record: Record) -> None:
        topic = record.message.topic
        for key in keys_of(record):
            self.entries.append((_hash_of(topic, key), record.offset, record.store_timestamp))
            self._entry_ends.append(record.end_offset)
            records = self.keys.setdefault((topic, key), [])
            if not records or records[-1] is not record:
                records.append(record)

    def up_to(self, end_offset: int, deleted: Iterable[tuple[str, int]] = ()) -> "DerivedLedger":
        """Return an independent memory of the records that end at or before an offset: the others were cut."""
        records = (record for record in self._records if record.end_offset <= end_offset)
        return DerivedLedger(self._layout, records, deleted)

    def with_deleted(self, deleted: Iterable[tuple[str, int]], end_offset: int) -> "DerivedLedger":
        """Return a memory of the same records of a log that ends at an offset, these topics being deleted."""
        clamped = {topic: min(offset, end_offset) for topic, offset in deleted}
        if clamped == {topic: min(offset, end_offset) for topic, offset in self._deleted.items()}:
            return self
        return DerivedLedger(self._layout, self._records, clamped.items())

    def queues_at(self, end_offset: int) -> Iterator[tuple[Queue, QueueMemory, int]]:
        """Yield each queue that has units when the log ends at an offset, and how many."""
        for queue, memory in self.queues.items():
            count = memory.count_at(end_offset)
            if count:
                yield queue, memory, count

    def end_of(self, queue: Queue, end_offset: int) -> int:
        """Return the number that follows the last unit of a queue when the log ends at an offset."""
        memory = self.queues.get(queue)
        count = memory.count_at(end_offset) if memory is not None else 0
        return memory.units[count - 1].queue_offset + 1 if memory is not None and count else 0

    def entries_at(self, end_offset: int) -> list[EntryPut]:
        """Return the index entries of a log that ends at an offset, in put order."""
        return self.entries[: bisect_right(self._entry_ends, end_offset)]

    def keys_at(self, end_offset: int) -> list[Key]:
        """Return the keys of a log that ends at an offset, in the order of their first records.

        What comes behind that, in a history that was crashed at an earlier place, a replay of the crash does not know.
        """
        return [key for key, records in self.keys.items() if records[0].end_offset <= end_offset]

    def records_with(self, key: Key, end_offset: int, min_offset: int = 0) -> list[Record]:
        """Return the records of a log that ends and begins at these offsets which have a key, in order."""
        records = self.keys.get(key, [])
        return [each for each in records[: bisect_right(records, end_offset, key=_end_of)] if each.offset >= min_offset]


def _begin_of(unit: Unit) -> int:
    return unit.record.offset


def _end_of(record: Record) -> int:
    return record.end_offset
