"""The public verbs that delete: expired files before their hour, topics, queues. What they answer: docs/statuses.md.

Each of them raises StoreClosed after `close()`, ForkedStore in a forked child, and OSError when the disk refuses.
Source: `MessageStore`.
"""

from collections.abc import Collection

from tornpage.impl.retention.retention import Retention
from tornpage.impl.service.lifecycle import Lifecycle

__all__ = ["RetentionVerbs"]


class RetentionVerbs:
    """A base class of the store."""

    _lifecycle: Lifecycle
    _retention: Retention

    def delete_expired_files_manually(self) -> None:
        """Have expired files deleted at once: the next 20 runs wait for no hour (`executeDeleteFilesManually`)."""
        self._lifecycle.require_open()
        self._retention.delete_manually()

    def clean_unused_topics(self, topics_in_use: Collection[str]) -> tuple[str, ...]:
        """Delete the queues of all other topics, and return their names; a deleted topic begins at number 0 again.

        SCHEDULE_TOPIC_XXXX, RMQ_SYS_TRANS_OP_HALF_TOPIC and light queues stay. The messages stay in the log, and can be
        read by place and key, until they expire. Raises OSError: nothing has changed where the disk refuses to remember
        it, but for a crash that may find it; files that it refuses to remove go later. Source: `cleanUnusedTopic`.
        """
        self._lifecycle.require_open()
        in_use = {topic.encode(errors="surrogateescape") for topic in topics_in_use}
        deleted = self._retention.on_request(lambda cleaning: cleaning.clean_unused_topics(in_use))
        return tuple(topic.decode(errors="surrogateescape") for topic in deleted)

    def clean_unused_lmq_topic(self, topic: str) -> bool:
        """Delete a light queue; return whether there was one. Source: `cleanUnusedLmqTopic`."""
        self._lifecycle.require_open()
        name = topic.encode(errors="surrogateescape")
        return bool(self._retention.on_request(lambda cleaning: [name] * cleaning.clean_unused_lmq_topic(name)))

    def clean_expired_consume_queues(self) -> tuple[tuple[str, int], ...]:
        """Delete each queue whose messages have all expired, and return topic and queue id of them.

        Their numbers begin at 0 again. Source: `cleanExpiredConsumerQueue`.
        """
        self._lifecycle.require_open()
        deleted = self._retention.on_request(lambda cleaning: cleaning.clean_expired_consume_queues())
        return tuple((topic.decode(errors="surrogateescape"), queue_id) for topic, queue_id in deleted)
