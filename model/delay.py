"""Specify delay levels: a delayed message is stored in the queue of its level.

1. The level is the property DELAY, a decimal number of 32 bits: digits with an optional sign. Without DELAY the level
   is 0.
2. Prepared and rolled-back transactions and messages of the half topic are not delayed.
3. A DELAY that is not such a number is refused where a message would be delayed, and always in the schedule topic. A
   level above 0 is refused in the schedule topic too, where the message would be delayed again.
4. A level above 0 moves the message to the schedule topic, queue level - 1. REAL_TOPIC and REAL_QID keep the topic and
   queue id of the producer. A level above the highest is stored as the highest.

The copy of a delayed message is what its consumers receive:

5. The copy goes to the topic and queue of REAL_TOPIC and REAL_QID. It is the message as stored, without DELAY and WAIT,
   and without the offset of a transaction. Its properties are rebuilt from their pairs.
6. A message has no copy if its level is not above 0, if its topic or queue is missing or illegal, or if its topic is
   the schedule topic or the half topic.
7. A delayed message is refused if its copy would be refused, for any queue offsets that the copy may get in the queues
   it names. It is also refused if its copy would go to another topic.

Source: docs/statuses.md, "put", "What a put changes about a message" and "delivery of delayed messages"
(`ScheduleMessageService.messageTimeup`).
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from tornpage.model import admission
from tornpage.model.admission import is_topic
from tornpage.model.dispatch import OFFSETS, named_queues
from tornpage.model.message import SCHEDULE_TOPIC, Message, PutStatus
from tornpage.model.properties import changed, property_of
from tornpage.model.state import Layout

__all__ = ["HALF_TOPIC", "copy_of", "copy_refusal", "level_of", "refusal", "rewritten"]

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
LONGEST_OFFSET = "9" * 18
DECIMAL = re.compile(r"([+-]?)0*([0-9]{1,10})")


def level_of(properties: Mapping[str, str] | str) -> int | None:
    """Return the delay level of properties: 0 without one, None if it is no number of 32 bits."""
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
    """Return what is stored of a message that is not refused: itself, or the delayed form."""
    wanted = (level_of(message.properties) or 0) if _is_looked_at(message, layout) else 0
    if wanted <= 0:
        return message
    level = min(wanted, layout.delay_levels)
    clamped = {"DELAY": str(level)} if level < wanted else {}
    real = {"REAL_TOPIC": message.topic}
    if 0 <= message.queue_id < 2**31:  # any other queue id is refused later
        real["REAL_QID"] = str(message.queue_id)
    return replace(
        message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=changed(message.properties, clamped | real)
    )


def copy_of(stored: Message) -> Message | None:
    """Return the copy of a message in the schedule topic, or None if it has none."""
    topic, queue_id = property_of(stored.properties, "REAL_TOPIC"), property_of(stored.properties, "REAL_QID")
    if (level_of(stored.properties) or 0) <= 0 or topic is None or queue_id is None:
        return None
    if not is_topic(topic) or topic in (SCHEDULE_TOPIC, HALF_TOPIC):
        return None
    if not re.fullmatch("[0-9]{1,10}", queue_id) or int(queue_id) >= 2**31:
        return None
    properties = changed(changed(stored.properties, {}, less="DELAY"), {}, less="WAIT")
    return replace(stored, topic=topic, queue_id=int(queue_id), properties=properties, prepared_transaction_offset=0)


def copy_refusal(given: Message, stored: Message, *, layout: Layout) -> PutStatus | None:
    """Return why a message stored in this form is refused for its copy, or None."""
    if layout.java_delays or stored.topic != SCHEDULE_TOPIC or given.topic == SCHEDULE_TOPIC:
        return None
    copy = copy_of(stored)
    if copy is None or copy.topic != given.topic:
        return PutStatus.MESSAGE_ILLEGAL
    names = [name for name, _ in named_queues(copy, layout=layout)]
    longest = changed(copy.properties, {OFFSETS: ",".join([LONGEST_OFFSET] * len(names))}) if names else copy.properties
    refused = admission.as_stored(copy, replace(copy, properties=longest), layout=layout)
    if refused is None and not all(map(is_topic, names)):
        return PutStatus.MESSAGE_ILLEGAL
    return refused


def _is_looked_at(message: Message, layout: Layout) -> bool:
    return message.counts_in_its_queue and (message.topic != HALF_TOPIC or layout.java_delays)
