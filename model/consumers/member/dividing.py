"""Specify how a member gets its share of queues (contract 16).

1. Each broker is asked for the queues of each topic at the start, after a wish, and every `routes_ms`; after an answer
   that is missing or a refusal a second later. A broker without an answer keeps its last queues.
2. A round asks one broker of each topic for the members, and divides the queues of the topic among them. Rounds begin
   every `every_ms`, after a wish, after other queues of a topic, and a second after a round that failed. One round runs
   at a time, and the first one waits until each topic has queues or no answer is waited for.
3. A broker is asked for members only if it has accepted the member. Otherwise, and if it does not answer, the next
   broker of the topic is asked in the next round.
4. The share stays as it is if the answer does not name the member, or if the strategy fails. In the first case the
   member wishes for a heartbeat, and for a round after a second. The second case is a finding.
5. A broadcasting member has all queues.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tornpage.model.consumers.member.asking import NEVER, Ask, Asking, Sent, looked_at

__all__ = ["Divided", "Dividing", "QueueName", "Strategy"]

_AGAIN_MS = 1_000
QueueName = tuple[str, str, int]
"""Topic, broker and queue id."""
Strategy = Callable[[str, Sequence[QueueName], Sequence[str]], Sequence[QueueName] | None]
"""Returns the share of a member, None if it fails."""


@dataclass(frozen=True, slots=True)
class Divided:
    """What a step has found: new shares by topic, and a wish for a heartbeat."""

    shares: Mapping[str, Sequence[QueueName]]
    wants_heartbeat: bool
    due_ms: int


@dataclass(frozen=True, slots=True)
class Dividing:
    """Routes and rounds of one member. Times are milliseconds."""

    group: str
    client: str
    is_broadcasting: bool
    brokers: tuple[str, ...]
    every_ms: int
    routes_ms: int
    timeout_ms: int
    known: Mapping[str, Mapping[str, tuple[QueueName, ...]]] = field(default_factory=dict)
    routes: Mapping[tuple[str, str], Sent] = field(default_factory=dict)
    rounds: Mapping[str, Sent] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    routes_due_ms: int = 0
    round_due_ms: int = 0

    def woken(self, *, with_routes: bool) -> "Dividing":
        """Wish for a round, and for the queues of all topics."""
        return replace(self, round_due_ms=0, routes_due_ms=0 if with_routes else self.routes_due_ms)

    def queues_of(self, topic: str) -> list[QueueName]:
        """Return all known queues of a topic in their order."""
        return sorted(queue for queues in self.known.get(topic, {}).values() for queue in queues)

    def step(
        self, topics: Sequence[str], now_ms: int, ask: Asking, *, joined: frozenset[str], strategy: Strategy
    ) -> tuple["Dividing", Divided]:
        """Take answers, and begin what is due."""
        now = self._with_routes(topics, now_ms, ask)
        now, shares, wants_heartbeat = now._with_members(now_ms, ask, strategy)
        shares = {topic: share for topic, share in shares.items() if topic in topics}
        may_begin = now._may_begin(topics)
        if may_begin and not now.rounds and now.round_due_ms <= now_ms:
            now, begun = now._begun(topics, now_ms, ask, joined)
            shares |= begun
        due_ms = looked_at(now.routes.values(), now_ms) if now.routes else now.routes_due_ms
        round_ms = looked_at(now.rounds.values(), now_ms) if now.rounds else now.round_due_ms
        return now, Divided(shares, wants_heartbeat, min(due_ms, round_ms if may_begin else NEVER))

    def _may_begin(self, topics: Sequence[str]) -> bool:
        return not self.routes or all(topic in self.known for topic in topics)

    def _with_routes(self, topics: Sequence[str], now_ms: int, ask: Asking) -> "Dividing":
        known = {topic: dict(queues) for topic, queues in self.known.items()}
        routes, due_ms, round_ms = dict(self.routes), self.routes_due_ms, self.round_due_ms
        for (topic, broker), sent in self.routes.items():
            outcome = sent.outcome(now_ms)
            if outcome is None:
                continue
            del routes[topic, broker]
            if outcome[0] != "Routed":
                due_ms = min(due_ms, now_ms + _AGAIN_MS)
                continue
            if known.get(topic, {}).get(broker) != outcome[1]:
                round_ms = min(round_ms, now_ms)
            known.setdefault(topic, {})[broker] = outcome[1]
        if due_ms <= now_ms and not routes:
            due_ms = now_ms + self.routes_ms
            for topic in topics:
                for broker in self.brokers:
                    routes[topic, broker] = ask(Ask(broker, "Route", self.timeout_ms, (topic,)))
        return replace(self, known=known, routes=routes, routes_due_ms=due_ms, round_due_ms=round_ms)

    def _with_members(
        self, now_ms: int, ask: Asking, strategy: Strategy
    ) -> tuple["Dividing", dict[str, Sequence[QueueName]], bool]:
        rounds, asked, round_ms = dict(self.rounds), dict(self.asked), self.round_due_ms
        shares: dict[str, Sequence[QueueName]] = {}
        wants_heartbeat = False
        for topic, sent in self.rounds.items():
            outcome, queues = sent.outcome(now_ms), self.queues_of(topic)
            if outcome is None:
                continue
            del rounds[topic]
            if outcome[0] != "MembersFound":
                asked[topic] = _next(queues, asked[topic])
                round_ms = min(round_ms, now_ms + _AGAIN_MS)
            elif self.client not in outcome[1] or not queues:
                wants_heartbeat = True
                round_ms = min(round_ms, now_ms + _AGAIN_MS)
            elif (share := strategy(self.client, queues, outcome[1])) is not None:
                shares[topic] = share
            else:
                ask.finding(f"the strategy fails for {topic}")
        return replace(self, rounds=rounds, asked=asked, round_due_ms=round_ms), shares, wants_heartbeat

    def _begun(
        self, topics: Sequence[str], now_ms: int, ask: Asking, joined: frozenset[str]
    ) -> tuple["Dividing", dict[str, Sequence[QueueName]]]:
        rounds, asked, round_ms = dict(self.rounds), dict(self.asked), now_ms + self.every_ms
        shares: dict[str, Sequence[QueueName]] = {}
        for topic in topics:
            queues = self.queues_of(topic)
            if not queues:
                continue
            if self.is_broadcasting:
                shares[topic] = queues
                continue
            brokers = {broker for _, broker, _ in queues}
            broker = asked[topic] if asked.get(topic) in brokers else min(brokers)
            asked[topic] = broker
            if broker in joined:
                rounds[topic] = ask(Ask(broker, "Members", self.timeout_ms, (self.group, topic)))
            else:
                asked[topic] = _next(queues, broker)
                round_ms = min(round_ms, now_ms + _AGAIN_MS)
        return replace(self, rounds=rounds, asked=asked, round_due_ms=round_ms), shares


def _next(queues: Sequence[QueueName], broker: str) -> str:
    """Return the broker of some queues that comes after one, in a circle; "" without any."""
    names = sorted({name for _, name, _ in queues})
    return next((name for name in names if name > broker), names[0] if names else "")
