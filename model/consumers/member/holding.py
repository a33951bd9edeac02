"""Specify how a member gets, keeps and gives back a lease (contracts 20 to 22).

1. Claims and renewals to a broker go in one request at a time. It has all queues that wait for a lease, if the last
   claim is a second old, and all leases, if the last renewal is `renew_ms` old.
2. A queue is granted if the answer has a lease of its token. The lease counts from the time of the request.
3. A renewal that the answer leaves out has lost the queue, if the member still has that lease. A request without a
   good answer changes nothing, and renewals are due 3 s later.
4. A queue that leaves the share gives its progress to the broker, then its lease. A request that fails is repeated
   after a second. A refusal as the lease of a former owner, or an expired lease, ends the hand-over: the queue is lost.
   The lease is given back for 5 s at most.
5. A concurrent member waits `hand_over_ms` for the results of running batches, an orderly one without end.
6. A lost lease, a queue that is given up while batches run, and progress that was not stored are findings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tornpage.model.consumers.member.asking import NEVER, Ask, Asking, Sent, looked_at, queue_text

__all__ = ["HandingOver", "Held", "Leasing", "is_over", "is_usable"]

_CLAIM_MS, _RENEW_MS, _TIMEOUT_MS, _AGAIN_MS, _UNLOCK_MS = 1_000, 3_000, 1_000, 1_000, 5_000
_LEASED = ("STARTING", "ACTIVE", "DRAINING", "STORING")


@dataclass(frozen=True, slots=True)
class Held:
    """A queue of a member. Times are milliseconds.

    `since_ms` is when its state began. `waiting` are the offsets of cached messages that no listener has. A queue that
    is `dropped` notes no progress any more.
    """

    token: str
    state: str
    since_ms: int
    retry_ms: int
    lease: tuple[str, int] | None = None
    sent: Sent | None = None
    is_locked: bool = False
    locked_ms: int = 0
    is_dropped: bool = False
    waiting: tuple[int, ...] = ()
    taken_end: int = 0
    next_offset: int = 0
    running: int = 0
    returning: int = 0
    progress: int | None = None

    def to(self, state: str, now_ms: int) -> "Held":
        """Begin a state."""
        return replace(self, state=state, since_ms=now_ms, retry_ms=now_ms, sent=None)

    def lost(self, now_ms: int) -> "Held":
        """Lose the queue."""
        return replace(self.to("LOST", now_ms), is_dropped=True, is_locked=False)


def is_usable(held: Held, now_ms: int, *, live_ms: int, is_broadcasting: bool) -> bool:
    """Return whether messages may be pulled and consumed under the lease of a queue."""
    return is_broadcasting or (held.is_locked and now_ms <= held.locked_ms + live_ms)


def is_over(held: Held, *, is_orderly: bool) -> bool:
    """Return whether a queue is forgotten.

    An orderly member first waits for the batch of a lost queue.
    """
    return held.state == "GONE" or (held.state == "LOST" and not (is_orderly and held.running))


@dataclass(frozen=True, slots=True)
class _Broker:
    """The request to a broker with the queues in it, and when the next ones are due."""

    sent: Sent | None = None
    queues: tuple[tuple[Any, str], ...] = ()
    claim_ms: int = 0
    renew_ms: int = 0


@dataclass(frozen=True, slots=True)
class Leasing:
    """Claims and renewals of a member. A queue is topic, broker and id."""

    group: str
    process: str
    is_orderly: bool
    is_broadcasting: bool
    renew_ms: int
    brokers: Mapping[str, _Broker] = field(default_factory=dict)

    def woken(self) -> "Leasing":
        """Wish to claim at once."""
        return replace(self, brokers={name: replace(at, claim_ms=0) for name, at in self.brokers.items()})

    def step(self, held: Mapping[Any, Held], now_ms: int, ask: Asking) -> tuple["Leasing", dict[Any, Held], int]:
        """Take answers and send requests; the queues then, and when the next step is due."""
        if self.is_broadcasting:
            return self, dict(held), NEVER
        after, brokers, due_ms = dict(held), dict(self.brokers), NEVER
        for name in {queue[1] for queue in held} | brokers.keys():
            at = brokers.get(name, _Broker())
            if at.sent is not None and at.sent.outcome(now_ms) is not None:
                at, after = self._taken(at, at.sent, after, now_ms, ask)
            if at.sent is None:
                at = self._asked(name, at, after, now_ms, ask)
            brokers[name] = at
            due_ms = min(due_ms, self._due_ms(name, at, after, now_ms))
        return replace(self, brokers=brokers), after, due_ms

    def _of(self, held: Mapping[Any, Held], name: str) -> tuple[list[Any], list[Any]]:
        claiming = [queue for queue, each in held.items() if queue[1] == name and each.state == "CLAIMING"]
        leased = [queue for queue, each in held.items() if queue[1] == name and each.state in _LEASED and each.lease]
        return claiming, leased

    def _due_ms(self, name: str, at: _Broker, held: Mapping[Any, Held], now_ms: int) -> int:
        if at.sent is not None:
            return at.sent.due_ms(now_ms)
        claiming, leased = self._of(held, name)
        return min(at.claim_ms if claiming else NEVER, at.renew_ms if leased else NEVER)

    def _asked(self, name: str, at: _Broker, held: Mapping[Any, Held], now_ms: int, ask: Asking) -> _Broker:
        claiming, leased = self._of(held, name)
        claims = claiming if now_ms >= at.claim_ms else []
        renewals = leased if now_ms >= at.renew_ms else []
        if not claims and not renewals:
            return at
        about = (
            self.group,
            tuple((queue, held[queue].token) for queue in claims),
            tuple((queue, held[queue].lease) for queue in renewals),
            self.is_orderly,
            self.process,
        )
        return _Broker(
            ask(Ask(name, "LockQueues", _TIMEOUT_MS, about)),
            tuple((queue, held[queue].token) for queue in (*claims, *renewals)),
            now_ms + _CLAIM_MS if claims else at.claim_ms,
            now_ms + self.renew_ms if renewals else at.renew_ms,
        )

    def _taken(
        self, at: _Broker, sent: Sent, held: Mapping[Any, Held], now_ms: int, ask: Asking
    ) -> tuple[_Broker, dict[Any, Held]]:
        outcome = sent.outcome(now_ms) or ()
        after, at = dict(held), replace(at, sent=None)
        if outcome[0] != "Locked":
            return replace(at, renew_ms=min(at.renew_ms, now_ms + _RENEW_MS)), after
        leases, renewed = dict(outcome[1]), dict(sent.ask.about[2])
        for queue, token in at.queues:
            each = held.get(queue)
            if each is None or each.token != token:
                continue  # the queue was forgotten meanwhile
            lease = leases.get(queue)
            if lease is not None and lease[0] == token:
                granted = replace(each, lease=lease, is_locked=True, locked_ms=sent.at_ms)
                if each.state == "CLAIMING":
                    granted = granted.to("STARTING", now_ms)
                    if at.renew_ms <= sent.at_ms:
                        at = replace(at, renew_ms=sent.at_ms + self.renew_ms)
                after[queue] = granted
            elif queue in renewed and each.lease == renewed[queue] and each.state in _LEASED:
                ask.finding(f"{queue_text(queue)}: the lease is lost")
                after[queue] = each.lost(now_ms)
        return at, after


@dataclass(frozen=True, slots=True)
class HandingOver:
    """The hand-over of a queue. `live_ms` is how long a lease is used after its last renewal."""

    group: str
    process: str
    is_orderly: bool
    is_broadcasting: bool
    hand_over_ms: int
    live_ms: int
    timeout_ms: int

    def begun(self, held: Held, now_ms: int) -> Held:
        """Begin: messages that no listener has seen are forgotten by a concurrent member."""
        if held.state in ("CLAIMING", "STARTING"):
            return self.abandoned(held, now_ms)
        if held.state != "ACTIVE":
            return held
        cut = [] if self.is_orderly else [each for each in held.waiting if each >= held.taken_end]
        return replace(
            held.to("DRAINING", now_ms),
            waiting=tuple(each for each in held.waiting if each not in cut),
            next_offset=min(cut, default=held.next_offset),
        )

    def resumed(self, held: Held, now_ms: int) -> Held:
        """Call the hand-over off, if the progress is not on its way."""
        return held.to("ACTIVE", now_ms) if held.state == "DRAINING" else held

    def abandoned(self, held: Held, now_ms: int) -> Held:
        """Give the lease back without progress."""
        return replace(held.to("UNLOCKING", now_ms), is_dropped=True)

    def step(self, queue: Sequence[Any], held: Held, now_ms: int, ask: Asking) -> tuple[Held, int]:
        """Go on; the queue then, and when the next step is due."""
        match held.state:
            case "DRAINING":
                return self._drained(queue, held, now_ms, ask)
            case "STORING":
                return self._stored(queue, held, now_ms, ask)
            case "UNLOCKING":
                return self._unlocked(queue, held, now_ms, ask)
        return held, NEVER

    def _drained(self, queue: Sequence[Any], held: Held, now_ms: int, ask: Asking) -> tuple[Held, int]:
        has_results = not held.running and not held.returning and (self.is_orderly or not held.waiting)
        until_ms = NEVER if self.is_orderly else held.since_ms + self.hand_over_ms
        if not has_results and now_ms < until_ms:
            return held, until_ms
        if not has_results:
            ask.finding(f"{queue_text(queue)}: given up")
        after = held.to("GONE" if self.is_broadcasting else "STORING", now_ms)
        return replace(after, is_dropped=True), now_ms

    def _stored(self, queue: Sequence[Any], held: Held, now_ms: int, ask: Asking) -> tuple[Held, int]:
        if held.progress is None:
            return held.to("UNLOCKING", now_ms), now_ms
        if held.sent is None:
            if now_ms < held.retry_ms:
                return held, held.retry_ms
            about = (self.group, queue, held.progress, held.lease, False)
            held = replace(held, sent=ask(Ask(queue[1], "UpdateOffset", self.timeout_ms, about)))
        assert held.sent is not None
        match held.sent.outcome(now_ms):
            case None:
                return held, looked_at([held.sent], now_ms)
            case ("OffsetUpdated", _, _):
                return held.to("UNLOCKING", now_ms), now_ms
            case ("Refused", "FENCED"):
                return held.lost(now_ms), now_ms
        if now_ms > held.locked_ms + self.live_ms:
            ask.finding(f"{queue_text(queue)}: the last progress was not stored")
            return held.lost(now_ms), now_ms
        return replace(held, retry_ms=now_ms + _AGAIN_MS, sent=None), now_ms

    def _unlocked(self, queue: Sequence[Any], held: Held, now_ms: int, ask: Asking) -> tuple[Held, int]:
        if self.is_broadcasting:
            return held.to("GONE", now_ms), now_ms
        if held.sent is None:
            if now_ms < held.retry_ms:
                return held, held.retry_ms
            about = (self.group, ((queue, held.lease or (held.token, 0)),), self.process)
            held = replace(held, sent=ask(Ask(queue[1], "UnlockQueues", _AGAIN_MS, about)))
        assert held.sent is not None
        outcome = held.sent.outcome(now_ms)
        if outcome is None:
            return held, looked_at([held.sent], now_ms)
        if outcome == ("Done",) or now_ms - held.since_ms >= _UNLOCK_MS:
            return held.to("GONE", now_ms), now_ms
        return replace(held, retry_ms=now_ms + _AGAIN_MS, sent=None), now_ms
