"""Deleting files of queues and index after the head of the log was deleted.

The minimum of each queue is raised first. Files of a queue are deleted from the first one on while the record of their
last unit has expired, files of the index while their last entry has. The last file of each stays, since it holds the
next number. The file before it stays too while later records are not durable, since it may become the last one again.
Reads in between find units without records. A power loss may restore a file before a deleted one; the next open removes
it. Source: `DefaultMessageStore.CleanConsumeQueueService`.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager

from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.log.mapped_file_queue import MappedFileQueue

__all__ = ["CleanConsumeQueues"]


class CleanConsumeQueues:
    """Follows one log.

    `oldest_offset` returns its first offset on disk; `without_dispatch` keeps dispatch out. The dispatcher appends to a
    queue without a lock on its files (in RMQ-B40 a unit is written into a deleted file).
    """

    def __init__(
        self,
        derived: Derived,
        log: MappedFileQueue,
        *,
        policy: RetentionPolicy,
        oldest_offset: Callable[[], int],
        without_dispatch: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._derived = derived
        self._log = log
        self._policy = policy
        self._oldest_offset = oldest_offset
        self._without_dispatch = without_dispatch
        self._followed = (0, 0)

    def follow(self) -> Generator[int, int, None]:
        """Delete what the log no longer holds; yield pauses in milliseconds in between.

        Raises OSError.
        """
        bounds = self._log.min_offset, self._oldest_offset()
        if bounds == self._followed:
            return
        min_offset, oldest_offset = bounds
        files_wait = False
        for queue in self._derived.queues.all():
            with self._without_dispatch():
                queue.correct_min_offset(min_offset)
                dropped, waits = queue.drop_expired(oldest_offset, self._log.flushed_where)
            files_wait |= waits
            if dropped:
                yield self._policy.delete_consume_queue_files_interval
        if self._derived.index is not None:
            with self._without_dispatch():
                self._derived.index.drop_expired(oldest_offset)
        if not files_wait:
            self._followed = bounds
