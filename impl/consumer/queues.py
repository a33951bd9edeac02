"""The name of one queue of a topic at one broker. Source: `MessageQueue`."""

from typing import NamedTuple

__all__ = ["DLQ_PREFIX", "RETRY_PREFIX", "MessageQueue", "dead_letter_topic", "java_order", "retry_topic"]

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"


class MessageQueue(NamedTuple):
    """One queue.

    Tuples compare as `MessageQueue.compareTo` does: topic, broker name, queue id.
    """

    topic: str
    broker_name: str
    queue_id: int

    def java_text(self) -> str:
        """Return the text of `MessageQueue.toString`, which consistent hashing hashes."""
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"


def java_order(text: str) -> bytes:
    """Return a key that sorts texts as `String.compareTo` does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def retry_topic(group: str) -> str:
    """Return the topic of the messages that a group has to consume again."""
    return RETRY_PREFIX + group


def dead_letter_topic(group: str) -> str:
    """Return the topic of the messages that a group has failed to consume too often."""
    return DLQ_PREFIX + group
