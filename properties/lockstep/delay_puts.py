"""Delayed puts as RocketMQ 4.9.3 takes them in, so that a log has what a delivery meets that was written by Java.

Half messages are delayed (RMQ-B65), and so are messages of the schedule topic; nobody asks whether a copy will fit
(RMQ-B22).
"""

from dataclasses import replace

from impl.delay import HALF_TOPIC, SCHEDULE_TOPIC, DelayLevels
from impl.delayed_copy import refusal_of_copy
from impl.message import Message, PutStatus
from impl.parts import Parts
from impl.rewriting import delayed

__all__ = ["taking_delays_as_java"]

_STAND_IN = "stand-in"


def taking_delays_as_java(parts: Parts) -> Parts:
    """Return the parts of a store whose log takes in whatever RocketMQ would."""
    delay = parts.of(delayed)

    def as_java(message: Message, text: str, levels: DelayLevels) -> Message | PutStatus:
        if message.topic not in (HALF_TOPIC, SCHEDULE_TOPIC):
            return delay(message, text, levels)
        stored = delay(replace(message, topic=_STAND_IN), text, levels)
        if isinstance(stored, PutStatus):
            return stored
        if stored.topic == _STAND_IN:
            return delay(message, text, levels)
        return replace(stored, properties=str(stored.properties).replace(_STAND_IN, message.topic))

    return parts.replacing({delayed: as_java, refusal_of_copy: _never_refused})


def _never_refused(*_: object, **__: object) -> None:
    return None
