"""The queue offset table: which number the next message of each queue gets. Guarded by the put lock.

One table for all queues, light or not: a queue that is fed as a topic and as a name in INNER_MULTI_DISPATCH counts
once. It is made anew at open from the records that recovery kept. Source: `CommitLog.topicQueueTable`,
`lmqTopicQueueTable`, docs/statuses.md, "What a put changes about a message".
"""

from impl.codec import has_consume_queue, properties_of_record, queue_of_record, record_mentions
from impl.multi_dispatch import NOTED_OFFSETS, MultiDispatch, QueueKey, offsets_in

__all__ = ["QueueOffsetTable"]


class QueueOffsetTable:
    """Next queue offset by (topic bytes, queue id), and the light queues there are."""

    def __init__(self, dispatch: MultiDispatch | None) -> None:
        self._dispatch = dispatch
        self._next: dict[QueueKey, int] = {}
        self.light_queues: set[QueueKey] = set()

    def next_offset(self, key: QueueKey) -> int:
        """Return the offset of the next message of a queue."""
        return self._next.get(key, 0)

    def advance(self, key: QueueKey, next_offset: int) -> None:
        """Say that a message was appended; an offset once given is never given again."""
        self._next[key] = next_offset

    def learn(self, view: memoryview, position: int) -> None:
        """Take in the valid record at `position` of a file, in log order."""
        topic, queue_id, queue_offset, sys_flag = queue_of_record(view, position)
        if not has_consume_queue(sys_flag):
            return
        key = (topic, queue_id)
        if queue_offset >= self._next.get(key, 0):
            self._next[key] = queue_offset + 1
        if self._dispatch is not None and record_mentions(view, position, NOTED_OFFSETS):
            self._learn_dispatch(self._dispatch, topic, queue_id, properties_of_record(view, position))

    def _learn_dispatch(self, dispatch: MultiDispatch, topic: bytes, queue_id: int, text: str) -> None:
        queues = dispatch.queues_of(topic.decode(errors="replace"), queue_id, text)
        offsets = offsets_in(text) if queues else ()
        if len(offsets) == len(queues):  # else the offsets are none that a store gave
            for key, offset in zip(queues, offsets, strict=True):
                if offset >= self._next.get(key, 0):
                    self._next[key] = offset + 1
            self.light_queues.update(filter(dispatch.is_light, queues))
