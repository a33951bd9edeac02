"""The interface to the network: ordered byte streams that never block.

The real network and the recorded one of the crash lab implement it. A link delivers the sent bytes in order, each once
and unchanged, until it ends. It may end at any time, with any prefix of the sent bytes delivered.
"""

from typing import Protocol, runtime_checkable

__all__ = ["Link", "Listener", "Network", "WaitingNetwork"]


class Link(Protocol):
    """One end of a connection."""

    @property
    def peer(self) -> str:
        """The address of the other end."""

    def send(self, data: bytes) -> int:
        """Accept bytes to send.

        Return how many of them, 0 while the link is full or after it ended.
        """

    def receive(self, size_bytes_max: int) -> bytes | None:
        """Return bytes that have arrived, at most `size_bytes_max`.

        Returns b"" if none has arrived, and None once the link has ended and everything was received.
        """

    def close(self) -> None:
        """End the link. Idempotent."""


class Listener(Protocol):
    """A listening address."""

    @property
    def address(self) -> str:
        """The address, with the port that was chosen for port 0."""

    def accept(self) -> Link | None:
        """Return the next new link, or None."""

    def close(self) -> None:
        """Stop listening. Idempotent."""


class Network(Protocol):
    """The network of one node."""

    def listen(self, address: str) -> Listener:
        """Listen at an address. Raises OSError."""

    def connect(self, address: str) -> Link | None:
        """Return a link to an address, or None if nothing answers there."""


@runtime_checkable
class WaitingNetwork(Network, Protocol):
    """A network on which a thread can wait."""

    def wait(self, timeout_ms: int) -> None:
        """Wait until a link or listener is ready, `wake` is called, or the time is over."""

    def wake(self) -> None:
        """End the present or the next wait. Every thread may call it."""
