"""Specify reads through a queue: pulls, looking up a time, and the bounds of a queue.

Contracts 8 and 17.

1. A queue without any dispatched record is unknown, and a read does not create it. A store may know an empty queue
   after a crash that removed all its records, or after the disk refused its first unit.
2. For an offset outside its range a queue answers where to go on: at the minimum for an offset below it, at the maximum
   for one past it. A slave that does not check offsets answers with the offset of the request.
3. A pull looks at one unit after the other. It ends before the first unit that is not readable, when the batch is full,
   or when it has looked at as many units as it may. It goes on at the first unit that it did not look at.
4. A batch is full when it has as many messages as requested, or when one more would exceed the limits. The limits are
   lower for messages that are no longer in memory. The first message always fits.
5. A filter of tags compares only the lower 32 bits of tags codes, so a tag with an equal hash passes. A filter by
   properties reads the properties of each record (`properties`).
6. Only readable records are returned. After a failed sync a pull ends where the flushed part ends, while the maximum
   stays, and no pull moves a reader past a record that it has not received.
7. The offset of a time is the first unit that is not older, or the maximum if all are older. Where times go back, any
   place between an older unit and one that is not older is legal.

Records below the minimum of the log are in no queue here, since the queues follow the log in the same clean-up run. So
no reader gets an answer that a message is being removed.

Source: docs/statuses.md, "get from a queue" (`DefaultMessageStore.getMessage`).
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from tornpage.model.commitlog import GetStatus
from tornpage.model.properties import passes, property_of
from tornpage.model.queues import Unit, bounds_of, empty_queues, java_hash, queue_of
from tornpage.model.state import CommitLog, Layout, Record

__all__ = [
    "Pulled",
    "begins_in_disk",
    "earliest_message_time",
    "get_message",
    "is_in_disk",
    "legal_answers",
    "max_offset",
    "min_offset",
    "offset_by_time",
    "store_timestamp_in_queue",
    "unit_at",
]


class Pulled(NamedTuple):
    """The answer to a pull; `next_begin_offset` is where to go on.

    Minimum and maximum are those of the queue. `behind_bytes` is the distance from the record of the last unit that was
    looked at to the readable end, or None if there is no such unit. `suggest_pulling_from_slave` says whether that
    record is too far from the end to be in memory.
    """

    status: GetStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    records: tuple[Record, ...] = ()
    suggest_pulling_from_slave: bool = False
    behind_bytes: int | None = None


def get_message(
    log: CommitLog,
    layout: Layout,
    topic: str,
    queue_id: int,
    offset: int,
    max_msg_nums: int = 32,
    tags: Collection[str] | None = None,
    where: str = "",
) -> Pulled:
    """Pull up to `max_msg_nums` messages of a queue from a queue offset on.

    `tags` of None wants every message. So does an empty expression `where` over properties.
    """
    bounds = bounds_of(log, layout, (topic, queue_id))
    if bounds is None:
        return Pulled(GetStatus.NO_MATCHED_LOGIC_QUEUE, _corrected(offset, 0, layout), 0, 0)
    least, most = bounds
    if offset < least:
        return Pulled(GetStatus.OFFSET_TOO_SMALL, _corrected(offset, least, layout), least, most)
    if offset == most:
        return Pulled(GetStatus.OFFSET_OVERFLOW_ONE, offset, least, most)
    if offset > most:
        return Pulled(GetStatus.OFFSET_OVERFLOW_BADLY, _corrected(offset, most, layout), least, most)
    if max_msg_nums <= 0:
        return Pulled(GetStatus.NO_MATCHED_MESSAGE, offset, least, most)
    units = queue_of(log, layout, (topic, queue_id))
    return _pulled(log, layout, units, offset - least, max_msg_nums, tags, where)


def legal_answers(
    log: CommitLog,
    layout: Layout,
    topic: str,
    queue_id: int,
    offset: int,
    max_msg_nums: int = 32,
    tags: Collection[str] | None = None,
    where: str = "",
) -> tuple[Pulled, ...]:
    """Return every legal answer to a pull.

    There are two for a queue that may be known but is empty, otherwise one.
    """
    pulled = get_message(log, layout, topic, queue_id, offset, max_msg_nums, tags, where)
    if pulled.max_offset == 0 and (topic, queue_id) in empty_queues(log, layout):
        return pulled, pulled._replace(status=GetStatus.NO_MESSAGE_IN_QUEUE)
    return (pulled,)


def _corrected(asked: int, better: int, layout: Layout) -> int:
    return asked if layout.role == "SLAVE" and not layout.offset_check_in_slave else better


def _pulled(
    log: CommitLog,
    layout: Layout,
    units: Sequence[Unit],
    first: int,
    max_msg_nums: int,
    tags: Collection[str] | None,
    where: str,
) -> Pulled:
    """Pull from the unit at index `first` on."""
    hashes = None if tags is None else {java_hash(tag) % 2**32 for tag in tags}
    least, most = units[0].queue_offset, units[-1].queue_offset + 1
    records: list[Record] = []
    nothing, is_far, behind_bytes = GetStatus.NO_MATCHED_MESSAGE, False, None
    next_begin_offset = units[first].queue_offset
    for number, record, code in units[first : first + max(layout.pull_units_max, max_msg_nums)]:
        if record.end_offset > log.readable_end:
            nothing = GetStatus.OFFSET_FOUND_NULL
            break
        behind_bytes = log.readable_end - record.offset
        is_far = is_in_disk(log, layout, record)
        if _is_full(records, record, layout, max_msg_nums, is_far):
            break
        next_begin_offset = number + 1
        if (hashes is None or code % 2**32 in hashes) and (not where or _passes(where, record)):
            records.append(record)
    status = GetStatus.FOUND if records else nothing
    return Pulled(status, next_begin_offset, least, most, tuple(records), is_far, behind_bytes)


def begins_in_disk(log: CommitLog, layout: Layout, topic: str, queue_id: int) -> bool:
    """Return whether message 0 of a queue exists and counts as being on disk only."""
    unit = unit_at(log, layout, topic, queue_id, 0)
    return unit is not None and is_in_disk(log, layout, unit.record)


def is_in_disk(log: CommitLog, layout: Layout, record: Record) -> bool:
    """Return whether a record is so far before the readable end that only the disk has it."""
    return log.readable_end - record.offset > layout.memory_bytes * layout.memory_ratio // 100


def _passes(where: str, record: Record) -> bool:
    return passes(where, partial(property_of, record.message.properties))


def _is_full(records: Sequence[Record], record: Record, layout: Layout, max_msg_nums: int, is_far: bool) -> bool:
    """Return whether a batch takes no further record."""
    if not records:
        return False
    bytes_max = layout.transfer_bytes_in_disk if is_far else layout.transfer_bytes_in_memory
    count_max = layout.transfer_count_in_disk if is_far else layout.transfer_count_in_memory
    total_bytes = sum(each.size_bytes for each in records) + record.size_bytes
    return len(records) >= min(max_msg_nums, count_max) or total_bytes > bytes_max


def min_offset(log: CommitLog, layout: Layout, topic: str, queue_id: int) -> int:
    """Return the number of the first unit of a queue, 0 for an unknown queue."""
    return (bounds_of(log, layout, (topic, queue_id)) or (0, 0))[0]


def max_offset(log: CommitLog, layout: Layout, topic: str, queue_id: int) -> int:
    """Return the number that the next unit of a queue will have, 0 for an unknown queue."""
    return (bounds_of(log, layout, (topic, queue_id)) or (0, 0))[1]


def unit_at(log: CommitLog, layout: Layout, topic: str, queue_id: int, queue_offset: int) -> Unit | None:
    """Return a unit of a queue by its number, whether or not its record is readable."""
    return next((u for u in queue_of(log, layout, (topic, queue_id)) if u.queue_offset == queue_offset), None)


def store_timestamp_in_queue(
    log: CommitLog, layout: Layout, topic: str, queue_id: int, queue_offset: int
) -> int | None:
    """Return when a message of a queue was stored, None if it is missing or not readable."""
    unit = unit_at(log, layout, topic, queue_id, queue_offset)
    readable = unit is not None and unit.record.end_offset <= log.readable_end
    return unit.record.store_timestamp if unit is not None and readable else None


def earliest_message_time(log: CommitLog, layout: Layout, queue: tuple[str, int] | None = None) -> int | None:
    """Return when the first message of a queue, or of the log, was stored.

    None stands for no readable message.
    """
    if queue is not None:
        return store_timestamp_in_queue(log, layout, *queue, min_offset(log, layout, *queue))
    readable = [record for record in log.retained if record.end_offset <= log.readable_end]
    return readable[0].store_timestamp if readable else None


def offset_by_time(log: CommitLog, layout: Layout, topic: str, queue_id: int, timestamp: int) -> frozenset[int]:
    """Return every legal queue offset of a time: one unless times go back there.

    A record that is not readable counts as younger than any time, so no reader is moved past it. An unknown queue has
    offset 0.
    """
    units = queue_of(log, layout, (topic, queue_id))
    if not units:
        return frozenset({min_offset(log, layout, topic, queue_id)})
    older = [u.record.end_offset <= log.readable_end and u.record.store_timestamp < timestamp for u in units]
    return frozenset(
        units[0].queue_offset + place
        for place, (left, right) in enumerate(zip([True, *older], [*older, False], strict=True))
        if left and not right
    )
