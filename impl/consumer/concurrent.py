"""Concurrent consumption: batches of a queue run at the same time.

They may finish in any order. A finished message is removed from the cache, and the progress is the smallest offset that
is left. A failed message is sent back to the broker, and counts as finished after its copy is stored. If that fails, it
is consumed again here after 5 seconds, or sent back again during a hand-over. With broadcasting a failed message is
dropped, with a finding.

RocketMQ sends a message back if its run takes longer than `consume_timeout`, and consumes it twice. Here such a run is
reported, and its result counts whenever it comes. Source: `ConsumeMessageConcurrentlyService`.
"""

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count

from tornpage.impl.consumer.client import NEVER, Client
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.leases import Leases
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, ConsumerMessage, OrderlyStatus
from tornpage.impl.consumer.offset_store import OffsetStore, note_progress
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.returns import Returns

__all__ = ["Concurrent"]

_RETRY_MS = 5_000
_STATES = frozenset((HoldingState.ACTIVE, HoldingState.DRAINING))


class Concurrent:
    """The batches of all queues of a consumer."""

    def __init__(
        self, client: Client, holdings: Mapping[MessageQueue, Holding], *, offsets: OffsetStore, leases: Leases
    ) -> None:
        self._client = client
        self._offsets = offsets
        self._leases = leases
        self._returns = client.parts.of(Returns)(client)
        self._note_progress = client.parts.of(note_progress)
        self._ready: deque[tuple[Holding, list[ConsumerMessage], int | None]] = deque()
        """The delay level of a retry that its last listener asked for, None for other batches."""
        self._retries: list[tuple[int, int, Holding, ConsumerMessage, int]] = []
        self._numbers = count(1)

    def submit(self, holding: Holding, messages: Sequence[ConsumerMessage]) -> None:
        """Queue pulled messages for consumption, in batches."""
        size = self._client.settings.consume_message_batch_max_size
        for begin in range(0, len(messages), size):
            self._ready.append((holding, list(messages[begin : begin + size]), None))

    def take(self, now_ms: int) -> Batch | None:
        """Return the next batch, None if none may run now.

        A retry does not run during a hand-over, which may end before its listener does. Its message is sent back again,
        with the delay level of the return that failed.
        """
        for _ in range(len(self._ready)):
            holding, messages, delay_level = self._ready.popleft()
            if holding.process_queue.dropped:
                continue
            if not self._may_run(holding, now_ms):
                self._ready.append((holding, messages, delay_level))
                continue
            cached = [each for each in messages if holding.process_queue.msg_tree_map.get(each.queue_offset) is each]
            if delay_level is not None and holding.state is HoldingState.DRAINING:
                for message in cached:
                    self._returns.add(holding, message, now_ms, delay_level=delay_level)
            elif cached:  # the others were cut at the begin of a hand-over
                return self._begin(holding, cached, now_ms)
        return None

    def _may_run(self, holding: Holding, now_ms: int) -> bool:
        return holding.state in _STATES and self._leases.is_usable(holding, now_ms)

    def _begin(self, holding: Holding, messages: list[ConsumerMessage], now_ms: int) -> Batch:
        holding.taken_end = max(holding.taken_end, messages[-1].queue_offset + 1)
        holding.running += 1
        return Batch(next(self._numbers), holding.queue, tuple(messages), now_ms, holding)

    def finish(
        self,
        batch: Batch,
        status: ConcurrentStatus | OrderlyStatus | None,
        now_ms: int,
        *,
        ack_index: int | None,
        delay_level: int,
    ) -> None:
        """Take the result of a batch."""
        holding = batch.holding
        assert isinstance(holding, Holding)
        holding.running -= 1
        last = len(batch.messages) if ack_index is None else max(0, ack_index + 1)
        done = last if status is ConcurrentStatus.CONSUME_SUCCESS else 0
        failed = batch.messages[done:]
        if self._client.settings.is_broadcasting:
            if failed:
                self._client.findings.add(f"{batch.queue.java_text()}: {len(failed)} failed messages are dropped")
            self._remove(holding, batch.messages, now_ms)
            return
        self._remove(holding, batch.messages[:done], now_ms)
        if not holding.process_queue.dropped:
            for message in failed:
                self._returns.add(holding, message, now_ms, delay_level=delay_level)

    def _remove(self, holding: Holding, messages: Sequence[ConsumerMessage], now_ms: int) -> None:
        """Remove finished messages, and note the progress."""
        progress = holding.process_queue.remove_message(messages, now_ms)
        self._note_progress(self._offsets, holding, progress, increase_only=True)

    def step(self, now_ms: int) -> int:
        """Take the outcomes of messages sent back, and begin due retries.

        Return when the next step is due.
        """
        finished, due_ms = self._returns.finished(now_ms)
        for each in finished:
            if each.holding.process_queue.dropped:
                continue
            if each.is_stored:
                self._remove(each.holding, [each.message], now_ms)
            else:
                each.message.reconsume_times += 1
                retry = now_ms + _RETRY_MS, next(self._numbers), each.holding, each.message, each.delay_level
                heapq.heappush(self._retries, retry)
        while self._retries and self._retries[0][0] <= now_ms:
            _, _, holding, message, delay_level = heapq.heappop(self._retries)
            self._ready.append((holding, [message], delay_level))
        return min(due_ms, self._retries[0][0] if self._retries else NEVER)
