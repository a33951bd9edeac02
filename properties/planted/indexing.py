"""Bugs of the index: what is put into it, what is kept of it, and what its times say (RMQ-B.. and 4.9.3)."""

import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from impl.derived_floor import IndexFileProof
from impl.dispatching import IndexPuts
from impl.index_entries import PLAIN_ENTRIES, IndexEntries, match_entries, put_entries, trace_entries
from impl.index_file import IndexFile
from impl.index_layout import IndexHeader, may_lie
from impl.index_service import IndexService
from impl.parts import Parts

__all__ = ["BUGS"]

_ANY_TIME = -(1 << 62), 1 << 62


class _OtherTimes(IndexFile):
    """Whether an entry lies in a time window is decided by the bug: `_lies(number, difference, begin_ms, end_ms)`."""

    _looked_at = 0, 0

    def entry(self, number: int) -> tuple[int, int, int, int]:
        found = super().entry(number)
        self._looked_at = number, found[2]
        return found

    def offsets_of(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        least, greatest = self.times
        if begin_ms <= greatest and least <= end_ms:
            for offset in super().offsets_of(code, *_ANY_TIME):
                if not self.is_proven or self._lies(*self._looked_at, begin_ms, end_ms):
                    yield offset

    def _lies(self, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
        raise NotImplementedError


class _TimeSinceTheFileBefore(_OtherTimes):
    """The first entry of a later file counts as so much younger as it came after the file before (4.9.3)."""

    def _lies(self, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
        return may_lie(self.header, number + 1, difference, begin_ms, end_ms)


class _WholeSeconds(_OtherTimes):
    """An entry is judged by its own time, which is cut to whole seconds (4.9.3)."""

    def _lies(self, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
        seconds_ms = 1000 * difference if number > 1 else 0
        return begin_ms <= self.header.begin_timestamp + seconds_ms <= end_ms


class _EndsAtAnOlderTime(IndexFile):
    """A chain is given up at the first entry that is older than the window (4.9.3)."""

    _begin_ms = 0

    def offsets_of(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        self._begin_ms = begin_ms
        return super().offsets_of(code, begin_ms, end_ms)

    def entry(self, number: int) -> tuple[int, int, int, int]:
        code, offset, difference, previous = super().entry(number)
        is_older = number > 1 and self.header.begin_timestamp + 1000 * difference < self._begin_ms
        return code, offset, difference, 0 if is_older else previous


def _each_counts(*arguments: Any) -> tuple[int, int, int]:
    """Put, and count a slot as used for each entry."""
    _, least, greatest = put_entries(*arguments)
    start, end = arguments[7:9]
    return end - start, least, greatest


def _each_is_expected(*arguments: Any) -> tuple[int, int, int, int]:
    index, _, least, greatest = match_entries(*arguments)
    return index, index - arguments[7], least, greatest


def _each_is_traced(*arguments: Any) -> tuple[int, int]:
    number, _ = trace_entries(*arguments)
    return number, number - arguments[2]


class _OnlyFullFilesFlushed(IndexService):
    """The last file is flushed when it is full, not before, not even at a clean exit (RMQ-B48)."""

    def flush(self, least_pages: int = 0) -> int:
        for index_file in self._index_files:
            if index_file.is_full:
                index_file.flush(least_pages)
        if self._has_unsynced_names:
            self._sync_names()
        return 0


class _NamesNotSynced(IndexService):
    """The names of new files are left to chance."""

    def _sync_names(self) -> None:
        self._has_unsynced_names = False


class _UnlocksWhatItDoesNotHold(IndexService):
    """A file that cannot be made stays, and the lock that was never taken is given back, which raises (RMQ-B51)."""

    def _make(self, header: IndexHeader) -> IndexFile:
        try:
            return super()._make(header)
        except OSError as error:
            raise RuntimeError("attempt to unlock the write lock, not locked by this thread") from error

    def _give_up(self, path: str) -> None:
        """What was begun stays."""


class _NamedByTheMillisecond(IndexService):
    """Two files made in one millisecond have one name (4.9.3)."""

    def _make(self, header: IndexHeader) -> IndexFile:
        self._last_name = ""
        return super()._make(header)


class _EqualIsNotSkipped(IndexService):
    """A record that is told again is indexed again when it was the last one (4.9.3)."""

    def _present(self, puts: IndexPuts) -> int:
        return sum(offset < self.last_offset for offset in puts.offsets)


class _NewestFileDropped(IndexService):
    """An open drops the newest file, and takes up the log behind what that held (hole I1 of 4.9.3)."""

    _kept = _lost = 0

    def begin_reconcile(
        self, from_offset: int, *, durable_timestamp: int = 0, proofs: Sequence[IndexFileProof] | None = None
    ) -> None:
        if self._index_files:
            proven = {posixpath.basename(proof.path): proof.header.next_number for proof in proofs or ()}
            told = [
                index_file.header.next_number - proven.get(posixpath.basename(index_file.path), 1)
                for index_file in self._index_files
            ]
            self._kept, self._lost = sum(told[:-1]), told[-1]
            self._remove(self._index_files[-1])
        super().begin_reconcile(from_offset, durable_timestamp=durable_timestamp, proofs=proofs)

    def reconcile(self, puts: IndexPuts) -> None:
        kept = min(self._kept, len(puts.hashes))
        lost = min(self._lost, len(puts.hashes) - kept)
        self._kept, self._lost = self._kept - kept, self._lost - lost
        for part in (slice(kept), slice(kept + lost, None)):
            super().reconcile(IndexPuts(*(column[part] for column in puts)))


BUGS = (
    ("RMQ-B48", "the last index file is not flushed, not even at a clean exit", 5,
     Parts({IndexService: _OnlyFullFilesFlushed})),
    ("RMQ-B49", "each entry counts as another slot that is used", 5,
     Parts({PLAIN_ENTRIES: IndexEntries(_each_counts, _each_is_expected, _each_is_traced)})),
    ("RMQ-B51", "an index file that cannot be made ends dispatch with an exception, and stays", 8,
     Parts({IndexService: _UnlocksWhatItDoesNotHold})),
    ("inherited-time", "the first entry of a later index file counts as younger than it is", 5,
     Parts({IndexFile: _TimeSinceTheFileBefore})),
    ("whole-seconds", "entries of the index are judged by times cut to whole seconds", 5,
     Parts({IndexFile: _WholeSeconds})),
    ("ends-at-an-older-time", "a chain of the index is given up at the first entry before the window", 5,
     Parts({IndexFile: _EndsAtAnOlderTime})),
    ("one-name-a-millisecond", "two index files made in one millisecond have one name", 16,
     Parts({IndexService: _NamedByTheMillisecond})),
    ("equal-is-not-skipped", "the last record that was indexed is indexed again when it is told again", 5,
     Parts({IndexService: _EqualIsNotSkipped})),
    ("newest-index-file-dropped", "an open drops the newest index file and does not make it anew", 5,
     Parts({IndexService: _NewestFileDropped})),
    ("index-names-not-synced", "the names of new index files are left to chance", 5,
     Parts({IndexService: _NamesNotSynced})),
)  # fmt: skip
