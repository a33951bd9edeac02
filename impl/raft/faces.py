"""Define what a member needs of its disk."""

from collections.abc import Sequence
from typing import Protocol

from tornpage.impl.raft.messages import Carried

__all__ = ["HardStateFace", "LogFace"]


class LogFace(Protocol):
    """A log of entries. Places count entries from 0."""

    @property
    def end(self) -> int:
        """The number of entries."""

    @property
    def synced(self) -> int:
        """The number of first entries that are durable."""

    def term_at(self, place: int) -> int:
        """Return the term of an entry."""

    def entries(self, begin: int, size_bytes_max: int) -> tuple[Carried, ...]:
        """Return entries from `begin` on, with about so many bytes of bodies.

        At least one entry is returned if there is one.
        """

    def append(self, entries: Sequence[Carried]) -> None:
        """Append entries, not durable yet. Raises OSError; then none is appended."""

    def cut(self, end: int) -> None:
        """Remove all entries from `end` on, durably.

        Raises OSError; then the log takes no more entries.
        """

    def sync(self) -> None:
        """Make all entries durable. Raises OSError; then none more is durable."""


class HardStateFace(Protocol):
    """The term and the vote of a member."""

    @property
    def term(self) -> int:
        """The newest term."""

    @property
    def vote(self) -> int | None:
        """The member that was voted for in this term."""

    def save(self, term: int, vote: int | None) -> None:
        """Make a term and a vote durable.

        Raises OSError; then the member sends nothing that depends on them.
        """
