"""Specify queue offsets, and messages in several queues: multi-dispatch and light queues.

1. A queue is a name and an id. Its next offset is one more than the greatest offset that a counting record has there,
   either in the record's own queue or in a queue that it names. Without such a record it is 0. One table holds the
   offsets of all queues. It is built from the records alone, so a restart does not change it.
2. A message names further queues in INNER_MULTI_DISPATCH, separated by ",". They count if multi-dispatch is enabled,
   the property is not blank, and the stored topic (after delay levels) is neither the schedule topic nor a retry topic.
3. With light queues enabled, a name that begins with `%LMQ%` is a light queue, and its id is 0. Every other named queue
   has the id of the message.
4. Such a message is stored with INNER_MULTI_QUEUE_OFFSET, the next offset of each named queue in order, and without
   WAIT. Equal queues get equal offsets.
5. The rules for topics apply to names. The light queues known to the log are those for which a counting record has an
   offset by name. Together with those of the message they are not more than the layout allows.
6. Prepared and rolled-back transactions are stored with offsets and refused like other messages. They advance no queue
   and make no light queue known.
7. Records before a deletion of their topic count as if they had never existed (model/retention.py).

Source: docs/statuses.md, "put" and "What a put changes about a message".
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tornpage.model.admission import is_topic
from tornpage.model.message import SCHEDULE_TOPIC, Message, PutStatus
from tornpage.model.properties import changed, property_of
from tornpage.model.state import CommitLog, Layout, Record

__all__ = [
    "Queue",
    "counted",
    "light_queues",
    "named_queues",
    "names_in",
    "next_queue_offset",
    "places",
    "refusal",
    "rewritten",
]

Queue = tuple[str, int]
"""Name and id of a queue."""

NAMES = "INNER_MULTI_DISPATCH"
OFFSETS = "INNER_MULTI_QUEUE_OFFSET"
OFFSET = re.compile("[0-9]{1,18}")  # the longest position has 63 bits, and a unit has 20 bytes
LIGHT_PREFIX = "%LMQ%"
RETRY_PREFIX = "%RETRY%"


def named_queues(message: Message, *, layout: Layout) -> tuple[Queue, ...]:
    """Return the further queues that a message names, in order, repeated if named repeatedly.

    The topic of `message` is the stored one.
    """
    if not layout.multi_dispatch or message.topic == SCHEDULE_TOPIC or message.topic.startswith(RETRY_PREFIX):
        return ()
    names = names_in(message.properties)
    return tuple((name, 0 if _is_light(name, layout) else message.queue_id) for name in names)


def names_in(properties: Mapping[str, str] | str) -> list[str]:
    """Return the names that properties list, legal or not; a blank property lists none."""
    names = property_of(properties, NAMES) or ""
    return [] if all(map(_is_white, names)) else names.split(",")


def _is_white(character: str) -> bool:
    """Return whether a character is white space for Java's `Character.isWhitespace`."""
    if character in "\u00a0\u2007\u202f":  # no-break spaces
        return False
    return unicodedata.category(character) in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x1c\x1d\x1e\x1f"


def _is_light(name: str, layout: Layout) -> bool:
    return layout.light_queues and name.startswith(LIGHT_PREFIX)


def next_queue_offset(log: CommitLog, queue: Queue, *, layout: Layout) -> int:
    """Return the offset that the next counting message of a queue gets."""
    return max((offset for _, found, offset in counted(log, layout) if found == queue), default=-1) + 1


def places(record: Record, layout: Layout) -> list[tuple[Queue, int]]:
    """Return each queue in which a record counts, with its offset there."""
    message = record.message
    if not message.counts_in_its_queue:
        return []
    own = (message.topic, message.queue_id), record.queue_offset
    has_offsets = layout.multi_dispatch and OFFSETS in message.properties
    return [own, *_given_by_name(record, layout)] if has_offsets else [own]


def counted(log: CommitLog, layout: Layout) -> Iterator[tuple[Record, Queue, int]]:
    """Yield each record with each queue in which it still counts, and its offset there.

    A record does not count in the queues of a topic that was deleted after it.
    """
    deleted = dict(log.deleted)
    for record in log.records:
        for queue, offset in places(record, layout):
            if record.offset >= deleted.get(queue[0], 0):
                yield record, queue, offset


def _given_by_name(record: Record, layout: Layout) -> list[tuple[Queue, int]]:
    """Return the named queues of a record with their offsets.

    There are none if the record was appended without multi-dispatch.
    """
    queues = named_queues(record.message, layout=layout)
    if not queues:
        return []
    offsets = (property_of(record.message.properties, OFFSETS) or "").split(",")
    if len(offsets) != len(queues) or not all(map(OFFSET.fullmatch, offsets)):
        return []
    return list(zip(queues, map(int, offsets), strict=True))


def light_queues(log: CommitLog, *, layout: Layout) -> frozenset[str]:
    """Return the names of the light queues known to the log."""
    counting = [record for record in log.records if record.message.counts_in_its_queue]
    deleted = dict(log.deleted)
    given = [
        name
        for record in counting
        for (name, _), _ in _given_by_name(record, layout)
        if record.offset >= deleted.get(name, 0)
    ]
    return frozenset(name for name in given if _is_light(name, layout))


def rewritten(log: CommitLog, message: Message, *, layout: Layout) -> Message:
    """Return what is stored of a message: itself, or a form with offsets and without WAIT.

    The topic of `message` is the stored one.
    """
    queues = named_queues(message, layout=layout)
    if not queues:
        return message
    offsets = ",".join(str(next_queue_offset(log, queue, layout=layout)) for queue in queues)
    return replace(message, properties=changed(message.properties, {OFFSETS: offsets}, less="WAIT"))


def refusal(log: CommitLog, message: Message, *, layout: Layout) -> PutStatus | None:
    """Return why a message is refused for the queues that it names, or None.

    The topic of `message` is the stored one.
    """
    names = [name for name, _ in named_queues(message, layout=layout)]
    if not all(is_topic(name) for name in names):
        return PutStatus.MESSAGE_ILLEGAL
    if not names or not layout.light_queues:
        return None
    then_known = light_queues(log, layout=layout) | {name for name in names if _is_light(name, layout)}
    return PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED if len(then_known) > layout.light_queues_max else None
