"""The leases of one client: claims and renewals, in one request for each broker.

A claim that was not granted is repeated every second, with its token, so that a lost answer costs nothing. A lease is
used for `rebalance_lock_max_live_time` after the request for its last renewal, which is less than the broker keeps it.
A refused renewal means that the queue is lost. Source: `RebalanceImpl.lockAll`.
"""

from collections.abc import Mapping

from tornpage.impl.consumer.client import NEVER, Client, due_of
from tornpage.impl.consumer.connection import Call
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Claim, Locked, LockQueues

__all__ = ["Leases"]

_TIMEOUT_MS = 1_000
_CLAIM_AGAIN_MS = 1_000
_RENEW_AGAIN_MS = 3_000


class _AtBroker:
    """The request to one broker, and when the next is due."""

    def __init__(self) -> None:
        self.call: Call | None = None
        self.sent_ms = 0
        self.holdings: list[Holding] = []
        self.claim_ms = 0
        self.renew_ms = 0


class Leases:
    """Claims queues and renews leases. `holdings` are those of the consumer."""

    def __init__(self, client: Client, holdings: Mapping[MessageQueue, Holding]) -> None:
        self._client = client
        self._holdings = holdings
        self._brokers: dict[str, _AtBroker] = {}

    def wake(self) -> None:
        """Claim at once: a queue may be free now."""
        for at in self._brokers.values():
            at.claim_ms = 0

    def is_usable(self, holding: Holding, now_ms: int) -> bool:
        """Return whether the lease of a queue is young enough to consume under it."""
        settings = self._client.settings
        if settings.is_broadcasting:
            return True
        queue = holding.process_queue
        return queue.locked and not queue.is_lock_expired(now_ms, settings.rebalance_lock_max_live_time)

    def step(self, now_ms: int) -> int:
        """Take answers and send requests; return when the next step is due."""
        if self._client.settings.is_broadcasting:
            return NEVER
        by_broker: dict[str, list[Holding]] = {}
        for holding in self._holdings.values():
            by_broker.setdefault(holding.queue.broker_name, []).append(holding)
        due_ms = NEVER
        for name in by_broker.keys() | self._brokers.keys():
            at = self._brokers.setdefault(name, _AtBroker())
            due_ms = min(due_ms, self._step(name, at, by_broker.get(name, []), now_ms))
        return due_ms

    def _step(self, name: str, at: _AtBroker, holdings: list[Holding], now_ms: int) -> int:
        if at.call is not None:
            if at.call.outcome(now_ms) is None:
                return at.call.deadline_ms
            self._take(at, now_ms)
        claiming = [each for each in holdings if each.state is HoldingState.CLAIMING]
        leased = [each for each in holdings if each.lease is not None and each.state in _RENEWED]
        claims = claiming if now_ms >= at.claim_ms else []
        renewals = leased if now_ms >= at.renew_ms else []
        if claims or renewals:
            self._send(name, at, claims, renewals, now_ms)
            assert at.call is not None
            return due_of(at.call, now_ms)
        return min(at.claim_ms if claiming else NEVER, at.renew_ms if leased else NEVER)

    def _send(self, name: str, at: _AtBroker, claims: list[Holding], renewals: list[Holding], now_ms: int) -> None:
        settings = self._client.settings
        request = LockQueues(
            self._client.group,
            claims=tuple(Claim(each.queue, each.token) for each in claims),
            renewals=tuple((each.queue, each.lease) for each in renewals if each.lease is not None),
            waits_for_owner=settings.orderly,
            incarnation=self._client.incarnation,
        )
        at.call = self._client.call(name, request, now_ms, timeout_ms=_TIMEOUT_MS)
        at.sent_ms, at.holdings = now_ms, [*claims, *renewals]
        if claims:
            at.claim_ms = now_ms + _CLAIM_AGAIN_MS
        if renewals:
            at.renew_ms = now_ms + settings.rebalance_lock_interval

    def _take(self, at: _AtBroker, now_ms: int) -> None:
        assert at.call is not None
        answer, request = at.call.answer, at.call.request
        at.call = None
        if not isinstance(answer, Locked):
            at.renew_ms = min(at.renew_ms, now_ms + _RENEW_AGAIN_MS)
            return
        assert isinstance(request, LockQueues)
        renewed = dict(request.renewals)
        for holding in at.holdings:
            lease = answer.leases.get(holding.queue)
            if lease is not None and lease.token == holding.token:
                self._grant(holding, at, now_ms)
                holding.lease = lease
            elif holding.queue in renewed and holding.lease == renewed[holding.queue]:
                self._lose(holding, now_ms)

    def _grant(self, holding: Holding, at: _AtBroker, now_ms: int) -> None:
        holding.process_queue.locked = True
        holding.process_queue.last_lock_timestamp = at.sent_ms
        if holding.state is HoldingState.CLAIMING:
            holding.enter(HoldingState.STARTING, now_ms)
            if at.renew_ms <= at.sent_ms:
                at.renew_ms = at.sent_ms + self._client.settings.rebalance_lock_interval

    def _lose(self, holding: Holding, now_ms: int) -> None:
        if holding.state in _RENEWED:
            self._client.findings.add(f"{holding.queue.java_text()}: the lease is lost")
            holding.lose(now_ms)


_RENEWED = frozenset((HoldingState.STARTING, HoldingState.ACTIVE, HoldingState.DRAINING, HoldingState.STORING))
