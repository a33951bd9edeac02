"""Specify consume queues as values: the units of each queue (contracts 4 and 17).

1. A queue has one unit for each dispatched record that counts there, as the record's own queue or as one that it names.
   Units are in the order of the log. A unit has the number that the record was given there.
2. Prepared and rolled-back transactions are in no queue. A queue that a record names twice, or that is also its own,
   has one unit for it.
3. Units of a queue are numbered without a gap from its minimum. Its maximum is one more than the last number, and never
   goes down while the store is open.
4. A unit has a tags code. It is the hash of the property TAGS, 0 without one. For a message in the schedule topic with
   a level above 0 it is the time at which the message is due.
5. Dispatch goes as far as readers see. After an open everything is dispatched. A close dispatches all that can be read
   before it flushes.
6. A step that the disk refuses may have filled some queues. No record is in a queue twice, whatever follows.
7. Queues follow from the records alone: a restart or a crash changes nothing about units whose record survives.
8. A unit is removed with its record, but numbers are kept: a queue without any unit left continues with the number
   after its last one.

Source: docs/format.md, "Consume queue"; docs/statuses.md, "What a put changes about a message" (`ReputMessageService`,
`CommitLogDispatcherBuildConsumeQueue`).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from tornpage.model.delay import level_of
from tornpage.model.dispatch import Queue, counted, places
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.model.properties import property_of
from tornpage.model.state import CommitLog, Layout, Record

__all__ = [
    "Queue",
    "Unit",
    "all_bounds",
    "bounds_of",
    "dispatch",
    "dispatched",
    "empty_queues",
    "failed_dispatch",
    "java_hash",
    "queue_of",
    "queues_of",
    "tags_code",
]

UNKNOWN_DELAY_MS = 1000


class Unit(NamedTuple):
    """A unit of a queue: its number there, its record, and its tags code."""

    queue_offset: int
    record: Record
    tags_code: int


def dispatch(log: CommitLog) -> CommitLog:
    """Return the log after a step of the dispatcher.

    Every record that readers see is in its queues and in the index.
    """
    return log.changed(dispatched_offset=max(log.dispatched_offset, log.readable_end))


def dispatched(log: CommitLog) -> Iterator[Record]:
    """Yield the dispatched records in order."""
    return (record for record in log.records if record.end_offset <= log.dispatched_offset)


def failed_dispatch(log: CommitLog, layout: Layout) -> Iterator[CommitLog]:
    """Yield each legal log after a step that the disk refused at some point.

    The next step continues from any of them. The dispatcher works from one end of a log file to the next. The first
    records of the part that failed may be in their queues. They are not yet in the index.
    """
    ends = range(log.dispatched_offset // layout.file_bytes + 1, log.readable_end // layout.file_bytes + 1)
    stops = [log.dispatched_offset, *(number * layout.file_bytes for number in ends)]
    for stop, end in pairwise([*stops, max(stops[-1], log.readable_end)]):
        first, last = (
            sum(len(places(record, layout)) for record in log.records if record.end_offset <= offset)
            for offset in (stop, end)
        )
        for queued in range(max(first, log.queued), max(last, log.queued) + 1):
            yield log.changed(dispatched_offset=stop, queued=queued)


def queues_of(log: CommitLog, layout: Layout, *, topic: str | None = None) -> dict[Queue, tuple[Unit, ...]]:
    """Return the units of each queue that has any, or of the queues of one topic.

    The queues are in the order of their first unit.
    """
    queues: dict[Queue, dict[int, Record]] = {}
    for record, queue, number in _retained(log, layout):
        if topic is None or queue[0] == topic:
            queues.setdefault(queue, {})[number] = record
    return {queue: _units(records, layout) for queue, records in queues.items()}


def queue_of(log: CommitLog, layout: Layout, queue: Queue) -> tuple[Unit, ...]:
    """Return the units of one queue; an unknown queue has none."""
    return _units({number: record for record, found, number in _retained(log, layout) if found == queue}, layout)


def bounds_of(log: CommitLog, layout: Layout, queue: Queue) -> tuple[int, int] | None:
    """Return the first number of a queue and the one after its last; None if it is unknown."""
    return all_bounds(log, layout).get(queue)


def all_bounds(log: CommitLog, layout: Layout) -> dict[Queue, tuple[int, int]]:
    """Return `bounds_of` each known queue."""
    queued: dict[Queue, list[tuple[int, int]]] = {}
    for record, queue, number in _queued(log, layout):
        queued.setdefault(queue, []).append((record.offset, number))
    return {queue: _bounds(places, log.min_offset) for queue, places in queued.items()}


def _bounds(queued: Sequence[tuple[int, int]], min_offset: int) -> tuple[int, int]:
    end = max(number for _, number in queued) + 1
    return min((number for offset, number in queued if offset >= min_offset), default=end), end


def _retained(log: CommitLog, layout: Layout) -> Iterator[tuple[Record, Queue, int]]:
    min_offset = log.min_offset
    return (found for found in _queued(log, layout) if found[0].offset >= min_offset)


def _queued(log: CommitLog, layout: Layout) -> Iterator[tuple[Record, Queue, int]]:
    """Yield each record with each queue that it is in and its number there."""
    end, queued = log.dispatched_offset, log.queued
    for position, found in enumerate(counted(log, layout)):
        if position < queued or found[0].end_offset <= end:
            yield found


def _units(records: Mapping[int, Record], layout: Layout) -> tuple[Unit, ...]:
    return tuple(Unit(number, record, tags_code(record, layout)) for number, record in records.items())


def empty_queues(log: CommitLog, layout: Layout) -> frozenset[Queue]:
    """Return the queues that a store may know although they are empty.

    Either a recovery removed all their units, or the disk refused their first unit, which is the next one.
    """
    filled = list(_queued(log, layout))
    following = islice(counted(log, layout), len(filled), len(filled) + 1)
    known = {queue for _, queue, _ in following} | {queue for each in log.cut for queue, _ in places(each, layout)}
    return frozenset(known - {queue for _, queue, _ in filled})


def tags_code(record: Record, layout: Layout) -> int:
    """Return the tags code of a unit: when its record is due, or the hash of its tag."""
    properties = record.message.properties
    if record.message.topic == SCHEDULE_TOPIC:
        level = min(level_of(properties) or 0, layout.delay_levels)
        if level > 0:
            known = level <= len(layout.delays_ms)
            return record.store_timestamp + (layout.delays_ms[level - 1] if known else UNKNOWN_DELAY_MS)
    return java_hash(property_of(properties, "TAGS", drops_joined=layout.drops_joined) or "")


@lru_cache(maxsize=1024)
def java_hash(text: str) -> int:
    """Return the hash of a Java string (`String.hashCode`): 32 bits, signed, over UTF-16."""
    code = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        code = (31 * code + unit) % 2**32
    return code - 2**32 if code >= 2**31 else code
