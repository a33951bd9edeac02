"""Define the copies of a log, and the links between them.

1. A log is a row of entries: records, and the ends of files after them. Each has an identity of its own.
2. The first `durable` entries of a copy survive a power loss.
3. A generation is one time that a node was a master. It has a number, the place at which it begins, and an identity.
4. A link holds the log that its master had when it last sent, and the offset up to which bytes have arrived.
5. Retention deletes from the begin of a log. The entries stay in the row, so that logs are compared by their rows.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

__all__ = ["Copy", "Entry", "Generation", "Replicated", "Role", "Wire"]

Role = Literal["master", "slave"]


class Entry(NamedTuple):
    """One record, or the unused end of a file. Offsets are physical."""

    identity: int
    begin: int
    end: int


class Generation(NamedTuple):
    """One time that a node was a master."""

    number: int
    start: int
    identity: int


@dataclass(frozen=True, slots=True)
class Copy:
    """The log of one node. It has the bytes of the entries from `begin` on."""

    role: Role = "slave"
    is_up: bool = True
    log: tuple[Entry, ...] = ()
    durable: int = 0
    begin: int = 0
    generations: tuple[Generation, ...] = ()

    @property
    def end(self) -> int:
        """The offset at which the log ends."""
        return self.log[-1].end if self.log else 0

    @property
    def kept(self) -> tuple[Entry, ...]:
        """The entries whose bytes the log has."""
        return tuple(each for each in self.log if each.begin >= self.begin)


@dataclass(frozen=True, slots=True)
class Wire:
    """The newest link of a replica.

    `is_answered` is whether the answer of the master has arrived, `joined` whether the replica has taken it.
    A link whose master has gone is not open; what was sent may still arrive. `begins` are the begins that the log of
    the master had when it sent.
    """

    master: int
    log: tuple[Entry, ...] = ()
    begins: tuple[int, ...] = ()
    generations: tuple[Generation, ...] = ()
    arrived: int = 0
    is_answered: bool = False
    joined: bool = False
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Replicated:
    """All copies by node, and the link of each node as a replica."""

    copies: tuple[Copy, ...]
    wires: tuple[Wire | None, ...]

    def with_copy(self, node: int, copy: Copy) -> "Replicated":
        """Return the state with another copy of a node."""
        return replace(self, copies=(*self.copies[:node], copy, *self.copies[node + 1 :]))

    def without(self, node: int, copy: Copy) -> "Replicated":
        """Return the state after a node has gone, which sends nothing more to its replicas."""
        wires = tuple(
            None if replica == node or wire is None else replace(wire, is_open=wire.is_open and wire.master != node)
            for replica, wire in enumerate(self.wires)
        )
        return replace(self.with_copy(node, copy), wires=wires)

    def with_wire(self, node: int, wire: Wire | None) -> "Replicated":
        """Return the state with another link of a replica."""
        return replace(self, wires=(*self.wires[:node], wire, *self.wires[node + 1 :]))
