"""Keep the newest entries of a log in memory, so that sending them reads no file."""

from bisect import bisect_right
from collections.abc import Sequence

from tornpage.impl.raft.entry_codec import HEADER_BYTES
from tornpage.impl.raft.faces import LogFace
from tornpage.impl.raft.messages import Carried

__all__ = ["RecentEntries"]

_BATCHES_MAX = 8
"""Batches that were read from files are kept: a leader sends the same one again until its receiver confirms it."""


class RecentEntries:
    """A log of which about `bytes_max` to twice as many bytes of new entries are in memory."""

    def __init__(self, log: LogFace, bytes_max: int) -> None:
        self._log = log
        self._bytes_max = bytes_max
        self._batches: dict[tuple[int, int], tuple[Carried, ...]] = {}
        self._first = log.end
        self._forgotten = 0
        self._newest: list[Carried] = []
        self._totals: list[int] = []

    @property
    def end(self) -> int:
        """The number of entries."""
        return self._log.end

    @property
    def synced(self) -> int:
        """The number of first entries that are durable."""
        return self._log.synced

    def term_at(self, place: int) -> int:
        """Return the term of an entry."""
        return self._log.term_at(place)

    def entries(self, begin: int, size_bytes_max: int) -> tuple[Carried, ...]:
        """Return entries from `begin` on, with about so many bytes of bodies.

        At least one entry is returned if there is one. Fewer than would fit are returned where the entries in memory
        begin, and for a batch that was read from files before.
        """
        at = begin - self._first
        if at >= 0:
            before = self._totals[at - 1] if at else self._forgotten
            end = bisect_right(self._totals, before + size_bytes_max, lo=at)
            return tuple(self._newest[at : max(end, at + 1)])
        key = begin, size_bytes_max
        found = self._batches.get(key)
        if found is None:
            found = self._log.entries(begin, size_bytes_max)
            if len(self._batches) >= _BATCHES_MAX:
                del self._batches[next(iter(self._batches))]
            self._batches[key] = found
        return found

    def append(self, entries: Sequence[Carried]) -> None:
        """Append entries, not durable yet. Raises OSError."""
        self._log.append(entries)
        total = self._totals[-1] if self._totals else self._forgotten
        for entry in entries:
            total += HEADER_BYTES + len(entry.body)
            self._totals.append(total)
        self._newest += entries
        if total - self._forgotten > 2 * self._bytes_max:
            count = bisect_right(self._totals, total - self._bytes_max)
            if count:  # the oldest entry may be longer than the limit
                self._first, self._forgotten = self._first + count, self._totals[count - 1]
                del self._newest[:count], self._totals[:count]

    def cut(self, end: int) -> None:
        """Remove all entries from `end` on, durably. Raises OSError."""
        self._log.cut(end)
        self._forget()

    def sync(self) -> None:
        """Make all entries durable. Raises OSError."""
        self._log.sync()

    def _forget(self) -> None:
        self._first, self._forgotten = self._log.end, 0
        self._newest.clear()
        self._totals.clear()
        self._batches.clear()
