"""The service that flushes consume queues, then the checkpoint.

Source: `DefaultMessageStore.FlushConsumeQueueService`.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from tornpage.impl.config.policy import QueueFlushPolicy
from tornpage.impl.io.checkpoint import Checkpoint

__all__ = ["FlushConsumeQueues", "Flushable", "RaisesFloor"]


class Flushable(Protocol):
    """Files that can be flushed by a page rule."""

    def flush(self, least_pages: int = 0) -> int:
        """Flush if at least `least_pages` pages of 4 KiB are unflushed; 0 flushes everything.

        Raises OSError.
        """


class RaisesFloor(Protocol):
    """The part that raises the derived floor."""

    def sample(self) -> None:
        """Record the progress of dispatch before a thorough round."""

    def raise_floor(self) -> None:
        """Write the sampled floor once the log is durable that far."""


class FlushConsumeQueues:
    """Flushes what `queues` yields.

    After a thorough round it writes the checkpoint; the first round is thorough. `dispatched` returns the newest store
    time in queues and index, in milliseconds. The checkpoint gets the value from before the round, because only that
    much is durable after it. The derived floor rises once the log is durable that far.
    """

    name = "flush-queues"

    def __init__(
        self,
        policy: QueueFlushPolicy,
        checkpoint: Checkpoint,
        queues: Callable[[], Iterable[Flushable]],
        *,
        dispatched: Callable[[], int],
        floor: RaisesFloor,
    ) -> None:
        self._policy = policy
        self._checkpoint = checkpoint
        self._queues = queues
        self._dispatched = dispatched
        self._floor = floor
        self._thorough_ms: int | None = None

    def step(self, now_ms: int) -> int:
        """Flush one round; return when the next is due, in milliseconds.

        Raises OSError, and the checkpoint then stays.
        """
        least_pages = self._least_pages(now_ms)
        if least_pages == 0:
            self._floor.sample()
        dispatched_timestamp = self._dispatched()
        for queue in self._queues():
            queue.flush(least_pages)
        if least_pages == 0:
            self._checkpoint.note_dispatched(dispatched_timestamp)
            self._checkpoint.flush()
            self._thorough_ms = now_ms  # last, so that a failed round is repeated
        self._floor.raise_floor()
        return now_ms + self._policy.flush_interval_consume_queue

    def _least_pages(self, now_ms: int) -> int:
        if self._thorough_ms is None:
            return 0
        return self._policy.least_pages(since_thorough_ms=now_ms - self._thorough_ms)
