"""Links between the members of a group, over the recorded network.

Each member has a host of its own. A direction of a link has room for some bytes, and a cut direction delivers nothing.
"""

from collections.abc import Callable

from tornpage.impl.replication.link import Link
from tornpage.properties.cluster.network import LinkEnd, RecordedListener, RecordedNetwork

__all__ = ["ROOM_BYTES", "STRANGER", "MemberNetwork", "address_of", "host_of"]

ROOM_BYTES = 16 << 10
"""Bytes that a direction of a link holds."""

STRANGER = 99
"""The number of a connection that is no member."""
_PORT = 9_000


def host_of(member: int) -> str:
    """Return the host of a member."""
    return f"10.0.0.{1 + member}"


def address_of(member: int) -> str:
    """Return the address of a member."""
    return f"{host_of(member)}:{_PORT}"


def _member_at(host: str) -> int:
    return int(host.rpartition(".")[2]) - 1


class _End:
    """An end of a link.

    `is_cut` is whether the direction to this end delivers nothing.
    """

    def __init__(self, end: LinkEnd, peer: str, is_cut: Callable[[], bool], forget: Callable[["_End"], None]) -> None:
        self.peer = peer
        self._end = end
        self._is_cut = is_cut
        self._forget = forget
        self._was_full = False
        self._saw_end = False

    @property
    def is_ready(self) -> bool:
        """Whether bytes or the end have arrived, or there is room again for bytes that found none."""
        has_room = self._was_full and self._end.untaken_bytes < ROOM_BYTES
        return has_room or (not self._is_cut() and self._end.has_news and not self._saw_end)

    def send(self, data: bytes) -> int:
        """Accept bytes while there is room."""
        count = self._end.send(data[: max(0, ROOM_BYTES - self._end.untaken_bytes)])
        self._was_full = count < len(data) and not self._end.is_over
        return count

    def receive(self, size_bytes_max: int) -> bytes | None:
        """Return what has arrived."""
        found = b"" if self._is_cut() else self._end.receive(size_bytes_max)
        self._saw_end = found is None
        return found

    def close(self) -> None:
        """End the link."""
        self._end.close()
        self._forget(self)


class _Listener:
    """The listening address of a member."""

    def __init__(self, listener: RecordedListener, wrap: Callable[[LinkEnd], Link]) -> None:
        self.address = listener.address
        self._listener = listener
        self._wrap = wrap

    @property
    def is_ready(self) -> bool:
        """Whether a new link waits."""
        return bool(self._listener.backlog)

    def accept(self) -> Link | None:
        """Return the next new link."""
        end = self._listener.accept()
        return None if end is None else self._wrap(end)

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


class MemberNetwork:
    """The network of one member. `cut` has directions (source, receiver) that deliver nothing.

    `attempts` counts the connections that the member has tried to make.
    """

    def __init__(self, network: RecordedNetwork, me: int, cut: set[tuple[int, int]]) -> None:
        self.attempts = 0
        self._network = network
        self._me = me
        self._cut = cut
        self._listener: _Listener | None = None
        self._ends: list[_End] = []

    @property
    def is_ready(self) -> bool:
        """Whether a thread that waits on this network would be woken."""
        is_called = self._listener is not None and self._listener.is_ready
        return is_called or any(each.is_ready for each in self._ends)

    @property
    def open_links(self) -> int:
        """The number of links that the member has not closed."""
        return len(self._ends)

    def listen(self, address: str) -> _Listener:
        """Listen at an address."""
        self._listener = _Listener(self._network.listen(self._me, address), self._accepted)
        return self._listener

    def connect(self, address: str) -> Link | None:
        """Connect to an address."""
        self.attempts += 1
        end = self._network.connect(self._me, address)
        return None if end is None else self._added(end, address, _member_at(address.partition(":")[0]))

    def _accepted(self, end: LinkEnd) -> Link:
        source = int(end.peer.partition(":")[0].removeprefix("replica-"))
        return self._added(end, f"{host_of(source)}:1", source)

    def _added(self, end: LinkEnd, peer: str, other: int) -> Link:
        made = _End(end, peer, lambda: (other, self._me) in self._cut, self._forget)
        self._ends.append(made)
        return made

    def _forget(self, end: _End) -> None:
        if end in self._ends:
            self._ends.remove(end)
