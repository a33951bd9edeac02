"""The hand-over of a queue: last results, last progress, then the lease.

A queue that leaves the share of this client starts no new message. Messages that no listener has seen are forgotten.
After the results of all running batches the progress is stored, with an answer. Then the lease is given back, and the
next owner begins exactly there: a clean hand-over repeats no message. RocketMQ sends the progress one-way and ignores
results that come later.

A concurrent consumer gives a queue up after `hand_over_timeout`, and later results are ignored. An orderly consumer
waits, because the next owner would overtake the running batch. Source:
`RebalanceImpl.updateProcessQueueTableInRebalance`, `RebalancePushImpl.removeUnnecessaryMessageQueue`.
"""

from tornpage.impl.consumer.client import NEVER, Client, due_of
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.offset_store import OffsetStore
from tornpage.impl.consumer.requests import Done, Lease, OffsetUpdated, Refusal, Refused, UnlockQueues, UpdateOffset

__all__ = ["HandOver"]

_AGAIN_MS = 1_000
_UNLOCK_MS = 5_000


class HandOver:
    """Moves holdings from DRAINING to GONE."""

    def __init__(self, client: Client, offsets: OffsetStore) -> None:
        self._client = client
        self._offsets = offsets

    def begin(self, holding: Holding, now_ms: int) -> None:
        """Begin to hand a queue over."""
        if holding.state is HoldingState.ACTIVE:
            if not self._client.settings.orderly:
                first = holding.process_queue.cut(holding.taken_end)
                holding.next_offset = holding.next_offset if first is None else first
            holding.enter(HoldingState.DRAINING, now_ms)
        elif holding.state in (HoldingState.CLAIMING, HoldingState.STARTING):
            self.abandon(holding, now_ms)

    def resume(self, holding: Holding, now_ms: int) -> None:
        """Keep a queue that is in the share again, if its last progress is not on its way yet."""
        if holding.state is HoldingState.DRAINING:
            holding.enter(HoldingState.ACTIVE, now_ms)

    def abandon(self, holding: Holding, now_ms: int) -> None:
        """Give a queue back without progress; results are ignored."""
        holding.process_queue.dropped = True
        holding.enter(HoldingState.UNLOCKING, now_ms)

    def step(self, holding: Holding, now_ms: int) -> int:
        """Go on with the hand-over of a queue; return when the next step is due."""
        match holding.state:
            case HoldingState.DRAINING:
                return self._drain(holding, now_ms)
            case HoldingState.STORING:
                return self._store(holding, now_ms)
            case HoldingState.UNLOCKING:
                return self._unlock(holding, now_ms)
        return NEVER

    def is_drained(self, holding: Holding) -> bool:
        """Return whether all results of a queue are known."""
        return holding.is_idle and (self._client.settings.orderly or not holding.process_queue.has_temp_message())

    def _drain(self, holding: Holding, now_ms: int) -> int:
        settings = self._client.settings
        give_up_ms = holding.since_ms + settings.hand_over_timeout
        if not self.is_drained(holding):
            if settings.orderly:
                return NEVER
            if now_ms < give_up_ms:
                return give_up_ms
            self._client.findings.add(f"{holding.queue.java_text()}: given up while batches run")
        holding.process_queue.dropped = True
        holding.enter(HoldingState.GONE if settings.is_broadcasting else HoldingState.STORING, now_ms)
        return now_ms

    def _store(self, holding: Holding, now_ms: int) -> int:
        progress = self._offsets.get(holding.queue)
        if progress is None:
            holding.enter(HoldingState.UNLOCKING, now_ms)
            return now_ms
        if holding.call is None:
            if now_ms < holding.retry_ms:
                return holding.retry_ms
            request = UpdateOffset(self._client.group, holding.queue, progress, holding.lease)
            holding.call = self._client.call(holding.queue.broker_name, request, now_ms)
        outcome = holding.call.outcome(now_ms)
        if outcome is None:
            return due_of(holding.call, now_ms)
        if isinstance(outcome, OffsetUpdated):
            holding.enter(HoldingState.UNLOCKING, now_ms)
        elif isinstance(outcome, Refused) and outcome.reason is Refusal.FENCED:
            holding.lose(now_ms)
        else:
            self._store_again(holding, now_ms)
        return now_ms

    def _store_again(self, holding: Holding, now_ms: int) -> None:
        """Repeat the request in a second, while the lease can still be valid."""
        live_ms = self._client.settings.rebalance_lock_max_live_time
        if holding.process_queue.is_lock_expired(now_ms, live_ms):
            self._client.findings.add(f"{holding.queue.java_text()}: the last progress was not stored")
            holding.lose(now_ms)
        else:
            holding.retry(now_ms + _AGAIN_MS)

    def _unlock(self, holding: Holding, now_ms: int) -> int:
        if self._client.settings.is_broadcasting:
            holding.enter(HoldingState.GONE, now_ms)
            return now_ms
        if holding.call is None:
            if now_ms < holding.retry_ms:
                return holding.retry_ms
            lease = holding.lease or Lease(holding.token, 0)
            request = UnlockQueues(self._client.group, ((holding.queue, lease),), self._client.incarnation)
            holding.call = self._client.call(holding.queue.broker_name, request, now_ms, timeout_ms=_AGAIN_MS)
        outcome = holding.call.outcome(now_ms)
        if outcome is None:
            return due_of(holding.call, now_ms)
        if isinstance(outcome, Done) or now_ms - holding.since_ms >= _UNLOCK_MS:
            holding.enter(HoldingState.GONE, now_ms)  # without an answer the lease expires by itself
        else:
            holding.retry(now_ms + _AGAIN_MS)
        return now_ms
