"""Deleting topics and queues on request: from the queues and from the table of queue offsets, never from the log.

Source: `DefaultMessageStore.cleanUnusedTopic`, `cleanExpiredConsumerQueue`, `cleanUnusedLmqTopic`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack

from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queues import ConsumeQueues

__all__ = ["KEPT_TOPICS", "LIGHT_PREFIX", "BeginAnew", "TopicCleaning"]

KEPT_TOPICS = frozenset((SCHEDULE_TOPIC.encode(), b"RMQ_SYS_TRANS_OP_HALF_TOPIC"))
"""Topics that no clean-up takes (RMQ-B55 forgot the second one)."""

LIGHT_PREFIX = b"%LMQ%"

BeginAnew = Callable[[Callable[[str, int], bool]], AbstractContextManager[Callable[[], object]]]
"""Forgets the progress in the queues that a function of topic and queue id names, once what it yields is called."""


class TopicCleaning:
    """The requests of one store. Nothing is dispatched inside of `alone`, and no message put inside of `without_puts`.

    Inside of `begin_anew` consumers forget how far they are in queues whose numbers begin at 0 again.

    All of them raise OSError when the disk refuses; what was deleted by then stays deleted.
    """

    kept_topics = KEPT_TOPICS

    def __init__(
        self,
        log: MappedFileQueue,
        queues: ConsumeQueues,
        table: QueueOffsetTable,
        deleted: DeletedTopics,
        *,
        alone: Callable[[], AbstractContextManager[object]],
        without_puts: Callable[[Callable[[], None]], None],
        begin_anew: BeginAnew,
    ) -> None:
        self._log = log
        self._queues = queues
        self._table = table
        self._deleted = deleted
        self._alone = alone
        self._without_puts = without_puts
        self._begin_anew = begin_anew

    def clean_unused_topics(self, in_use: Collection[bytes]) -> list[bytes]:
        """Delete all topics but those in use, those of the store itself, and light queues; return the deleted ones."""
        return self._delete(
            lambda topic: topic not in in_use and topic not in self.kept_topics and not topic.startswith(LIGHT_PREFIX)
        )

    def clean_unused_lmq_topic(self, name: bytes) -> bool:
        """Delete a light queue; return whether there was one of that name."""
        return bool(self._delete(lambda topic: topic == name and topic.startswith(LIGHT_PREFIX)))

    def _delete(self, is_unused: Callable[[bytes], bool]) -> list[bytes]:
        topics: list[bytes] = []

        def forget() -> None:
            topics.extend(sorted(filter(is_unused, {key[0] for key in self._keys()})))
            if topics:
                forgotten = until_removed.enter_context(self._begin_anew(lambda topic, _: _bytes_of(topic) in topics))
                self._deleted.add(topics, self._log.max_offset)  # from here on they begin anew
                self._table.forget(key for key in self._table.known() if key[0] in topics)
                forgotten()

        with self._alone(), ExitStack() as until_removed:
            self._without_puts(forget)
            self._remove([queue for queue in self._queues.all() if queue.key[0] in topics])
        return topics

    def _remove(self, queues: Sequence[ConsumeQueue]) -> None:
        """Remove all of these queues. Raises an OSError only once none of them is known any more."""
        with ExitStack() as removals:  # goes on behind one that is refused
            for queue in reversed(queues):
                removals.callback(self._queues.remove, queue)

    def _keys(self) -> Iterable[QueueKey]:
        return {*self._table.known(), *(queue.key for queue in self._queues.all())}

    def clean_expired_consume_queues(self) -> list[QueueKey]:
        """Delete each queue whose records have all expired, but for the delayed ones; return the deleted ones.

        A queue that waits for a message to be dispatched stays. Numbers begin at 0 again, as in RocketMQ.
        """
        expired: list[ConsumeQueue] = []

        def forget() -> None:
            expired.extend(filter(self._is_expired, self._queues.all()))
            if expired:
                keys = {queue.key for queue in expired}
                forgotten = until_removed.enter_context(
                    self._begin_anew(lambda topic, queue_id: (_bytes_of(topic), queue_id) in keys)
                )
                self._table.forget(keys)
                forgotten()

        with self._alone(), ExitStack() as until_removed:
            self._without_puts(forget)
            self._remove(expired)
        return sorted(queue.key for queue in expired)

    def _is_expired(self, queue: ConsumeQueue) -> bool:
        return (
            queue.key[0] != SCHEDULE_TOPIC.encode()
            and queue.max_offset == self._table.next_offset(queue.key)
            and 0 <= queue.last_end_offset <= self._log.min_offset
        )


def _bytes_of(topic: str) -> bytes:
    return topic.encode(errors="surrogateescape")
