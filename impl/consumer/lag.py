"""How far a group is from the end of its queues. Source: `ConsumeStats`."""

from dataclasses import dataclass

from tornpage.impl.consumer.queues import DLQ_PREFIX, MessageQueue
from tornpage.impl.store import MessageStore

__all__ = ["QueueLag", "dead_letters_of", "lag_of_group"]


@dataclass(frozen=True, slots=True)
class QueueLag:
    """The place of a group in one queue.

    `progress` is the offset of the first message that is not finished, None without stored progress. `cached` is the
    number of messages that a client holds.
    """

    max_offset: int
    progress: int | None
    cached: int = 0

    @property
    def diff(self) -> int:
        """The number of messages that are not finished (`diffTotal`).

        Without progress, all messages count.
        """
        return max(0, self.max_offset - (self.progress or 0))


def lag_of_group(store: MessageStore, group: str, *, broker_name: str = "broker-a") -> dict[MessageQueue, QueueLag]:
    """Return the lag of a group in each queue of the topics in which it has progress."""
    lags: dict[MessageQueue, QueueLag] = {}
    topics = set(store.topics_of_group(group))
    for topic, queue_id in store.queues():
        if topic in topics:
            progress = store.consumer_offsets(topic)[group].get(queue_id)
            queue = MessageQueue(topic, broker_name, queue_id)
            lags[queue] = QueueLag(store.max_offset_in_queue(topic, queue_id), progress)
    return lags


def dead_letters_of(store: MessageStore, group: str) -> int:
    """Return how many dead letters of a group are stored.

    No member of the group consumes them.
    """
    return store.message_total_in_queue(DLQ_PREFIX + group, 0)
