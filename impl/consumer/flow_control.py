"""How much of a queue a client caches.

RocketMQ compares with "greater than" and counts whole MiB before it pulls 32 messages more. Here the limits are exact:
a pull asks for what fits, and messages that do not fit are pulled again later. One message is always accepted into an
empty cache. Source: `DefaultMQPushConsumerImpl.pullMessage`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.impl.consumer.messages import ConsumerMessage
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.settings import ConsumerSettings

__all__ = ["FlowControl", "flow_control_of"]

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FlowControl:
    """The limits of one queue. `max_span` None sets no limit to the difference of two offsets."""

    count: int
    size_bytes: int
    max_span: int | None

    def room(self, queue: ProcessQueue, next_offset: int) -> int:
        """Return how many messages may be asked for from an offset on; 0 pauses the pull."""
        first = queue.msg_tree_map.first if queue.msg_tree_map else next_offset
        is_far = self.max_span is not None and next_offset - first > self.max_span
        return 0 if is_far or queue.msg_size >= self.size_bytes else max(0, self.count - queue.msg_count)

    def accepted(self, queue: ProcessQueue, messages: Sequence[ConsumerMessage]) -> int:
        """Return how many of the first of some pulled messages fit."""
        count, size_bytes = queue.msg_count, queue.msg_size
        first = queue.msg_tree_map.first if queue.msg_tree_map else None
        for number, message in enumerate(messages):
            first = message.queue_offset if first is None else first
            count, size_bytes = count + 1, size_bytes + len(message.body)
            is_far = self.max_span is not None and message.queue_offset - first > self.max_span
            if (count > self.count or size_bytes > self.size_bytes or is_far) and count > 1:
                return number
        return len(messages)


def flow_control_of(settings: ConsumerSettings, held_queues: int) -> FlowControl:
    """Return the limits of each queue of a client that holds some queues.

    The limits for a topic are divided by the number of all queues of the client, as in RocketMQ.
    """
    count, size_mib = settings.pull_threshold_for_queue, settings.pull_threshold_size_for_queue
    if held_queues and settings.pull_threshold_for_topic != -1:
        count = max(1, settings.pull_threshold_for_topic // held_queues)
    if held_queues and settings.pull_threshold_size_for_topic != -1:
        size_mib = max(1, settings.pull_threshold_size_for_topic // held_queues)
    max_span = None if settings.orderly else settings.consume_concurrently_max_span
    return FlowControl(count, size_mib * _MIB, max_span)
