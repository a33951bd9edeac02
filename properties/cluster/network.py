"""A network in memory: ordered byte streams whose faults are chosen by the case.

Sent bytes wait in a direction of a link until the receiver takes them. A case may limit how many more bytes arrive
(0 is a partition of that direction), reset a link with any prefix of the waiting bytes delivered, and flip one waiting
bit. TCP neither reorders nor repeats bytes, so that no case does. A flipped bit is a fault outside TCP, which the
checksums of the frames have to find.
"""

from collections import Counter
from collections.abc import Callable, Iterator

__all__ = ["MASTER", "REPLICA", "LinkEnd", "RecordedLink", "RecordedListener", "RecordedNetwork", "Way"]

Way = int
"""The receiver of a direction: MASTER or REPLICA."""
MASTER, REPLICA = 0, 1


class RecordedLink:
    """Both directions of one connection.

    `sent` and `arrived` have all bytes of a direction, by receiver.

    `stamps` has, by receiver, the number of sent bytes after each send and the crash point of the sender then.
    `room` is how many more bytes arrive in a direction, None without a limit. `forged` has, by receiver, the number of
    sent bytes before the first forged one, None without one.
    """

    def __init__(self, replica: int, address: str, now: tuple[Callable[[], int], Callable[[], int]]) -> None:
        self.replica = replica
        self.address = address
        self.stamps: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        self.sent = (bytearray(), bytearray())
        self._now = now
        self.waiting = (bytearray(), bytearray())
        self.arrived = (bytearray(), bytearray())
        self.room: list[int | None] = [None, None]
        self.forged: list[int | None] = [None, None]
        self.is_over = [False, False]
        self.is_closed = False

    def end(self, way: Way) -> "LinkEnd":
        """Return the end that receives in a direction."""
        return LinkEnd(self, way)

    def take(self, way: Way, size_bytes_max: int) -> bytes | None:
        """Take what arrives at an end."""
        room, waiting = self.room[way], self.waiting[way]
        count = min(len(waiting), size_bytes_max, len(waiting) if room is None else room)
        taken = bytes(waiting[:count])
        del waiting[:count]
        if room is not None:
            self.room[way] = room - count
        self.arrived[way].extend(taken)
        if not taken and self.is_over[way] and (not waiting or room == 0):
            return None
        return taken

    def reset(self, *, to_master_bytes: int, to_replica_bytes: int) -> None:
        """End the link; a prefix of the waiting bytes still arrives in each direction."""
        for way, kept in ((MASTER, to_master_bytes), (REPLICA, to_replica_bytes)):
            del self.waiting[way][kept:]
            self.room[way], self.is_over[way] = None, True
        self.is_closed = True

    def put(self, way: Way, data: bytes) -> None:
        """Accept bytes for the receiver of a direction."""
        self.waiting[way].extend(data)
        self.sent[way].extend(data)
        self.stamps[way].append((len(self.sent[way]), self._now[1 - way]()))

    def forge(self, way: Way, data: bytes) -> None:
        """Put bytes that no sound peer sends on the way to the receiver of a direction."""
        if self.forged[way] is None:
            self.forged[way] = len(self.sent[way])
        self.put(way, data)

    def withdraw(self, way: Way, event: int) -> None:
        """Remove the bytes that were sent after a crash point of the sender.

        None of them was taken.
        """
        sent = max((count for count, at in self.stamps[way] if at <= event), default=0)
        unsent = len(self.sent[way]) - sent
        if unsent:
            del self.sent[way][sent:]
            del self.waiting[way][max(0, len(self.waiting[way]) - unsent) :]

    def taken_event(self, way: Way) -> int:
        """Return the crash point of the sender up to which its bytes were taken, or 0."""
        taken = len(self.sent[way]) - len(self.waiting[way])
        return next((at for count, at in self.stamps[way] if count >= taken and taken), 0)

    def leave(self, way: Way) -> None:
        """Close the end that receives in a direction.

        The other end takes what was sent, then sees the end.
        """
        self.is_closed = True
        self.is_over = [True, True]
        self.waiting[way].clear()


