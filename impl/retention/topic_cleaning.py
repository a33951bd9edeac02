"""Deletion of topics and queues on request.

Queues and the queue offset table change, the log does not. Source: `DefaultMessageStore.cleanUnusedTopic`,
`cleanExpiredConsumerQueue`, `cleanUnusedLmqTopic`.
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

__all__ = ["KEPT_TOPICS", "LIGHT_PREFIX", "RestartNumbers", "TopicCleaning"]

KEPT_TOPICS = frozenset((SCHEDULE_TOPIC.encode(), b"RMQ_SYS_TRANS_OP_HALF_TOPIC"))
"""Topics that are never deleted (RMQ-B55 omits the second one)."""

LIGHT_PREFIX = b"%LMQ%"

RestartNumbers = Callable[[Callable[[str, int], bool]], AbstractContextManager[Callable[[], object]]]
"""Forgets the progress in the queues that a function of topic and queue id selects, once the yielded one is called."""


class TopicCleaning:
    """The deletion requests of one store.

    `without_dispatch` keeps dispatch out, `without_puts` keeps puts out. `restart_numbers` resets the progress of
    consumers in queues whose numbers restart at 0.

    All methods raise OSError if a removal fails; earlier removals stay.
    """

    kept_topics = KEPT_TOPICS

    def __init__(
        self,
        log: MappedFileQueue,
        queues: ConsumeQueues,
        table: QueueOffsetTable,
        deleted: DeletedTopics,
        *,
        without_dispatch: Callable[[], AbstractContextManager[object]],
        without_puts: Callable[[Callable[[], None]], None],
        restart_numbers: RestartNumbers,
    ) -> None:
        self._log = log
        self._queues = queues
        self._table = table
        self._deleted = deleted
        self._without_dispatch = without_dispatch
        self._without_puts = without_puts
        self._restart_numbers = restart_numbers

    def clean_unused_topics(self, in_use: Collection[bytes]) -> list[bytes]:
        """Delete all topics except those in use, those of the store and light queues.

        Return the deleted ones.
        """
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
                forgotten = until_removed.enter_context(
                    self._restart_numbers(lambda topic, _: _bytes_of(topic) in topics)
                )
                self._deleted.add(topics, self._log.max_offset)  # their numbers restart from here on
                self._table.forget(key for key in self._table.known() if key[0] in topics)
                forgotten()

        with self._without_dispatch(), ExitStack() as until_removed:
            self._without_puts(forget)
            self._remove([queue for queue in self._queues.all() if queue.key[0] in topics])
        return topics

    def _remove(self, queues: Sequence[ConsumeQueue]) -> None:
        """Remove all of these queues. An OSError is raised only after all of them are unknown."""
        with ExitStack() as removals:  # continues after a failed removal
            for queue in reversed(queues):
                removals.callback(self._queues.remove, queue)

    def _keys(self) -> Iterable[QueueKey]:
        return {*self._table.known(), *(queue.key for queue in self._queues.all())}

    def clean_expired_consume_queues(self) -> list[QueueKey]:
        """Delete each queue whose records have all expired, except delayed ones.

        Return the deleted ones. A queue with messages that are not dispatched yet stays. Numbers restart at 0, as in
        RocketMQ.
        """
        expired: list[ConsumeQueue] = []

        def forget() -> None:
            expired.extend(filter(self._is_expired, self._queues.all()))
            if expired:
                keys = {queue.key for queue in expired}
                forgotten = until_removed.enter_context(
                    self._restart_numbers(lambda topic, queue_id: (_bytes_of(topic), queue_id) in keys)
                )
                self._table.forget(keys)
                forgotten()

        with self._without_dispatch(), ExitStack() as until_removed:
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
