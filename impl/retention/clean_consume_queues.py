"""Queues and index follow the log once its head is gone: their minimum first, then their files.

The files of a queue go from the first one on while the record of their last unit lies in front of the log; the files of
the index while their last entry does. The last file of each stays: it knows the next number. So does one in front of it
while the records behind are not durable, for then it may be the last again. What is read in between is answered by the
records, which are not there. A file in front of one that goes may come back with a power loss; whoever opens the store
removes it then. Source: `DefaultMessageStore.CleanConsumeQueueService`.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager

from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.log.mapped_file_queue import MappedFileQueue

__all__ = ["CleanConsumeQueues"]


class CleanConsumeQueues:
    """Follows one log. `oldest_offset` is where it begins on the disk; nothing is dispatched inside of `alone`.

    The dispatcher appends to a queue without a lock on its files (RMQ-B40 is a unit written into one that is gone).
    """

    def __init__(
        self,
        derived: Derived,
        log: MappedFileQueue,
        *,
        policy: RetentionPolicy,
        oldest_offset: Callable[[], int],
        alone: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._derived = derived
        self._log = log
        self._policy = policy
        self._oldest_offset = oldest_offset
        self._alone = alone
        self._followed = (0, 0)

    def follow(self) -> Generator[int, int, None]:
        """Bring queues and index to where the log begins; yield how many ms to pause in between. Raises OSError."""
        bounds = self._log.min_offset, self._oldest_offset()
        if bounds == self._followed:
            return
        min_offset, oldest_offset = bounds
        somebody_waits = False
        for queue in self._derived.queues.all():
            with self._alone():
                queue.correct_min_offset(min_offset)
                dropped, waits = queue.drop_expired(oldest_offset, self._log.flushed_where)
            somebody_waits |= waits
            if dropped:
                yield self._policy.delete_consume_queue_files_interval
        if self._derived.index is not None:
            with self._alone():
                self._derived.index.drop_expired(oldest_offset)
        if not somebody_waits:
            self._followed = bounds
