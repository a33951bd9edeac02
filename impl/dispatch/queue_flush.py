"""Consume queues to the disk, the checkpoint behind them. Source: `DefaultMessageStore.FlushConsumeQueueService`."""

from collections.abc import Callable, Iterable
from typing import Protocol

from tornpage.impl.config.policy import QueueFlushPolicy
from tornpage.impl.io.checkpoint import Checkpoint

__all__ = ["FlushConsumeQueues", "Flushable", "RaisesFloor"]


class Flushable(Protocol):
    """Files that can be made durable as far as they are worth it."""

    def flush(self, least_pages: int = 0) -> int:
        """Flush by a page rule. Raises OSError."""


class RaisesFloor(Protocol):
    """Who says how far queues and index are durable."""

    def sample(self) -> None:
        """Remember how far dispatch has come: before a thorough round."""

    def raise_floor(self) -> None:
        """Say that this much is durable, once the log is too."""


class FlushConsumeQueues:
    """Flushes what `queues` yields; a thorough round, as the first one is, then writes the checkpoint.

    `dispatched` says the newest store timestamp in the queues and in the index, in milliseconds. The checkpoint may say
    of them only what was dispatched before the round began. The derived floor rises once the log is durable as far.
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
        """Flush one round. Raises OSError, and leaves the checkpoint as it is then."""
        least_pages = self._least_pages(now_ms)
        if least_pages == 0:
            self._floor.sample()
        dispatched_timestamp = self._dispatched()
        for queue in self._queues():
            queue.flush(least_pages)
        if least_pages == 0:
            self._checkpoint.note_dispatched(dispatched_timestamp)
            self._checkpoint.flush()
            self._thorough_ms = now_ms  # last: a round that fails is tried again as it was
        self._floor.raise_floor()
        return now_ms + self._policy.flush_interval_consume_queue

    def _least_pages(self, now_ms: int) -> int:
        if self._thorough_ms is None:
            return 0
        return self._policy.least_pages(since_thorough_ms=now_ms - self._thorough_ms)
