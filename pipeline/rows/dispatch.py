"""The consume queue units that a record needs, by the dispatch rules of RocketMQ 4.9.3.

1. Ordinary and committed messages have a unit in their own queue at their queue offset. Prepared and rolled back ones
   have none.
2. A record that names further queues (multi-dispatch) and states as many offsets has one more unit in each of them. A
   light queue (`%LMQ%…`) is queue 0 of its name if light queues were enabled. Otherwise it has the record's queue id.
3. The unit's code is the Java hash of the tag, 0 without one. A delayed message in the schedule topic has its due time
   instead: store time plus the delay of its level, which is a setting of the broker and not stored.
4. No queue has a name that no directory can have (empty, `.`, `..`, one with `/`, one of more than 255 bytes). No put
   accepts such a topic, but a log may contain it.

Source: RocketMQ's `ConsumeQueue.putMessagePositionInfoWrapper` and `CommitLog.checkMessageAndReturnSize`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tornpage.properties.decode.consumequeue import java_hash
from tornpage.properties.decode.numbers import delay_level, queue_offsets
from tornpage.properties.decode.record import Record, parse_properties

__all__ = ["LIGHT_PREFIX", "NO_UNIT_BIT", "SCHEDULE_TOPIC", "Dispatch", "Place", "dispatch_of", "has_queue"]

LIGHT_PREFIX = "%LMQ%"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"

_NAME_BYTES_MAX = 255

NO_UNIT_BIT = 0x04
"""Set in the system flags of prepared (01 of the two bits) and rolled back (11) messages."""


@dataclass(frozen=True, slots=True)
class Place:
    """One unit that must exist; `is_light` marks queues whose offsets 4.9.3 loses at restart."""

    topic: str
    queue_id: int
    queue_offset: int
    is_light: bool


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The units of one record.

    With `is_delayed` the code is a due time, and `tags_code` is only the tag's hash.
    """

    places: tuple[Place, ...]
    tags_code: int
    is_delayed: bool


def has_queue(name: bytes) -> bool:
    """Return whether a directory can have this name."""
    return 0 < len(name) <= _NAME_BYTES_MAX and b"/" not in name and b"\0" not in name and name not in (b".", b"..")


def dispatch_of(record: Record, *, light_queues: bool, drops_joined: bool = False) -> Dispatch:
    """Return the units that `record` must have; of two in the same queue the first counts.

    `drops_joined` is as in `parse_properties`.
    """
    properties = parse_properties(record.properties, drops_joined=drops_joined) if record.properties else {}
    tags_code = java_hash(properties.get("TAGS", ""))
    topic = record.topic_text
    is_delayed = topic == SCHEDULE_TOPIC and delay_level(properties.get("DELAY", "")) > 0
    if record.sys_flag & NO_UNIT_BIT:
        return Dispatch((), tags_code, is_delayed)
    own = (topic, record.queue_id)
    places = {own: Place(*own, record.queue_offset, False)} if has_queue(record.topic) else {}
    names = properties.get("INNER_MULTI_DISPATCH", "")
    offsets = properties.get("INNER_MULTI_QUEUE_OFFSET", "")
    if names and offsets:
        for place in _side_places(names.split(","), queue_offsets(offsets), record.queue_id, light_queues):
            places.setdefault((place.topic, place.queue_id), place)
    return Dispatch(tuple(places.values()), tags_code, is_delayed)


def _side_places(names: list[str], offsets: list[int], queue_id: int, light_queues: bool) -> list[Place]:
    if len(names) != len(offsets):
        return []  # RocketMQ logs an error and dispatches to none of them
    places = []
    for name, offset in zip(names, offsets, strict=True):
        if not has_queue(name.encode()):
            continue
        is_light = light_queues and name.startswith(LIGHT_PREFIX)
        places.append(Place(name, 0 if is_light else queue_id, offset, is_light))
    return places
