"""Comparing the index with the log.

What is right stays, and from the first difference on it is rebuilt. The files in the order of their names form one
sequence of entries: every file but the last is full, and entry 1 of a file begins where the previous header ended.
Entries of expired records may come first; they stay while they are consistent. From the first surviving record on,
every entry must equal the put that the log requires, byte for byte. Then slots and header are compared with those that
the entries require.

One time difference cannot be verified: entry 1 of the oldest file is relative to a file that may be deleted. Cost:
every entry is read once, with a table as large as the slots. Source: none, RocketMQ deletes or trusts whole files
(`IndexService.load`, holes I1 to I5).
"""

from collections.abc import Callable, Mapping, Sequence

from tornpage.impl.index.index_entries import SLOT_BYTES, IndexEntries
from tornpage.impl.index.index_file import ALL_TIMES, NO_TIMES, IndexFile, Times
from tornpage.impl.index.index_layout import IndexFileProof, IndexHeader
from tornpage.impl.log.loading import Finding
from tornpage.impl.message.dispatching import IndexPuts

__all__ = ["IndexReconcile"]


_NOTHING_PROVEN = IndexFileProof("", IndexHeader(), NO_TIMES, 0)


class IndexReconcile:
    """One walk along the files, oldest first. `remove` deletes the last file.

    `proven` gives by path the entries whose checksums hold; if it is given, exactly those come before the compared
    ones.

    `findings` lists what was rewritten; entries that are only missing at the end are not listed.
    """

    def __init__(
        self,
        index_files: Sequence[IndexFile],
        *,
        entries: IndexEntries,
        from_offset: int,
        proven: Mapping[str, IndexFileProof] | None = None,
        remove: Callable[[IndexFile], None],
    ) -> None:
        self.findings: list[Finding] = []
        self._index_files = list(index_files)
        self._entries = entries
        self._from_offset = from_offset
        self._proven = proven
        self._remove = remove
        self._settled = not index_files
        self._at = -1
        self._last = IndexHeader()
        self._times: Times = NO_TIMES
        if index_files:
            self._next_file()

    # ---- walking -------------------------------------------------------------------------------------------------

    def match(self, puts: IndexPuts) -> int:
        """Compare the next puts of the log, in log order.

        Return the index of the first one to put.
        """
        index, count = 0, len(puts.hashes)
        while not self._settled and index < count:
            index = self._match(puts, index, count)
            if self._number == self._stored and self._file.is_full and self._at + 1 < len(self._index_files):
                self._next_file()
            elif index < count:
                self.settle()
        return index

    def _match(self, puts: IndexPuts, start: int, count: int) -> int:
        """Compare with the rest of the entries in this file."""
        end = min(count, start + self._stored - self._number)
        if start == end:
            return start
        with self._file.parts() as (_, entries):
            index, used, least, greatest = self._entries.match_entries(
                self._heads, entries, self._number, self._begin_of(puts, start), *puts, start, end
            )
        if index > start:
            if self._number == 1:
                self._begin_timestamp = int(puts.store_timestamps[start])
            self._number += index - start
            self._used += used
            self._times = min(self._times[0], int(least)), max(self._times[1], int(greatest))
            self._end_timestamp = int(puts.store_timestamps[index - 1])
        return index

    def _begin_of(self, puts: IndexPuts, start: int) -> int:
        """Return the time to which the next entry's difference is relative."""
        if self._number > 1:
            return self._begin_timestamp
        if self._at:
            return self._last.end_timestamp
        return int(puts.store_timestamps[start]) - 1000 * self._file.entry(1)[2] if self._file.entry(1)[2] else 0

    def _next_file(self) -> None:
        """Finish this file.

        Continue with the next one that holds more than consistent entries of expired records.
        """
        while True:
            if self._at >= 0:
                self._finish()
            self._at += 1
            self._file = self._index_files[self._at]
            stored = self._file.header
            self._stored, self._number, self._used = stored.next_number, 1, 0
            self._heads = memoryview(bytearray(SLOT_BYTES * self._file.layout.slots))
            self._begin_timestamp, self._end_timestamp = stored.begin_timestamp, stored.end_timestamp
            self._times = NO_TIMES
            self._trace()
            if self._number < self._stored or not self._file.is_full or self._at + 1 == len(self._index_files):
                return

    def _trace(self) -> None:
        """Skip entries of records before the first compared one; their times stay unknown."""
        proven = None if self._proven is None else self._proven.get(self._file.path, _NOTHING_PROVEN)
        end = self._stored if proven is None else min(proven.header.next_number, self._stored)
        with self._file.parts() as (_, entries):
            self._number, self._used = self._entries.trace_entries(
                self._heads, entries, 1, end, self._last.end_offset, self._from_offset
            )
        if self._number > 1:
            self._times = ALL_TIMES if proven is None else proven.times
        if proven is not None and self._number > 1:
            self._begin_timestamp, self._end_timestamp = proven.header.begin_timestamp, proven.header.end_timestamp
        elif 1 < self._number < self._stored:
            difference = self._file.entry(self._number - 1)[2] if self._number > 2 else 0
            self._end_timestamp = self._begin_timestamp + 1000 * difference

    # ---- mending -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Erase everything past the entries that matched; nothing is compared afterwards.

        Raises OSError if that fails; it may be called again then.
        """
        if self._settled:
            return
        while self._at + 1 < len(self._index_files):
            self._remove_last("does not continue the log: removed")
        if self._number == 1 and self._file.header != self._header():
            # a full disk may fail to write a header, never to remove a file
            self._remove_last("does not match the log: removed")
        else:
            if self._number < self._stored:
                offset = self._file.entry(self._number)[1]
                self._note(self._file, offset, f"does not match the log from entry {self._number} on: rebuilt")
            self._finish()
        self._settled = True

    def _remove_last(self, why: str) -> None:
        """Remove the last file, with a finding unless it never had an entry."""
        index_file = self._index_files[-1]
        self._remove(index_file)
        self._index_files.pop()
        if index_file.header != index_file.header.inherited():
            self._note(index_file, index_file.header.begin_offset, why)

    def _finish(self) -> None:
        header = self._header()
        was_cut = header.next_number < self._stored
        if self._file.restore(header, self._heads, self._times) and not was_cut:
            self._note(self._file, header.begin_offset, "had slots or a header that its entries contradict: repaired")
        self._last = header

    def _header(self) -> IndexHeader:
        """Return the header that this file must have."""
        number, stored = self._number, self._file.header
        if number > 1:
            return IndexHeader(
                begin_timestamp=self._begin_timestamp,
                end_timestamp=self._end_timestamp,
                begin_offset=self._file.entry(1)[1],
                end_offset=self._file.entry(number - 1)[1],
                slots_used=self._used,
                next_number=number,
            )
        if self._at:
            return self._last.inherited()
        # the file before the oldest one may be deleted: its inherited values stay unless they would hide puts
        is_inherited = (
            stored.next_number == 1 and stored == stored.inherited() and stored.end_offset < self._from_offset
        )
        return stored if is_inherited else IndexHeader()

    def _note(self, index_file: IndexFile, offset: int, what: str) -> None:
        self.findings.append(Finding("note", "index_rebuilt", index_file.path, offset, f"{index_file.path} {what}"))
