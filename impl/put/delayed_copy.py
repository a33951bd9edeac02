"""The copy of a delayed message for its consumers.

Source: `ScheduleMessageService.messageTimeup`. RocketMQ formats the properties string before it removes DELAY from the
map and adds WAIT=false, so string and map differ. Here both are removed from the string, and the map is parsed from it;
delivery never waits anyway.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from tornpage.impl.message.delay_levels import HALF_TOPIC, SCHEDULE_TOPIC, delay_level_of
from tornpage.impl.message.encoder import topic_bytes
from tornpage.impl.message.message import Message, PutStatus, StoredMessage
from tornpage.impl.message.multi_dispatch import OFFSET_MAX, MultiDispatch
from tornpage.impl.message.properties_text import format_pairs, parse_pairs, text_of

__all__ = ["as_stored", "copy_of", "refusal_of_copy"]

_QUEUE_ID = re.compile("[0-9]{1,10}", re.ASCII)
_INT32_MAX = 2**31 - 1


def as_stored(record: StoredMessage) -> Message:
    """Return a message of the schedule topic as it was stored."""
    return Message(
        topic=record.topic,
        body=record.body,
        queue_id=record.queue_id,
        properties=format_pairs(record.properties),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
    )


def copy_of(stored: Message) -> Message | str:
    """Return the copy of a message of the schedule topic, or why it cannot be delivered.

    A message for the half topic would appear there outside of its transaction (RMQ-B65).
    """
    pairs = parse_pairs(text_of(stored.properties) or "")
    if (delay_level_of(pairs.pop("DELAY", None)) or 0) <= 0:
        return "it has no delay level"
    pairs.pop("WAIT", None)
    topic, queue_id = pairs.get("REAL_TOPIC", ""), pairs.get("REAL_QID", "")
    if topic_bytes(topic) is None or topic == SCHEDULE_TOPIC:
        return f"its topic {topic!r} is invalid"
    if topic == HALF_TOPIC:
        return "it belongs to a transaction"
    if _QUEUE_ID.fullmatch(queue_id) is None or int(queue_id) > _INT32_MAX:
        return f"its queue id {queue_id!r} is invalid"
    return replace(
        stored,
        topic=topic,
        queue_id=int(queue_id),
        properties=format_pairs(pairs),
        prepared_transaction_offset=0,
    )


def refusal_of_copy(
    given: Message,
    stored: Message,
    *,
    dispatch: MultiDispatch | None,
    encode: Callable[[Message], bytearray | PutStatus],
) -> PutStatus | None:
    """Return the status that refuses a message whose copy could not be stored, or None.

    The check assumes the greatest queue offsets. RocketMQ accepts such a message, and its delivery blocks once it is
    due (RMQ-B22).
    """
    copy = copy_of(stored)
    if isinstance(copy, str) or copy.topic != given.topic:
        return PutStatus.MESSAGE_ILLEGAL
    text = text_of(copy.properties) or ""
    queues = () if dispatch is None else dispatch.queues_of(copy.topic, copy.queue_id, text)
    if dispatch is not None and queues:
        copy = replace(copy, properties=dispatch.with_offsets(text, [OFFSET_MAX] * len(queues)))
    encoded = encode(copy)
    if not isinstance(encoded, bytearray):
        return encoded
    are_queues = all(topic_bytes(name.decode(errors="replace")) is not None for name, _ in queues)
    return None if are_queues else PutStatus.MESSAGE_ILLEGAL
