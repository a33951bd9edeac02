"""The index of a store: which offsets a key may be at.

Entries are put in the order of the log, into the last file until it is full. What was put is durable after the next
`flush`, names included.

The index is derived: `load` believes sizes and names only, and between `begin_reconcile` and `end_reconcile` the puts
that the log asks for decide what stays. `put`, reconciliation and `load` come from one thread at a time; `candidates`
and `flush` from any. Source: `IndexService`.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from tornpage.impl.index.index_directory import IndexDirectory
from tornpage.impl.index.index_reconcile import IndexReconcile
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_directories import directory_of
from tornpage.impl.message.dispatching import IndexPuts
from tornpage.impl.recovery.derived_floor import IndexFileProof

__all__ = ["IndexService"]


class IndexService(IndexDirectory):
    """The entries of the files; `place` and `settings` are those of IndexDirectory."""

    def __init__(self, *place: Any, **settings: Any) -> None:
        super().__init__(*place, **settings)
        self._reconcile: IndexReconcile | None = None
        self._durable_timestamp = 0

    @property
    def last_offset(self) -> int:
        """Physical offset of the record indexed last, 0 without any."""
        index_files = self._index_files
        return index_files[-1].header.end_offset if index_files else 0

    @property
    def last_store_timestamp(self) -> int:
        """Store time of the record indexed last, 0 without any."""
        index_files = self._index_files
        return index_files[-1].header.end_timestamp if index_files else 0

    # ---- reconciling ---------------------------------------------------------------------------------------------

    def begin_reconcile(
        self, from_offset: int, *, durable_timestamp: int = 0, proofs: Sequence[IndexFileProof] | None = None
    ) -> None:
        """Begin to compare with the log from an offset on; entries before it stay as far as they are consistent.

        `durable_timestamp` is the store time up to which the index is said to be durable: a put before it that is
        missing is worth a finding. With `proofs` the entries that these count are those before it, and there are no
        others.
        """
        self._durable_timestamp = durable_timestamp
        proven = None
        if proofs is not None:
            proven = {f"{directory_of(self._directory)}/{proof.path}": proof for proof in proofs}
        self._reconcile = IndexReconcile(
            self._index_files, entries=self._entries, from_offset=from_offset, proven=proven, remove=self._remove
        )

    def reconcile(self, puts: IndexPuts) -> None:
        """Have the index hold the next puts of the log, in log order. Raises OSError when the disk has no room."""
        assert self._reconcile is not None
        start = self._reconcile.match(puts)
        if start < len(puts.hashes):
            self._note_missing(puts, start)
            self._append(puts, start)

    def end_reconcile(self) -> bool:
        """Erase what the log did not ask for; return whether anything had to be made anew that counted."""
        assert self._reconcile is not None
        self._reconcile.settle()
        findings, self._reconcile = self._reconcile.findings, None
        self.findings += findings
        return bool(findings)

    def _note_missing(self, puts: IndexPuts, start: int) -> None:
        """Say once that the index does not have what it is said to have."""
        assert self._reconcile is not None
        if not self._durable_timestamp or self._reconcile.findings:
            return
        if min(puts.store_timestamps[start:]) >= self._durable_timestamp:
            return
        message = f"{self._directory} had no entry for a durable record at {puts.offsets[start]}: made anew"
        self._reconcile.findings.append(
            Finding("note", "index_rebuilt", self._directory, int(puts.offsets[start]), message)
        )

    # ---- putting -------------------------------------------------------------------------------------------------

    def put(self, puts: IndexPuts) -> None:
        """Put entries in the order of the log. Raises OSError when the disk has no room for another file or entry.

        The same puts may then come again, or more behind them: those that are there already are not doubled.
        """
        self._append(puts, self._present(puts))

    def _append(self, puts: IndexPuts, start: int) -> None:
        while start < len(puts.hashes):
            start = self._writable_file().put(puts, start)

    def _present(self, puts: IndexPuts) -> int:
        """Return how many of the puts were done before: those of earlier records, and those at the end of the index."""
        last_offset = self.last_offset
        if not len(puts.offsets) or puts.offsets[0] > last_offset:
            return 0
        start = bisect_left(puts.offsets, last_offset)
        for code in self._hashes_at(last_offset):
            if start == len(puts.offsets) or (puts.hashes[start], puts.offsets[start]) != (code, last_offset):
                break
            start += 1
        return start

    def _hashes_at(self, offset: int) -> list[int]:
        """Return the hashes of the last entries that are of the record at an offset, in put order."""
        hashes: list[int] = []
        for index_file in reversed(self._index_files):
            for number in range(index_file.header.next_number - 1, 0, -1):
                code, found, _, _ = index_file.entry(number)
                if found != offset:
                    return hashes[::-1]
                hashes.append(code)
        return hashes[::-1]

    # ---- reading -------------------------------------------------------------------------------------------------

    def candidates(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Yield the physical offsets that the index notes for a hash, newest first.

        None is missing whose record was stored in [begin_ms, end_ms]; others may be among them (another key of the same
        hash, a time just outside, an expired record), so the record itself has to be looked at. An offset that a
        record has twice comes once. Cost: the slot's chain in every file whose times meet the window.
        """
        last = None
        for index_file in reversed(self._index_files):
            for offset in index_file.offsets_of(code, begin_ms, end_ms):
                if offset != last:
                    last = offset
                    yield offset