class LinkEnd:
    """One end of a link, as a store sees it."""

    def __init__(self, link: RecordedLink, way: Way) -> None:
        self._link = link
        self._way = way

    @property
    def peer(self) -> str:
        """The address of the other end."""
        return self._link.address if self._way == REPLICA else f"replica-{self._link.replica}:1"

    @property
    def untaken_bytes(self) -> int:
        """The number of sent bytes that the other end has not taken."""
        return len(self._link.waiting[1 - self._way])

    @property
    def has_news(self) -> bool:
        """Whether bytes or the end of the link have arrived."""
        return bool(self._link.waiting[self._way]) or self._link.is_over[self._way]

    @property
    def has_bytes(self) -> bool:
        """Whether bytes have arrived."""
        return bool(self._link.waiting[self._way])

    @property
    def is_over(self) -> bool:
        """Whether the link takes no more bytes."""
        return self._link.is_closed

    def send(self, data: bytes) -> int:
        """Accept all bytes, none after the end."""
        if self._link.is_closed:
            return 0
        self._link.put(1 - self._way, data)
        return len(data)

    def receive(self, size_bytes_max: int) -> bytes | None:
        """Return what has arrived."""
        return self._link.take(self._way, size_bytes_max)

    def close(self) -> None:
        """End the link."""
        self._link.leave(self._way)


class RecordedListener:
    """A listening address of one node."""

    def __init__(self, address: str, close: Callable[[], object]) -> None:
        self.address = address
        self.backlog: list[LinkEnd] = []
        self._close = close

    def accept(self) -> LinkEnd | None:
        """Return the next new link."""
        return self.backlog.pop(0) if self.backlog else None

    def close(self) -> None:
        """Stop listening."""
        self._close()


class RecordedNetwork:
    """All links and listeners of a run.

    `links` has every link, oldest first. `events` returns the present crash point of each node. `attempts` counts the
    connections that each node has tried to make.
    """

    def __init__(self) -> None:
        self.links: list[RecordedLink] = []
        self.events: dict[int, Callable[[], int]] = {}
        self.attempts: Counter[int] = Counter()
        self._listeners: dict[str, tuple[int, RecordedListener]] = {}

    def of(self, node: int) -> "_NodeNetwork":
        """Return the network as one node uses it."""
        return _NodeNetwork(self, node)

    def listen(self, node: int, address: str) -> RecordedListener:
        """Listen at an address."""
        listener = RecordedListener(address, lambda: self._listeners.pop(address, None))
        self._listeners[address] = node, listener
        return listener

    def connect(self, node: int, address: str) -> LinkEnd | None:
        """Return a new link, None if no node listens there."""
        self.attempts[node] += 1
        found = self._listeners.get(address)
        if found is None:
            return None
        master, listener = found
        link = RecordedLink(node, address, (self._event_of(master), self._event_of(node)))
        self.links.append(link)
        listener.backlog.append(link.end(MASTER))
        return link.end(REPLICA)

    def is_listening(self, address: str) -> bool:
        """Return whether a node listens at an address."""
        return address in self._listeners

    def waiting_at(self, address: str) -> int:
        """Return how many links the node at an address has not accepted yet.

        Ended links do not count.
        """
        found = self._listeners.get(address)
        return 0 if found is None else sum(not each.is_over for each in found[1].backlog)

    def ended_at(self, address: str) -> int:
        """Return how many ended links the node at an address has not accepted."""
        found = self._listeners.get(address)
        return 0 if found is None else sum(each.is_over and not each.has_bytes for each in found[1].backlog)

    def _event_of(self, node: int) -> Callable[[], int]:
        return lambda: self.events[node]() if node in self.events else 0

    def links_of(self, node: int, address: str) -> Iterator[RecordedLink]:
        """Yield the links of a node, as a replica or as the master at its address."""
        return (link for link in self.links if link.replica == node or link.address == address)

    def drop(self, node: int, address: str, *, silently: bool) -> None:
        """End the part of a node that died in all its links.

        The other ends see nothing if it died silently.
        """
        self._listeners.pop(address, None)
        for link in self.links_of(node, address):
            if not link.is_closed and not silently:
                link.leave(REPLICA if link.replica == node else MASTER)


class _NodeNetwork:
    """The network of one node."""

    def __init__(self, network: RecordedNetwork, node: int) -> None:
        self._network = network
        self._node = node

    def listen(self, address: str) -> RecordedListener:
        """Listen at an address."""
        return self._network.listen(self._node, address)

    def connect(self, address: str) -> LinkEnd | None:
        """Connect to an address."""
        return self._network.connect(self._node, address)
