"""The strategies that divide the queues of a topic among the members of a group.

A strategy is a pure function `allocate(me, queues, clients)`. It returns the queues of client `me`. `queues` are those
of one topic. Members that have the same view get disjoint shares. The order of both arguments does not matter, because
each strategy sorts them first. Equal inputs give the results of RocketMQ 4.9.3, with these differences:

1. `MachineRoom` raises Unconsumed if a queue would be consumed by no member. Java leaves such queues out without a
   message. `leaves_others=True` gives Java's result.
2. `Configured` returns only queues of the topic. Java returns the whole configured list for each topic.
3. `ConsistentHash` refuses 0 virtual nodes. Java then gives no queue to any member.
4. A queue or a client that occurs twice is refused. Java counts it twice.

A client that is not a member gets no queues. Empty queues, clients or an empty client id are refused as in Java.
Source: `AllocateMessageQueueAveragely`, `...AveragelyByCircle`, `...ConsistentHash`, `...ByMachineRoom`,
`AllocateMachineRoomNearby`, `...ByConfig`, `ConsistentHashRouter`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5
from typing import TypeVar

from tornpage.impl.consumer.queues import MessageQueue, java_order

__all__ = [
    "STRATEGIES",
    "Configured",
    "ConsistentHash",
    "MachineRoom",
    "MachineRoomNearby",
    "Strategy",
    "Unconsumed",
    "averagely",
    "averagely_by_circle",
    "in_java_order",
    "ring_hash",
]

Item = TypeVar("Item")

Strategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]
"""Maps own client id, queues of a topic and client ids of the group to own queues. Raises ValueError."""


class Unconsumed(ValueError):
    """An allocation would leave queues without a consumer."""


def averagely(me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
    """Return one contiguous run of queues; earlier clients get one more (AVG)."""
    ordered, ids = _ordered(me, queues, clients)
    if me not in ids:
        return []
    place = ids.index(me)
    least, more = divmod(len(ordered), len(ids))
    begin = place * least + min(place, more)
    return ordered[begin : begin + least + (place < more)]


def averagely_by_circle(me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
    """Return every n-th queue of n clients (AVG_BY_CIRCLE)."""
    ordered, ids = _ordered(me, queues, clients)
    return ordered[ids.index(me) :: len(ids)] if me in ids else []


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """Gives each queue to the client of the next virtual node on a ring (CONSISTENT_HASH)."""

    virtual_nodes: int = 10

    def __post_init__(self) -> None:
        if self.virtual_nodes < 1:
            raise ValueError(f"a ring with {self.virtual_nodes} virtual nodes for each client gives no queue to any")

    def __call__(self, me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
        """Return the queues of `me`."""
        ordered, ids = _ordered(me, queues, clients)
        if me not in ids:
            return []
        keys, owners = _ring(tuple(ids), self.virtual_nodes)
        return [queue for queue in ordered if owners[bisect_left(keys, ring_hash(queue.java_text())) % len(keys)] == me]


@dataclass(frozen=True, slots=True)
class MachineRoom:
    """Divides the queues of some rooms; a broker's name is `ROOM@REST` (MACHINE_ROOM).

    Queues of other rooms raise Unconsumed, unless `leaves_others` allows to leave them to another group of members.
    """

    rooms: frozenset[str]
    leaves_others: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rooms", frozenset(self.rooms))
        if not self.rooms:
            raise ValueError("MACHINE_ROOM needs the names of its rooms")

    def __call__(self, me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
        """Return the queues of `me`. Raises Unconsumed."""
        every, ids = _ordered(me, queues, clients)
        ordered = [queue for queue in every if _room_in_name(queue.broker_name) in self.rooms]
        if not self.leaves_others and len(ordered) < len(every):
            queue = next(queue for queue in every if queue not in ordered)
            raise Unconsumed(f"{queue.java_text()} is in none of the rooms {sorted(self.rooms)}")
        if me not in ids:
            return []
        place = ids.index(me)
        least, more = divmod(len(ordered), len(ids))
        rest = least * len(ids) + place
        return ordered[least * place : least * (place + 1)] + (ordered[rest : rest + 1] if place < more else [])


@dataclass(frozen=True, slots=True)
class MachineRoomNearby:
    """Divides the queues of each room among the clients of that room (MACHINE_ROOM_NEARBY).

    Queues of a room without clients are divided among all clients. The functions return the room of a queue and of a
    client; an empty name is refused.
    """

    inner: Strategy
    room_of_queue: Callable[[MessageQueue], str]
    room_of_client: Callable[[str], str]

    def __call__(self, me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
        """Return the queues of `me`: first those of its room, then those of each empty room."""
        ordered, ids = _ordered(me, queues, clients)
        if me not in ids:
            return []
        queues_in, clients_in = _by_room(ordered, self.room_of_queue), _by_room(ids, self.room_of_client)
        own_room = _named(self.room_of_client(me), me)
        found: list[MessageQueue] = []
        if own_queues := queues_in.pop(own_room, []):
            found += self.inner(me, own_queues, clients_in[own_room])
        for room in sorted(queues_in.keys() - clients_in.keys(), key=java_order):
            found += self.inner(me, queues_in[room], ids)
        return found


@dataclass(frozen=True, slots=True)
class Configured:
    """Gives the queues that the caller has listed, as far as the topic has them (CONFIG)."""

    queues: tuple[MessageQueue, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "queues", tuple(self.queues))
        _refuse_repeated(self.queues, "queue")

    def __call__(self, me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
        """Return the listed queues that are in `queues`, in the order of the list."""
        ordered, _ = _ordered(me, queues, clients)
        there = set(ordered)
        return [queue for queue in self.queues if queue in there]


STRATEGIES: Mapping[str, Strategy] = {
    "AVG": averagely,
    "AVG_BY_CIRCLE": averagely_by_circle,
    "CONSISTENT_HASH": ConsistentHash(),
}
"""The strategies that need no settings, by the name that Java's `getName` gives.

