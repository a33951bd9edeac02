"""Keep log, term and vote of a member in memory, for searches over states."""

from collections.abc import Sequence

from tornpage.impl.raft.messages import Carried

__all__ = ["MemoryHardState", "MemoryLog"]


class MemoryLog:
    """A log in memory. One message carries up to `batch` entries, whatever their sizes."""

    def __init__(self, entries: Sequence[Carried], synced: int, batch: int) -> None:
        self.rows = list(entries)
        self.synced = synced
        self._batch = batch

    @property
    def end(self) -> int:
        """The number of entries."""
        return len(self.rows)

    def term_at(self, place: int) -> int:
        """Return the term of an entry."""
        return self.rows[place].term

    def entries(self, begin: int, size_bytes_max: int) -> tuple[Carried, ...]:
        """Return up to `batch` entries from `begin` on."""
        return tuple(self.rows[begin : begin + self._batch])

    def append(self, entries: Sequence[Carried]) -> None:
        """Append entries."""
        self.rows += entries

    def cut(self, end: int) -> None:
        """Remove all entries from `end` on."""
        del self.rows[end:]
        self.synced = min(self.synced, end)

    def sync(self) -> None:
        """Make all entries durable."""
        self.synced = len(self.rows)


class MemoryHardState:
    """A term and a vote in memory. `lasting` is what a crash leaves."""

    def __init__(self, term: int, vote: int | None) -> None:
        self.term, self.vote = term, vote
        self.lasting = term, vote

    def save(self, term: int, vote: int | None) -> None:
        """Keep a term and a vote."""
        self.term, self.vote = term, vote
        self.lasting = term, vote
