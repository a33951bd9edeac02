"""A push consumer: one member of a group."""

from collections.abc import Mapping

from tornpage.impl.consumer.connection import Connection
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, OrderlyStatus
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.io.files import Files
from tornpage.impl.parts import Parts

__all__ = ["PushConsumer"]


class PushConsumer:
    """One member of a consumer group.

    The caller steps it and runs the listener: `step` sends requests and takes answers, `take` returns a batch to
    consume, and `finish` gives the result. No method blocks. Calls are serialised by the caller.
    `impl.consumer.running.RunningConsumer` does all of this with threads.

    `connections` has one connection for each broker name. Broadcasting needs `files` and `directory`, where the
    progress is stored. `incarnation` is unique for each process; None draws a random one. All times are milliseconds of
    one monotonic clock.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        connections: Mapping[str, Connection],
        *,
        files: Files | None = None,
        directory: str = "",
        incarnation: str | None = None,
        parts: Parts | None = None,
    ) -> None:
        raise NotImplementedError

    def subscribe(self, topic: str, expression: str = "*", *, kind: str = "TAG") -> None:
        """Consume the messages of a topic that an expression selects."""
        raise NotImplementedError

    def unsubscribe(self, topic: str) -> None:
        """Hand over the queues of a topic, and consume it no longer."""
        raise NotImplementedError

    def step(self, now_ms: int) -> int:
        """Do one round of all parts; return when the next one is due."""
        raise NotImplementedError

    def take(self, now_ms: int) -> Batch | None:
        """Return the next batch for the listener, None if no message waits."""
        raise NotImplementedError

    def finish(
        self,
        batch: Batch,
        status: ConcurrentStatus | OrderlyStatus | None,
        now_ms: int,
        *,
        ack_index: int | None = None,
        delay_level: int = 0,
        suspend_ms: int | None = None,
        auto_commit: bool = True,
    ) -> None:
        """Take the result of a listener for a batch of `take`. None is a failure.

        Concurrent: messages up to `ack_index` have succeeded, all if it is None; the others are sent back with
        `delay_level`. Orderly: after a failure the queue pauses for `suspend_ms`.
        """
        raise NotImplementedError

    def suspend(self) -> None:
        """Pause: pull and take nothing more."""
        raise NotImplementedError

    def resume(self) -> None:
        """End a pause."""
        raise NotImplementedError

    def shutdown(self, now_ms: int) -> None:
        """Begin to leave the group. The caller steps and finishes on until `is_closed`.

        Each queue is handed over after the results of its running batches.
        """
        raise NotImplementedError

    @property
    def is_closed(self) -> bool:
        """Whether a shutdown is complete."""
        raise NotImplementedError

    def assigned(self) -> list[MessageQueue]:
        """Return the queues that this member consumes, sorted."""
        raise NotImplementedError

    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """Return the cache of each queue that is held, for tests and operators."""
        raise NotImplementedError

    def lag(self) -> dict[MessageQueue, QueueLag]:
        """Return how far this member is, for each assigned queue."""
        raise NotImplementedError

    @property
    def findings(self) -> tuple[str, ...]:
        """Sentences about corrected offsets, dropped queues and refusals, the newest last."""
        raise NotImplementedError