The others are MACHINE_ROOM (`MachineRoom`), MACHINE_ROOM_NEARBY (`MachineRoomNearby`; Java appends `-` and the name of
the inner strategy) and CONFIG (`Configured`).
"""


def in_java_order(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Return queues sorted by topic, broker name and queue id, as Java sorts them.

    Java compares texts by UTF-16 code units, Python by code points. These differ for characters above U+FFFF.
    """
    return sorted(queues, key=lambda queue: (java_order(queue.topic), java_order(queue.broker_name), queue.queue_id))


def ring_hash(text: str) -> int:
    """Return the place of a text on the ring: the first four bytes of its MD5, unsigned."""
    return int.from_bytes(md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()[:4], "big")


@lru_cache(maxsize=64)
def _ring(ids: tuple[str, ...], virtual_nodes: int) -> tuple[list[int], list[str]]:
    """Return keys in order and their owners; a later client replaces one of the same key."""
    ring = {ring_hash(f"{client}-{node}"): client for client in ids for node in range(virtual_nodes)}
    keys = sorted(ring)
    return keys, [ring[key] for key in keys]


def _ordered(me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> tuple[list[MessageQueue], list[str]]:
    """Return queues and clients in Java's order. Raises ValueError for empty or repeated ones."""
    if not (me and queues and clients):
        missing = "client id" if not me else "queues" if not queues else "clients"
        raise ValueError(f"an allocation needs its {missing}")
    _refuse_repeated(queues, "queue")
    _refuse_repeated(clients, "client")
    return in_java_order(queues), sorted(clients, key=java_order)


def _refuse_repeated(items: Sequence[MessageQueue] | Sequence[str], what: str) -> None:
    if len(set(items)) < len(items):
        repeated = next(item for place, item in enumerate(items) if item in items[:place])
        raise ValueError(f"{what} {repeated!r} occurs twice")


def _room_in_name(broker_name: str) -> str | None:
    """Return the room in `ROOM@REST`, None for another form; Java ignores `@` at the end."""
    words = broker_name.rstrip("@").split("@")
    return words[0] if len(words) == 2 else None


def _by_room(items: Iterable[Item], room_of: Callable[[Item], str]) -> dict[str, list[Item]]:
    """Group items by their room."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(_named(room_of(item), item), []).append(item)
    return found


def _named(room: str, item: object) -> str:
    """Return a room. Raises ValueError if it has no name."""
    if not room:
        raise ValueError(f"{item!r} is in no room")
    return room
