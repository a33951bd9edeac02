"""The queue offset table: which number the next message of each queue gets. Guarded by the put lock.

One table for all queues, light or not: a queue that is fed as a topic and as a name in INNER_MULTI_DISPATCH counts
once. It is made anew at open from what the dispatcher says of the records that recovery kept, and from the queues, of
which some may have outlived their records. Source: `CommitLog.topicQueueTable`, `lmqTopicQueueTable`,
`recoverTopicQueueTable`, docs/statuses.md, "What a put changes about a message".
"""

from collections.abc import Iterable

from tornpage.impl.message.dispatching import UNIT_BYTES, QueueRun
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey

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

    def learn(self, run: QueueRun) -> None:
        """Take in what records of the log gave to a queue."""
        self.learn_maximum(run.key, run.queue_offset + len(run.units) // UNIT_BYTES)
        if run.named:
            self.learn_named(run.key)

    def learn_named(self, key: QueueKey) -> None:
        """Take in that a record names a queue."""
        if self._dispatch is not None and self._dispatch.is_light(key):
            self.light_queues.add(key)

    def learn_maximum(self, key: QueueKey, next_offset: int) -> None:
        """Take in that a queue has, or had, messages below an offset."""
        if next_offset > self._next.get(key, 0):
            self._next[key] = next_offset

    def known(self) -> list[QueueKey]:
        """Return the queues that had a message."""
        return list(self._next)

    def forget(self, keys: Iterable[QueueKey]) -> None:
        """Let queues begin at 0 again: they were deleted."""
        for key in list(keys):
            self._next.pop(key, None)
            self.light_queues.discard(key)
