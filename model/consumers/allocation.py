"""Specify which queues each member of a group gets (spec: consumers, 7.2 to 7.7).

Every function returns the shares of all members at once, so that a share cannot depend on an order of arrival.

Source: `AllocateMessageQueueAveragely`, `AllocateMessageQueueAveragelyByCircle`, `ConsistentHashRouter`.
"""

from bisect import bisect_left
from collections.abc import Sequence
from hashlib import md5

__all__ = [
    "VIRTUAL_NODES",
    "averagely",
    "by_circle",
    "by_hash",
    "by_machine_room",
    "by_nearby_room",
    "shares",
]

VIRTUAL_NODES = 10


def shares(strategy: str, queues: Sequence[str], members: Sequence[str]) -> dict[str, list[int]]:
    """Return the places in `queues` of each member's share.

    `queues` are texts of queues in their order.

    Raises KeyError for a strategy that needs a configuration.
    """
    rule = {"AVG": averagely, "AVG_BY_CIRCLE": by_circle, "CONSISTENT_HASH": by_hash}[strategy]
    return rule(queues, sorted(members))


def averagely(queues: Sequence[str], members: Sequence[str]) -> dict[str, list[int]]:
    """Return contiguous shares whose sizes differ by at most one.

    The first members have the larger ones.
    """
    small, larger = divmod(len(queues), len(members))
    found, begin = {}, 0
    for number, member in enumerate(members):
        size = small + (number < larger)
        found[member] = list(range(begin, begin + size))
        begin += size
    return found


def by_circle(queues: Sequence[str], members: Sequence[str]) -> dict[str, list[int]]:
    """Deal the queues to the members in turn."""
    return {member: list(range(number, len(queues), len(members))) for number, member in enumerate(members)}


def by_hash(queues: Sequence[str], members: Sequence[str]) -> dict[str, list[int]]:
    """Give each queue to the member with the next point of the ring."""
    ring = {_hash(f"{member}-{number}"): member for member in members for number in range(VIRTUAL_NODES)}
    points = sorted(ring)
    found: dict[str, list[int]] = {member: [] for member in members}
    for place, queue in enumerate(queues):
        at = bisect_left(points, _hash(queue))
        found[ring[points[at % len(points)]]].append(place)
    return found


def by_machine_room(queues: Sequence[str], members: Sequence[str]) -> dict[str, list[int]]:
    """Return contiguous shares of equal size.

    The queues that are left go to the first members, one to each.
    """
    small, more = divmod(len(queues), len(members))
    found = {}
    for number, member in enumerate(members):
        left = [small * len(members) + number] if number < more else []
        found[member] = [*range(small * number, small * (number + 1)), *left]
    return found


def by_nearby_room(queues: Sequence[str], members: Sequence[str]) -> dict[str, list[int]]:
    """Divide the queues of each room evenly among the members of this room.

    All members share the queues of a room without members. A queue and a member are texts that begin with the name of
    their room and a slash.
    """
    found: dict[str, list[int]] = {member: [] for member in members}
    rooms = [_room(queue) for queue in queues]
    own_first: list[tuple[str, list[str]]] = []
    for room in sorted(set(rooms)):
        near = [member for member in members if _room(member) == room]
        own_first.insert(0 if near else len(own_first), (room, near or list(members)))
    for room, near in own_first:
        places = [place for place, name in enumerate(rooms) if name == room]
        for member, share in averagely([queues[place] for place in places], near).items():
            found[member] += [places[number] for number in share]
    return found


def _room(text: str) -> str:
    return text.partition("/")[0]


def _hash(text: str) -> int:
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")
