"""Changes to a message before it is encoded: a delayed message goes to the schedule topic.

Source: docs/statuses.md, "What a put changes about a message"; `CommitLog.asyncPutMessage`.
"""

from dataclasses import replace

from tornpage.impl.message.codec import has_consume_queue
from tornpage.impl.message.delay_levels import HALF_TOPIC, SCHEDULE_TOPIC, DelayLevels, delay_level_of, queue_of_level
from tornpage.impl.message.encoder import topic_bytes
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.message.properties_text import format_pairs, parse_pairs

__all__ = ["delayed"]


def delayed(message: Message, text: str, levels: DelayLevels) -> Message | PutStatus:
    """Return the message as it goes into the log, or the status that refuses it.

    `text` is its properties string. A half message is never delayed, since it would be delivered outside its
    transaction (RMQ-B65). In the schedule topic RocketMQ parses DELAY of every message as a number, and takes a record
    for torn if it is none.
    """
    if "DELAY\x01" not in text:
        return message
    waits = has_consume_queue(message.sys_flag) and message.topic != HALF_TOPIC
    if not waits and message.topic != SCHEDULE_TOPIC:
        return message
    pairs = parse_pairs(text)
    level = delay_level_of(pairs.get("DELAY"))
    if level is None or topic_bytes(message.topic) is None:
        return PutStatus.MESSAGE_ILLEGAL
    if level <= 0 or not waits:
        return message
    if message.topic == SCHEDULE_TOPIC:
        return PutStatus.MESSAGE_ILLEGAL
    if level > levels.highest:
        level = levels.highest
        pairs["DELAY"] = str(level)
    pairs["REAL_TOPIC"] = message.topic
    if 0 <= message.queue_id < 1 << 31:
        pairs["REAL_QID"] = str(message.queue_id)
        queue_id = queue_of_level(level)
    else:
        queue_id = -1  # an invalid id stays invalid; a later check refuses it
    return replace(message, topic=SCHEDULE_TOPIC, queue_id=queue_id, properties=format_pairs(pairs))
