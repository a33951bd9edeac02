"""A program that pulls its queues and commits progress by itself.

A user of `PullConsumer` writes such a program. A group of them has no leases and no rebalance. Queue q belongs to
member q modulo the number of members. Each program consumes one message of a queue at a time, and tries a failed
message again. It commits what it has finished every 5 seconds or on request. A commit repeats progress that has not
changed, because a crash of the broker may lower it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from tornpage.impl.consumer.connection import Call, CallError, Connection
from tornpage.impl.consumer.messages import Batch, ConsumerMessage
from tornpage.impl.consumer.pull_consumer import PullConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    OffsetFound,
    OffsetStatus,
    Pulled,
    PullStatus,
    Routed,
)

__all__ = ["PulledQueue", "Puller"]

_AGAIN_MS, _EMPTY_MS, _HOLD_MS = 1_000, 100, 15_000
_COMMIT_MS, _ROUTES_MS = 5_000, 10_000


@dataclass(slots=True, eq=False)
class PulledQueue:
    """One queue of a program. `next_offset` is None until the program knows where it begins."""

    queue: MessageQueue
    next_offset: int | None = None
    cached: deque[ConsumerMessage] = field(default_factory=deque)
    running: ConsumerMessage | None = None
    call: Call | None = None
    due_ms: int = 0
    commit: Call | None = None
    commit_ms: int = 0

    @property
    def finished(self) -> int | None:
        """The smallest offset that is not finished."""
        if self.running is not None:
            return self.running.queue_offset
        return self.cached[0].queue_offset if self.cached else self.next_offset


class Puller:
    """One member. The trial steps it and runs its listener, as with a push consumer."""

    def __init__(
        self,
        group: str,
        connection: Connection,
        *,
        broker: str,
        topic: str,
        tag: str,
        place: int,
        members: int,
        threshold: int,
        pull_batch: int,
    ) -> None:
        self._consumer = PullConsumer(group, {broker: connection})
        self._topic, self._tag = topic, tag
        self._place, self._members = place, members
        self._threshold, self._pull_batch = threshold, pull_batch
        self._routes: list[Call] = []
        self._routes_ms = 0
        self._queues: dict[MessageQueue, PulledQueue] = {}
        self._numbers = count(1)
        self._is_leaving = False

    # ---- steps ---------------------------------------------------------------------------------------------------

    def step(self, now_ms: int) -> int:
        """Take answers and send requests; return when the next step is due at the latest."""
        self._step_routes(now_ms)
        for each in self._queues.values():
            self._step_commit(each, now_ms)
            if each.call is not None:
                outcome = each.call.outcome(now_ms)
                if outcome is None:
                    continue
                each.call = None
                self._take_answer(each, outcome, now_ms)
            if each.call is None and not self._is_leaving and now_ms >= each.due_ms:
                self._ask(each, now_ms)
        return now_ms + _AGAIN_MS

    def _step_routes(self, now_ms: int) -> None:
        for call in self._routes:
            if isinstance(call.answer, Routed):
                for queue in call.answer.queues:
                    if queue.queue_id % self._members == self._place:
                        self._queues.setdefault(queue, PulledQueue(queue))
        self._routes = [call for call in self._routes if call.outcome(now_ms) is None]
        if now_ms >= self._routes_ms and not self._is_leaving:
            self._routes_ms = now_ms + _ROUTES_MS
            self._routes += self._consumer.routes(self._topic, now_ms)

    def _ask(self, each: PulledQueue, now_ms: int) -> None:
        if each.next_offset is None:
            each.call = self._consumer.query_offset(each.queue, now_ms)
            return
        room = self._threshold - len(each.cached) - (each.running is not None)
        if room > 0:
            wanted = min(room, self._pull_batch)
            each.call = self._consumer.pull(
                each.queue, each.next_offset, now_ms, count=wanted, expression=self._tag, hold_ms=_HOLD_MS
            )

    def _take_answer(self, each: PulledQueue, outcome: Answer | CallError, now_ms: int) -> None:
        match outcome:
            case OffsetFound(OffsetStatus.FOUND | OffsetStatus.NOT_STORED, offset):
                each.next_offset = offset
            case OffsetFound() | Pulled(status=PullStatus.OFFSET_ILLEGAL):
                each.call = self._consumer.bounds(each.queue, now_ms)
            case Bounds(min_offset):
                each.next_offset = max(each.next_offset or 0, min_offset)
            case Pulled(_, next_offset, _, max_offset, messages):
                wanted = [stored for stored in messages if stored.properties.get("TAGS") == self._tag]
                each.cached += [ConsumerMessage(stored, each.queue, self._topic, max_offset) for stored in wanted]
                each.next_offset = max(each.next_offset or 0, next_offset)
                each.due_ms = now_ms if messages else now_ms + _EMPTY_MS
            case _:
                each.due_ms = now_ms + _AGAIN_MS

    # ---- progress ------------------------------------------------------------------------------------------------

    def commit(self, now_ms: int) -> None:
        """Commit at once what is finished, whatever an earlier commit does."""
        for each in self._queues.values():
            each.commit = None
            self._send_commit(each, now_ms)

    def _step_commit(self, each: PulledQueue, now_ms: int) -> None:
        if each.commit is None or each.commit.outcome(now_ms) is not None:
            each.commit = None
            if now_ms >= each.commit_ms:
                self._send_commit(each, now_ms)

    def _send_commit(self, each: PulledQueue, now_ms: int) -> None:
        if each.finished is not None:
            each.commit_ms = now_ms + _COMMIT_MS
            each.commit = self._consumer.update_offset(each.queue, each.finished, now_ms)

    # ---- the listener --------------------------------------------------------------------------------------------

    def take(self, now_ms: int) -> Batch | None:
        """Return the next message of a queue of which none is being consumed."""
        for each in () if self._is_leaving else self._queues.values():
            if each.running is None and each.cached:
                each.running = each.cached.popleft()
                return Batch(next(self._numbers), each.queue, (each.running,), now_ms)
        return None

    def finish(self, batch: Batch, *, is_success: bool) -> None:
        """Take the result of a listener."""
        each = self._queues[batch.queue]
        each.running = None
        if not is_success:
            each.cached.appendleft(batch.messages[0])

    # ---- the end -------------------------------------------------------------------------------------------------

    def shutdown(self, now_ms: int) -> None:
        """Pull no more, and commit what is finished."""
        self._is_leaving = True
        self.commit(now_ms)

    @property
    def is_closed(self) -> bool:
        """Whether a shutdown is complete: no listener runs."""
        return self._is_leaving and not any(self._running())

    def _running(self) -> Iterator[ConsumerMessage]:
        return (each.running for each in self._queues.values() if each.running is not None)
