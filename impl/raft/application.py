"""The interface between a node and what its clients use: entries, or a store."""

from collections.abc import Sequence
from typing import Protocol

from tornpage.impl.raft.answers import RaftStatus
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import Envelope, Message

__all__ = ["Application"]


class Application(Protocol):
    """A member, and the requests of its clients.

    The node calls every method from the thread of its steps. The first five are the events of the member. They may do
    more than the member does, such as a look at what is committed now. An OSError or StoreError ends the member.
    """

    @property
    def member(self) -> RaftMember:
        """The member."""

    def election_timeout(self) -> list[Envelope]:
        """Become a candidate of a new term, unless leader."""

    def heartbeat(self) -> list[Envelope]:
        """Send every other member what it lacks."""

    def sync(self) -> list[Envelope]:
        """Make the log durable, then confirm or count its entries."""

    def receive(self, source: int, message: Message) -> list[Envelope]:
        """Take a message of another member."""

    def transfer(self, to: int) -> list[Envelope]:
        """Ask a member with the whole log to lead."""

    def begin_requests(self, now_ms: int, refusal: RaftStatus | None) -> Sequence[Envelope]:
        """Begin what clients have asked for since the last call, or refuse it with a status."""

    @property
    def has_requests(self) -> bool:
        """Whether requests of clients wait for the next step."""

    def answer(self, now_ms: int) -> None:
        """Answer requests that are done, or whose time is over."""

    def lose_role(self) -> None:
        """Answer the requests that a leader has begun: it leads no more."""

    def stop(self) -> None:
        """Answer all requests: the member has ended."""
