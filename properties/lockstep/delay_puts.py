"""Delayed puts as RocketMQ 4.9.3 takes them in, so that a log has what a delivery meets that was written by Java.

Half messages are delayed (RMQ-B65), and so are messages of the schedule topic; nobody asks whether a copy will fit
(RMQ-B22).
"""

from dataclasses import replace
from typing import Any

from impl.commit_log import CommitLog
from impl.delay import HALF_TOPIC, SCHEDULE_TOPIC
from impl.message import Message, PutStatus
from impl.parts import Parts

__all__ = ["taking_delays_as_java"]

_STAND_IN = "stand-in"


def taking_delays_as_java(parts: Parts) -> Parts:
    """Return the parts of a store whose log takes in whatever RocketMQ would."""
    kind: Any = parts.of(CommitLog)

    class AsJava(kind):  # type: ignore[misc]
        def _delayed(self, message: Message, text: str) -> Message | PutStatus:
            is_special = message.topic in (HALF_TOPIC, SCHEDULE_TOPIC)
            delayed: Message | PutStatus = super()._delayed(
                replace(message, topic=_STAND_IN) if is_special else message, text
            )
            if not is_special or isinstance(delayed, PutStatus):
                return delayed
            if delayed.topic == _STAND_IN:
                plain: Message | PutStatus = super()._delayed(message, text)
                return plain
            return replace(delayed, properties=str(delayed.properties).replace(_STAND_IN, message.topic))

        def _refusal_of_copy(self, *_: object) -> None:
            return None

    return parts.replacing({CommitLog: AsJava})
