"""Specify the members of groups at the broker (contract 16).

1. A heartbeat adds a client or keeps it. It is refused from a second process with the id of a living client, and from
   a process that has left the group.
2. Members of a group subscribe a topic with one expression, and have one message model. Another heartbeat is refused.
3. A client is removed when it leaves, when its connection ends, and when its last heartbeat is too old.
4. The other members get a notice when members join, leave or change their subscriptions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["Member", "Membership"]


@dataclass(frozen=True, slots=True)
class Member:
    """A member with its last heartbeat. `subscribed` has the expression of each topic."""

    process: str
    subscribed: Mapping[str, str]
    is_broadcasting: bool
    at_ms: int


Place = tuple[str, str]
"""Group and client id."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The members of all groups, and the notices that wait for each client."""

    expires_ms: int
    members: Mapping[Place, Member] = field(default_factory=dict)
    left: frozenset[tuple[str, str]] = frozenset()
    notices: frozenset[Place] = frozenset()

    def expired(self, now_ms: int) -> "Membership":
        """Remove the members whose last heartbeat is too old."""
        gone = [place for place, member in self.members.items() if now_ms > member.at_ms + self.expires_ms]
        return self._without(*gone)

    def _without(self, *gone: Place, told: str = "") -> "Membership":
        members = {place: member for place, member in self.members.items() if place not in gone}
        return replace(self, members=members)._changed({group for group, _ in gone}, told)

    def _changed(self, groups: set[str], but: str = "") -> "Membership":
        """Notify the members of groups, except for one client.

        Clients without a group lose their notices.
        """
        living = {client for _, client in self.members}
        kept = {(group, client) for group, client in self.notices if client in living} if groups else self.notices
        new = {(group, client) for group, client in self.members if group in groups and client != but}
        return replace(self, notices=frozenset(kept | new))

    def heartbeat(self, group: str, client: str, member: Member) -> tuple["Membership", str]:
        """Take a heartbeat; why it is refused, empty if it is not."""
        now = self.expired(member.at_ms)
        place, before = (group, client), now.members.get((group, client))
        if (group, member.process) in self.left:
            return now, "SYSTEM_ERROR"
        if before is not None and before.process != member.process:
            return now, "CLIENT_ID_IN_USE"
        for (other_group, other), each in now.members.items():
            if other_group != group or other == client:
                continue
            shared = each.subscribed.keys() & member.subscribed.keys()
            if each.is_broadcasting != member.is_broadcasting or any(
                each.subscribed[topic] != member.subscribed[topic] for topic in shared
            ):
                return now, "SUBSCRIPTION_CONFLICT"
        is_same = before is not None and replace(before, at_ms=member.at_ms) == member
        after = replace(now, members={**now.members, place: member})
        return (after if is_same else after._changed({group}, client)), ""

    def leave(self, group: str, client: str, process: str) -> "Membership":
        """Remove a member that leaves; another process with its id stays."""
        after = replace(self, left=self.left | {(group, process)})
        member = self.members.get((group, client))
        if member is None or member.process != process:
            return after
        return after._without((group, client), told=client)

    def disconnect(self, client: str) -> "Membership":
        """Remove a client from all its groups."""
        after = replace(self, notices=frozenset(each for each in self.notices if each[1] != client))
        return after._without(*(place for place in self.members if place[1] == client), told=client)

    def taken(self, client: str) -> tuple["Membership", tuple[str, ...]]:
        """Take the notices of a client: the groups in their order."""
        found = tuple(sorted(group for group, name in self.notices if name == client))
        return replace(self, notices=frozenset(each for each in self.notices if each[1] != client)), found

    def of(self, group: str, topic: str) -> tuple[str, ...]:
        """Return the members of a group that subscribe a topic, in the order of their ids."""
        return tuple(
            sorted(name for (at, name), each in self.members.items() if at == group and topic in each.subscribed)
        )
