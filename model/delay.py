"""Delay levels: a delayed message is stored in the queue of its level and remembers where it belongs.

1. The level is the property DELAY, a decimal number of 32 bits: digits, perhaps a sign before them. No DELAY is 0.
2. Prepared and rolled-back transactions and messages of the half topic are not delayed.
3. What is no number is refused where a message would be delayed, and in the schedule topic always; and so is a level
   above 0 of a message that would be delayed from the schedule topic itself.
4. A message is taken in only if its copy can be stored when it is due (model/delayed_copy.py).
5. A level above 0 moves the message to the schedule topic, queue level - 1, with topic and queue id of the producer in
   REAL_TOPIC and REAL_QID. A level above the highest counts as the highest and is written so.

Source: docs/statuses.md, "put" and "What a put changes about a message".
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from tornpage.model.message import Message, PutStatus
from tornpage.model.properties import changed, property_of
from tornpage.model.state import Layout

__all__ = ["HALF_TOPIC", "SCHEDULE_TOPIC", "level_of", "refusal", "rewritten"]

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
DECIMAL = re.compile(r"([+-]?)0*([0-9]{1,10})")


def level_of(properties: Mapping[str, str] | str) -> int | None:
    """Return the delay level that properties ask for, 0 without one, None if it is no number of 32 bits."""
    text = property_of(properties, "DELAY")
    if text is None:
        return 0
    decimal = DECIMAL.fullmatch(text)
    level = int(decimal[1] + decimal[2]) if decimal else None
    return level if level is not None and -(2**31) <= level < 2**31 else None


def refusal(message: Message, *, layout: Layout) -> PutStatus | None:
    """Return why a message is refused for its delay level, or None."""
    level, is_scheduled = level_of(message.properties), message.topic == SCHEDULE_TOPIC
    if level is None and (is_scheduled or _is_looked_at(message, layout)):
        return PutStatus.MESSAGE_ILLEGAL
    is_delayed_twice = is_scheduled and _is_looked_at(message, layout) and level is not None and level > 0
    return PutStatus.MESSAGE_ILLEGAL if is_delayed_twice and not layout.java_delays else None


def rewritten(message: Message, *, layout: Layout) -> Message:
    """Return what is stored of a message that is not refused: itself, or the delayed one."""
    wanted = (level_of(message.properties) or 0) if _is_looked_at(message, layout) else 0
    if wanted <= 0:
        return message
    level = min(wanted, layout.delay_levels)
    clamped = {"DELAY": str(level)} if level < wanted else {}
    real = {"REAL_TOPIC": message.topic}
    if 0 <= message.queue_id < 2**31:  # any other is refused for itself
        real["REAL_QID"] = str(message.queue_id)
    return replace(
        message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=changed(message.properties, clamped | real)
    )


def _is_looked_at(message: Message, layout: Layout) -> bool:
    return message.counts_in_its_queue and (message.topic != HALF_TOPIC or layout.java_delays)
