"""The offsets of consumer groups, and the number of messages they have still to read.

Each method raises StoreClosed after `close()` and ForkedStore in a forked child. Commits are saved every
`flush_consumer_offset_interval` ms and by `close()`. Source: `ConsumerOffsetManager`, `ConsumerManageProcessor`.
"""

from collections.abc import Collection

from tornpage.impl.errors import BadProgress, ReadOnlyStore
from tornpage.impl.groups.consumer_offsets import OFFSET_MAX, SEPARATOR
from tornpage.impl.groups.progress import Progress
from tornpage.impl.read.read_path import ReadPath
from tornpage.impl.service.lifecycle import Lifecycle

__all__ = ["GroupOffsets"]

_QUEUE_ID_MAX = (1 << 31) - 1


class GroupOffsets:
    """The offsets of the consumer groups of one store.

    `reads` provides the ranges of its queues.
    """

    def __init__(self, progress: Progress, reads: ReadPath, lifecycle: Lifecycle) -> None:
        self._progress = progress
        self._reads = reads
        self._lifecycle = lifecycle

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Record the next queue offset that a group will read; return the recorded offset.

        It may be lower than before. An offset past the end of the queue is lowered to that end. Raises BadProgress if
        the state file cannot hold the names or the offset.
        """
        self._require_storable(group, topic, queue_id, offset)
        return self._progress.offsets.commit(group, topic, queue_id, offset, range_of=self._range_of)

    def raise_offset(self, stored: int, group: str, topic: str, queue_id: int, offset: int) -> int | None:
        """Record the next offset of a group in place of `stored`; return what is recorded.

        Return None and change nothing if `stored` is not the recorded offset. Otherwise as `commit_offset`.
        """
        self._require_storable(group, topic, queue_id, offset)
        return self._progress.offsets.raise_from(stored, group, topic, queue_id, offset, range_of=self._range_of)

    def _require_storable(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self._lifecycle.require_open()
        _require_names(group=group, topic=topic)
        for what, number, greatest in (("queue id", queue_id, _QUEUE_ID_MAX), ("offset", offset, OFFSET_MAX)):
            if not 0 <= number <= greatest:
                raise BadProgress(what, number, f"use 0 to {greatest:,}")

    def save_offsets(self) -> None:
        """Make all commits so far durable.

        Raises OSError, and ReadOnlyStore if the store is read-only.
        """
        self._lifecycle.require_open()
        if self._lifecycle.read_only_reason is not None:
            raise ReadOnlyStore(self._lifecycle.directory, self._lifecycle.read_only_reason)
        self._progress.offsets.save()

    def query_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the next queue offset that a group will read in a queue.

        None lets the client decide (`QUERY_NOT_FOUND`). For a group without a commit, a queue that still has its first
        message in memory returns 0, as in RocketMQ.
        """
        self._lifecycle.require_open()
        known = self._progress.offsets.query(group, topic, queue_id)
        if known is not None:
            return known
        begins_at = self._range_of(topic, queue_id)[0]
        with self._reads:
            is_old = self._reads.queues.is_in_disk(topic, queue_id, 0)
        return 0 if begins_at <= 0 and not is_old else None

    def consumer_offsets(self, topic: str) -> dict[str, dict[int, int]]:
        """Return the committed queue offsets of each group in a topic, by queue id."""
        self._lifecycle.require_open()
        return self._progress.offsets.of_topic(topic)

    def topics_of_group(self, group: str) -> list[str]:
        """Return the topics in which a group has committed an offset.

        Source: `whichTopicByConsumer`.
        """
        self._lifecycle.require_open()
        return self._progress.offsets.topics_of(group)

    def diff_total(self, group: str, topic: str) -> int:
        """Return how many messages of a topic a group has still to read, over all its queues.

        A queue without a commit counts from 0. Source: `ConsumeStats.computeTotalDiff`.
        """
        self._lifecycle.require_open()
        committed = self._progress.offsets.of_topic(topic).get(group, {})
        with self._reads:
            queue_ids = {queue_id for name, queue_id in self._reads.queues.names() if name == topic}
        return sum(self._range_of(topic, queue_id)[1] - committed.get(queue_id, 0) for queue_id in queue_ids)

    def query_min_offset_in_all_group(self, topic: str, without: Collection[str] = ()) -> dict[int, int]:
        """Return by queue id the lowest committed offset of all groups that is still readable.

        The groups in `without` are left out; RocketMQ deletes their commits.
        """
        self._lifecycle.require_open()
        return self._progress.offsets.least(topic, without, range_of=self._range_of)

    def clone_offset(self, source_group: str, target_group: str, topic: str) -> None:
        """Copy the offsets of a group in a topic to another group. Raises BadProgress.

        Source: `cloneOffset`.
        """
        self._lifecycle.require_open()
        _require_names(group=target_group, topic=topic)
        self._progress.offsets.clone(source_group, target_group, topic)

    def scan_unsubscribed_topic(self, subscribed: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
        """Remove the offsets of groups that no longer subscribe.

        Returns the removed pairs (topic, group). A group is removed in a topic if (topic, group) is not in `subscribed`
        and none of its offsets lies past the minimum of its queue.
        """
        self._lifecycle.require_open()
        return self._progress.offsets.remove_if(
            lambda key, offsets: (
                key not in subscribed
                and bool(offsets)
                and all(offset <= self._range_of(key[0], queue_id)[0] for queue_id, offset in offsets.items())
            )
        )

    def _range_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        with self._reads:
            return self._reads.queues.range_of(topic, queue_id)


def _require_names(**names: str) -> None:
    for what, name in names.items():
        if not name or SEPARATOR in name:
            raise BadProgress(what, name, f"use a name without {SEPARATOR!r}")
