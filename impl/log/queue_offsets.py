"""The queue offset table: the number of the next message of each queue.

Guarded by the put lock. One table serves all queues, light or not: a queue used both as a topic and as a name in
INNER_MULTI_DISPATCH is counted once. The table is rebuilt at open from the records that recovery kept, and from the
queues, some of which may have outlived their records. Source: `CommitLog.topicQueueTable`, `lmqTopicQueueTable`,
`recoverTopicQueueTable`, docs/statuses.md, "What a put changes about a message".
"""

from collections.abc import Iterable

from tornpage.impl.message.dispatching import UNIT_BYTES, QueueRun
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey

__all__ = ["QueueOffsetTable"]


class QueueOffsetTable:
    """The next queue offset by (topic bytes, queue id), and the set of light queues."""

    def __init__(self, dispatch: MultiDispatch | None) -> None:
        self._dispatch = dispatch
        self._next: dict[QueueKey, int] = {}
        self.light_queues: set[QueueKey] = set()

    def next_offset(self, key: QueueKey) -> int:
        """Return the offset of the next message of a queue."""
        return self._next.get(key, 0)

    def advance(self, key: QueueKey, next_offset: int) -> None:
        """Record that a message was appended; an assigned offset is never assigned again."""
        self._next[key] = next_offset

    def learn(self, run: QueueRun) -> None:
        """Record the units that records of the log gave to a queue."""
        self.learn_maximum(run.key, run.queue_offset + len(run.units) // UNIT_BYTES)
        if run.named:
            self.learn_named(run.key)

    def learn_named(self, key: QueueKey) -> None:
        """Record that a record names a queue."""
        if self._dispatch is not None and self._dispatch.is_light(key):
            self.light_queues.add(key)

    def learn_maximum(self, key: QueueKey, next_offset: int) -> None:
        """Record that a queue has or had messages below an offset."""
        if next_offset > self._next.get(key, 0):
            self._next[key] = next_offset

    def known(self) -> list[QueueKey]:
        """Return the queues that had a message."""
        return list(self._next)

    def forget(self, keys: Iterable[QueueKey]) -> None:
        """Restart deleted queues at 0."""
        for key in list(keys):
            self._next.pop(key, None)
            self.light_queues.discard(key)
