"""The members of consumer groups at the broker.

A client is a member from its first heartbeat until it leaves, its channel closes, or its last heartbeat is too old. Two
things that RocketMQ accepts are refused, because they lose messages: a second process with the id of a living client,
and a member that subscribes a topic with another expression than the other members. A process that has left its group
is not added again by a heartbeat that arrives late. Source: `ConsumerManager`, `ConsumerGroupInfo`.
"""

from dataclasses import dataclass

from tornpage.impl.consumer.queues import java_order
from tornpage.impl.consumer.requests import Answer, Done, Heartbeat, Leave, Refusal, Refused, Subscription

__all__ = ["MemberTable"]

_LEFT_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Member:
    """One member: its last heartbeat and the time of that."""

    heartbeat: Heartbeat
    seen_ms: int

    @property
    def topics(self) -> dict[str, Subscription]:
        """The subscriptions by topic."""
        return {each.topic: each for each in self.heartbeat.subscriptions}


class MemberTable:
    """The members of all groups. The broker serialises calls.

    `changed` collects the groups whose members have changed; the broker takes them.
    """

    def __init__(self, *, timeout_ms: int) -> None:
        self.changed: set[str] = set()
        self._timeout_ms = timeout_ms
        self._groups: dict[str, dict[str, _Member]] = {}
        self._left: dict[tuple[str, str], None] = {}

    def heartbeat(self, heartbeat: Heartbeat, client_id: str, now_ms: int) -> Answer:
        """Add or keep a member."""
        self.expire(now_ms)
        if (heartbeat.group, heartbeat.incarnation) in self._left:
            return Refused(Refusal.SYSTEM_ERROR, f"this process of {client_id} has left {heartbeat.group}")
        members = self._groups.setdefault(heartbeat.group, {})
        before = members.get(client_id)
        refusal = self._refusal(heartbeat, client_id, members)
        if refusal is not None:
            return refusal
        members[client_id] = _Member(heartbeat, now_ms)
        if before is None or before.heartbeat != heartbeat:
            self.changed.add(heartbeat.group)
        return Done()

    def _refusal(self, heartbeat: Heartbeat, client_id: str, members: dict[str, _Member]) -> Refused | None:
        before = members.get(client_id)
        if before is not None and before.heartbeat.incarnation != heartbeat.incarnation:
            return Refused(Refusal.CLIENT_ID_IN_USE, f"another process with the id {client_id} is alive")
        for other_id, other in members.items():
            if other_id == client_id:
                continue
            if other.heartbeat.is_broadcasting != heartbeat.is_broadcasting:
                return _conflict(f"{other_id} has another message model")
            topics = other.topics
            for ours in heartbeat.subscriptions:
                if topics.get(ours.topic, ours) != ours:
                    return _conflict(f"{other_id} subscribes {ours.topic} with {topics[ours.topic].expression!r}")
        return None

    def leave(self, leave: Leave, client_id: str) -> None:
        """Remove a member that leaves."""
        self._left[leave.group, leave.incarnation] = None
        while len(self._left) > _LEFT_MAX:
            del self._left[next(iter(self._left))]
        member = self._groups.get(leave.group, {}).get(client_id)
        if member is not None and member.heartbeat.incarnation == leave.incarnation:
            self._remove(leave.group, client_id)

    def disconnect(self, client_id: str) -> None:
        """Remove a client from all groups."""
        for group, members in tuple(self._groups.items()):
            if client_id in members:
                self._remove(group, client_id)

    def expire(self, now_ms: int) -> None:
        """Remove members whose last heartbeat is too old."""
        for group, members in tuple(self._groups.items()):
            for client_id, member in tuple(members.items()):
                if now_ms - member.seen_ms > self._timeout_ms:
                    self._remove(group, client_id)

    def _remove(self, group: str, client_id: str) -> None:
        """Remove a member; a group ends with its last one."""
        members = self._groups[group]
        del members[client_id]
        if not members:
            del self._groups[group]
        self.changed.add(group)

    def is_member(self, client_id: str) -> bool:
        """Return whether a client is a member of any group."""
        return any(client_id in members for members in self._groups.values())

    def incarnation_of(self, group: str, client_id: str) -> str | None:
        """Return the incarnation of a member; None if the client is no member."""
        member = self._groups.get(group, {}).get(client_id)
        return None if member is None else member.heartbeat.incarnation

    def of(self, group: str, topic: str | None = None) -> tuple[str, ...]:
        """Return the client ids of a group, sorted; with a topic those that subscribe it."""
        members = self._groups.get(group, {})
        found = (client_id for client_id, member in members.items() if topic is None or topic in member.topics)
        return tuple(sorted(found, key=java_order))


def _conflict(sentence: str) -> Refused:
    return Refused(Refusal.SUBSCRIPTION_CONFLICT, sentence)
