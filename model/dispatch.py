"""Queue offsets, and messages that count in more queues than their own: multi-dispatch and light queues.

1. A queue is a name and an id. Its next offset is one more than the greatest that a counting record was given there,
   be it as the record's own queue or as a named one; 0 if there is none. There is one table for all queues, and it is
   made from the records alone, so it is the same after a restart.
2. A message names further queues in INNER_MULTI_DISPATCH, split at ",", if multi-dispatch is enabled, the property is
   not blank, and the topic (the stored one, after delay levels) is neither the schedule topic nor a retry topic.
3. With light queues enabled a name that begins with `%LMQ%` is a light queue, and its id is 0. Every other named queue
   has the id of the message.
4. What is stored of such a message holds the next offset of each named queue in INNER_MULTI_QUEUE_OFFSET, in order,
   and no WAIT. Equal queues get equal offsets.
5. A name is what a topic may be. The light queues the log knows are those that a counting record was given an offset
   for by name; with those of the message they are not more than the layout allows.
6. Prepared and rolled-back transactions get offsets written, are refused like others, advance nothing and make no
   light queue known.
7. Records of a topic that was deleted behind them count as if they had never been (model/retention.py).

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
OFFSET = re.compile("[0-9]{1,18}")  # no queue reaches further: a unit has 20 bytes, and a position 63 bits
LIGHT_PREFIX = "%LMQ%"
RETRY_PREFIX = "%RETRY%"


def named_queues(message: Message, *, layout: Layout) -> tuple[Queue, ...]:
    """Return the further queues of a message (its topic is the stored one), in order, as often as they are named."""
    if not layout.multi_dispatch or message.topic == SCHEDULE_TOPIC or message.topic.startswith(RETRY_PREFIX):
        return ()
    names = names_in(message.properties)
    return tuple((name, 0 if _is_light(name, layout) else message.queue_id) for name in names)


def names_in(properties: Mapping[str, str] | str) -> list[str]:
    """Return the names that properties give, whether or not they may and can be; blank gives none."""
    names = property_of(properties, NAMES) or ""
    return [] if all(map(_is_white, names)) else names.split(",")


def _is_white(character: str) -> bool:
    """Whether a character is white space as Java's `Character.isWhitespace` sees it."""
    if character in "\u00a0\u2007\u202f":  # spaces that forbid a line break
        return False
    return unicodedata.category(character) in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x1c\x1d\x1e\x1f"


def _is_light(name: str, layout: Layout) -> bool:
    return layout.light_queues and name.startswith(LIGHT_PREFIX)


def next_queue_offset(log: CommitLog, queue: Queue, *, layout: Layout) -> int:
    """Return the offset that the next counting message of a queue gets there."""
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
    """Yield each record with a queue in which it counts still, and its offset there.

    A record does not count in queues of a topic that was deleted behind it.
    """
    deleted = dict(log.deleted)
    for record in log.records:
        for queue, offset in places(record, layout):
            if record.offset >= deleted.get(queue[0], 0):
                yield record, queue, offset


def _given_by_name(record: Record, layout: Layout) -> list[tuple[Queue, int]]:
    """Return the named queues of a record with their offsets; none if it was appended without multi-dispatch."""
    queues = named_queues(record.message, layout=layout)
    if not queues:
        return []
    offsets = (property_of(record.message.properties, OFFSETS) or "").split(",")
    if len(offsets) != len(queues) or not all(map(OFFSET.fullmatch, offsets)):
        return []
    return list(zip(queues, map(int, offsets), strict=True))


def light_queues(log: CommitLog, *, layout: Layout) -> frozenset[str]:
    """Return the names of the light queues that the log knows."""
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
    """Return what is stored of a message (its topic is the stored one): itself, or with offsets and without WAIT."""
    queues = named_queues(message, layout=layout)
    if not queues:
        return message
    offsets = ",".join(str(next_queue_offset(log, queue, layout=layout)) for queue in queues)
    return replace(message, properties=changed(message.properties, {OFFSETS: offsets}, less="WAIT"))


def refusal(log: CommitLog, message: Message, *, layout: Layout) -> PutStatus | None:
    """Return why a message (its topic is the stored one) is refused for the queues it names, or None."""
    names = [name for name, _ in named_queues(message, layout=layout)]
    if not all(is_topic(name) for name in names):
        return PutStatus.MESSAGE_ILLEGAL
    if not names or not layout.light_queues:
        return None
    then_known = light_queues(log, layout=layout) | {name for name in names if _is_light(name, layout)}
    return PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED if len(then_known) > layout.light_queues_max else None
