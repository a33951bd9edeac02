"""Orderly consumption: one batch of a queue at a time, in queue order.

After a failure the queue pauses, and the same messages come again. A message that has failed `max_reconsume_times`
times goes to the dead letters, and the queue goes on past it. Each message of a batch has its own result then; RocketMQ
consumes those again that it has sent back. Queues take turns. Source: `ConsumeMessageOrderlyService`.
"""

from collections.abc import Mapping, Sequence
from itertools import count

from tornpage.impl.consumer.client import NEVER, Client
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.leases import Leases
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, ConsumerMessage, OrderlyStatus
from tornpage.impl.consumer.offset_store import OffsetStore, note_progress
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.returns import Returns

__all__ = ["Orderly", "is_free"]

_CONTINUOUS_MS_MAX = 60_000
_REST_MS = 10
_FAILURES = frozenset((None, OrderlyStatus.SUSPEND, ConcurrentStatus.RECONSUME_LATER))


def is_free(holding: Holding) -> bool:
    """Return whether no batch of a queue runs, and no message of it is being sent back."""
    return holding.is_idle


class Orderly:
    """The batches of all queues of a consumer."""

    def __init__(
        self, client: Client, holdings: Mapping[MessageQueue, Holding], *, offsets: OffsetStore, leases: Leases
    ) -> None:
        self._client = client
        self._holdings = holdings
        self._offsets = offsets
        self._leases = leases
        self._returns = client.parts.of(Returns)(client)
        self._note_progress = client.parts.of(note_progress)
        self._is_free = client.parts.of(is_free)
        self._last: MessageQueue | None = None
        self._numbers = count(1)

    def submit(self, holding: Holding, messages: Sequence[ConsumerMessage]) -> None:
        """Do nothing: `take` looks at the cached messages."""

    def take(self, now_ms: int) -> Batch | None:
        """Return the next batch, None if none may run now."""
        for holding in self._in_turn():
            if self._may_run(holding, now_ms) and not self._must_rest(holding, now_ms):
                size = self._client.settings.consume_message_batch_max_size
                messages = holding.process_queue.take_messages(size, now_ms)
                if messages:
                    return self._begin(holding, messages, now_ms)
        return None

    def _in_turn(self) -> list[Holding]:
        """Return the queues, the one after the last served queue first."""
        queues = sorted(self._holdings)
        later = [queue for queue in queues if self._last is not None and queue > self._last]
        return [self._holdings[queue] for queue in [*later, *(each for each in queues if each not in later)]]

    def _may_run(self, holding: Holding, now_ms: int) -> bool:
        return (
            holding.state is HoldingState.ACTIVE
            and holding.process_queue.has_temp_message()
            and now_ms >= holding.pause_until_ms
            and self._is_free(holding)
            and self._leases.is_usable(holding, now_ms)
        )

    def _must_rest(self, holding: Holding, now_ms: int) -> bool:
        """Return whether a queue has been consumed for so long that it rests for 10 ms."""
        since_ms = holding.continuous_since_ms
        if since_ms is None or now_ms - since_ms <= _CONTINUOUS_MS_MAX:
            return False
        holding.continuous_since_ms, holding.pause_until_ms = None, now_ms + _REST_MS
        return True

    def _begin(self, holding: Holding, messages: list[ConsumerMessage], now_ms: int) -> Batch:
        if holding.continuous_since_ms is None:
            holding.continuous_since_ms = now_ms
        holding.running += 1
        self._last = holding.queue
        return Batch(next(self._numbers), holding.queue, tuple(messages), now_ms, holding)

    # ---- results -------------------------------------------------------------------------------------------------

    def finish(
        self,
        batch: Batch,
        status: ConcurrentStatus | OrderlyStatus | None,
        now_ms: int,
        *,
        suspend_ms: int | None,
        auto_commit: bool,
    ) -> None:
        """Take the result of a batch."""
        holding = batch.holding
        assert isinstance(holding, Holding)
        holding.running -= 1
        if holding.process_queue.dropped:
            return
        if not holding.process_queue.has_temp_message():
            holding.continuous_since_ms = None
        pause_ms = self._client.settings.suspend_ms(suspend_ms)
        if status in _FAILURES:
            self._fail(holding, batch.messages, now_ms, pause_ms)
        elif auto_commit or status is OrderlyStatus.COMMIT:
            self._note(holding, holding.process_queue.commit())
        elif status is OrderlyStatus.ROLLBACK:
            holding.process_queue.rollback()
            self._pause(holding, now_ms + pause_ms)

    def _note(self, holding: Holding, progress: int) -> None:
        self._note_progress(self._offsets, holding, progress, increase_only=False)

    def _pause(self, holding: Holding, until_ms: int) -> None:
        holding.pause_until_ms, holding.continuous_since_ms = until_ms, None

    def _fail(self, holding: Holding, messages: Sequence[ConsumerMessage], now_ms: int, pause_ms: int) -> None:
        times_max = self._client.settings.reconsume_times_max
        exhausted = [each for each in messages if each.reconsume_times >= times_max]
        again = [each for each in messages if each.reconsume_times < times_max]
        for message in again:
            message.reconsume_times += 1
        holding.process_queue.make_message_to_consume_again(again)
        if again:
            self._pause(holding, now_ms + pause_ms)
        if self._client.settings.is_broadcasting:
            if exhausted:
                self._client.findings.add(f"{holding.queue.java_text()}: {len(exhausted)} failed messages are dropped")
                self._note(holding, holding.process_queue.finish_taken(exhausted))
            return
        for message in exhausted:
            self._returns.add(holding, message, now_ms, as_copy=True)

    def step(self, now_ms: int) -> int:
        """Take the outcomes of messages sent back.

        Return when the next step or the next batch is due.
        """
        finished, due_ms = self._returns.finished(now_ms)
        for each in finished:
            holding, queue = each.holding, each.holding.process_queue
            if queue.dropped:
                continue
            if each.is_stored:
                self._note(holding, queue.finish_taken([each.message]))
            else:
                each.message.reconsume_times += 1
                queue.make_message_to_consume_again([each.message])
                self._pause(holding, now_ms + self._client.settings.suspend_ms(None))
        pauses = [
            each.pause_until_ms
            for each in self._holdings.values()
            if each.process_queue.has_temp_message() and each.pause_until_ms > now_ms
        ]
        return min([due_ms, *pauses], default=NEVER)
