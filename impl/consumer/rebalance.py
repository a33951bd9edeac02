"""Which queues are the share of this client.

A round asks one broker for the members of the group that subscribe a topic, and divides the queues of the topic among
them. Queues are known from each broker; an unreachable broker keeps its last ones. If the members or the queues are
unknown, or the strategy fails, the share stays as it is. The same holds if this client is not among the members; it
sends a heartbeat then. A broker that has not accepted the heartbeat of this client is not asked.

A round runs every 20 seconds, after a notice of a broker, and a second after a failed one. RocketMQ divides the queues
of a topic among all members, also those that do not subscribe it. Source: `RebalanceImpl.rebalanceByTopic`.
"""

from collections.abc import Iterable

from tornpage.impl.consumer.allocation import Strategy
from tornpage.impl.consumer.client import NEVER, Client, due_of
from tornpage.impl.consumer.connection import Call
from tornpage.impl.consumer.heartbeats import Heartbeats
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Members, MembersFound, Route, Routed

__all__ = ["Rebalance", "members_of"]

_AGAIN_MS = 1_000


def members_of(me: str, found: MembersFound) -> tuple[str, ...] | None:
    """Return the members to divide queues among; None if the answer must not be used."""
    return found.client_ids if me in found.client_ids else None


class Rebalance:
    """Asks for routes and members, and divides the queues."""

    def __init__(self, client: Client, strategy: Strategy, heartbeats: Heartbeats) -> None:
        self._client = client
        self._strategy = strategy
        self._heartbeats = heartbeats
        self._members_of = client.parts.of(members_of)
        self._queues: dict[str, dict[str, tuple[MessageQueue, ...]]] = {}
        self._sorted: dict[str, list[MessageQueue]] = {}
        self._routes: dict[tuple[str, str], Call] = {}
        self._routes_ms = 0
        self._members: dict[str, Call] = {}
        self._round_ms = 0
        self._asked: dict[str, str] = {}

    def wake(self) -> None:
        """Run the next round at once."""
        self._round_ms = 0

    def wake_routes(self) -> None:
        """Ask for routes at once, and then run a round."""
        self._routes_ms = self._round_ms = 0

    def queues_of(self, topic: str) -> list[MessageQueue]:
        """Return all known queues of a topic, sorted."""
        found = self._sorted.get(topic)
        if found is None:
            found = sorted(queue for queues in self._queues.get(topic, {}).values() for queue in queues)
            self._sorted[topic] = found
        return found

    def step(self, topics: Iterable[str], now_ms: int) -> tuple[dict[str, list[MessageQueue]], int]:
        """Go on with the round.

        Return the shares that are known now, by topic, and when the next step is due.
        """
        topics = list(topics)
        due_ms = self._step_routes(topics, now_ms)
        shares: dict[str, list[MessageQueue]] = {}
        for topic, call in tuple(self._members.items()):
            if call.outcome(now_ms) is not None:
                del self._members[topic]
                share = self._share_of(topic, call, now_ms)
                if share is not None and topic in topics:
                    shares[topic] = share
        if now_ms >= self._round_ms and not self._members and self._are_routes_known(topics):
            self._round_ms = now_ms + self._client.settings.rebalance_wait_interval
            self._begin(topics, shares, now_ms)
        calls_ms = min((due_of(call, now_ms) for call in self._members.values()), default=self._round_ms)
        return shares, min(due_ms, calls_ms if self._are_routes_known(topics) else NEVER)

    # ---- routes --------------------------------------------------------------------------------------------------

    def _step_routes(self, topics: list[str], now_ms: int) -> int:
        for place, call in tuple(self._routes.items()):
            if call.outcome(now_ms) is not None:
                del self._routes[place]
                self._take_route(place, call, now_ms)
        if now_ms >= self._routes_ms and not self._routes:
            self._routes_ms = now_ms + self._client.settings.poll_name_server_interval
            for topic in topics:
                for name in self._client.connections:
                    self._routes[topic, name] = self._client.call(name, Route(topic), now_ms)
        return min((due_of(call, now_ms) for call in self._routes.values()), default=self._routes_ms)

    def _take_route(self, place: tuple[str, str], call: Call, now_ms: int) -> None:
        topic, name = place
        if not isinstance(call.answer, Routed):
            self._routes_ms = min(self._routes_ms, now_ms + _AGAIN_MS)
            return
        known = self._queues.setdefault(topic, {})
        if known.get(name) != call.answer.queues:
            known[name] = call.answer.queues
            self._sorted.pop(topic, None)
            self._round_ms = min(self._round_ms, now_ms)

    def _are_routes_known(self, topics: list[str]) -> bool:
        """Return whether each topic has an answer of a broker, or no answer is waited for."""
        return not self._routes or all(topic in self._queues for topic in topics)

    # ---- rounds --------------------------------------------------------------------------------------------------

    def _begin(self, topics: list[str], shares: dict[str, list[MessageQueue]], now_ms: int) -> None:
        """Ask for the members of each topic; a broadcasting client takes all queues."""
        for topic in topics:
            queues = self.queues_of(topic)
            if not queues:
                continue
            if self._client.settings.is_broadcasting:
                shares[topic] = queues
                continue
            brokers = sorted({queue.broker_name for queue in queues})
            name = self._asked.get(topic, brokers[0])
            name = name if name in brokers else brokers[0]
            self._asked[topic] = name
            if name in self._heartbeats.joined:
                self._members[topic] = self._client.call(name, Members(self._client.group, topic), now_ms)
            else:
                self._asked[topic] = self._next_broker(topic, queues)
                self._round_ms = min(self._round_ms, now_ms + _AGAIN_MS)

    def _share_of(self, topic: str, call: Call, now_ms: int) -> list[MessageQueue] | None:
        queues = self.queues_of(topic)
        me = self._client.settings.client_id
        if not isinstance(call.answer, MembersFound):
            self._round_ms = min(self._round_ms, now_ms + _AGAIN_MS)
            self._asked[topic] = self._next_broker(topic, queues)
            return None
        members = self._members_of(me, call.answer)
        if members is None or not queues:
            self._heartbeats.wake()
            self._round_ms = min(self._round_ms, now_ms + _AGAIN_MS)
            return None
        try:
            return self._strategy(me, queues, members)
        except Exception as error:  # a strategy of the user may raise anything
            self._client.findings.add(f"the strategy fails for {topic}: {error}")
            return None

    def _next_broker(self, topic: str, queues: list[MessageQueue]) -> str:
        """Return the broker to ask next: the one after the broker that has not answered."""
        brokers = sorted({queue.broker_name for queue in queues})
        later = [name for name in brokers if name > self._asked.get(topic, "")]
        return (later or brokers or [""])[0]
