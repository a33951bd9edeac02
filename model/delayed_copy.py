"""The copy of a delayed message: what its consumers will get, and why a message is refused for it.

1. The copy goes to the topic and queue of REAL_TOPIC and REAL_QID. It is the message as stored, without DELAY and WAIT,
   and without an offset of a transaction. Its properties are made anew from their pairs.
2. A message without a level above 0, or whose topic or queue is none, or is the schedule topic or the half topic, has
   no copy.
3. A delayed message is refused if its copy would be, however high the queue offsets are that the copy gets by then in
   the queues it names; or if it would go to another topic.

Source: docs/statuses.md, "delivery of delayed messages" (`ScheduleMessageService.messageTimeup`).
"""

import re
from dataclasses import replace

from tornpage.model import refusal as refusals
from tornpage.model.delay import HALF_TOPIC, SCHEDULE_TOPIC, level_of
from tornpage.model.dispatch import OFFSETS, named_queues
from tornpage.model.message import Message, PutStatus
from tornpage.model.properties import changed, property_of
from tornpage.model.refusal import is_topic
from tornpage.model.state import Layout

__all__ = ["copy_of", "refusal"]

LONGEST_OFFSET = "9" * 18


def copy_of(stored: Message) -> Message | None:
    """Return the copy of a message in the schedule topic, None if it has none."""
    topic, queue_id = property_of(stored.properties, "REAL_TOPIC"), property_of(stored.properties, "REAL_QID")
    if (level_of(stored.properties) or 0) <= 0 or topic is None or queue_id is None:
        return None
    if not is_topic(topic) or topic in (SCHEDULE_TOPIC, HALF_TOPIC):
        return None
    if not re.fullmatch("[0-9]{1,10}", queue_id) or int(queue_id) >= 2**31:
        return None
    properties = changed(changed(stored.properties, {}, less="DELAY"), {}, less="WAIT")
    return replace(stored, topic=topic, queue_id=int(queue_id), properties=properties, prepared_transaction_offset=0)


def refusal(given: Message, stored: Message, *, layout: Layout) -> PutStatus | None:
    """Return why a message that would be stored so is refused for its copy, or None."""
    if layout.java_delays or stored.topic != SCHEDULE_TOPIC or given.topic == SCHEDULE_TOPIC:
        return None
    copy = copy_of(stored)
    if copy is None or copy.topic != given.topic:
        return PutStatus.MESSAGE_ILLEGAL
    names = [name for name, _ in named_queues(copy, layout=layout)]
    longest = changed(copy.properties, {OFFSETS: ",".join([LONGEST_OFFSET] * len(names))}) if names else copy.properties
    refused = refusals.as_stored(copy, replace(copy, properties=longest), layout=layout)
    if refused is None and not all(map(is_topic, names)):
        return PutStatus.MESSAGE_ILLEGAL
    return refused
