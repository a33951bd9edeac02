"""One index file: slots, chains of entries, and a header that is written last.

One thread puts, any thread reads. A reader takes a slot and the header together, while no put runs; the chain below a
slot never changes. Chains are followed only to strictly smaller numbers, so damage cannot make one loop.

A file of the default size has 420 MB. It is sparse like RocketMQ's, but blocks are allocated some MiB before the
mapping is written there. A full disk is therefore an error of a put and never SIGBUS, and the first key does not
allocate all 420 MB. Only used pages are touched. Source: `IndexFile`.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

from tornpage.impl.config.policy import FlushPolicy
from tornpage.impl.guards import MakeGuard
from tornpage.impl.index.index_entries import ENTRY, ENTRY_BYTES, PLAIN_ENTRIES, SLOT, SLOT_BYTES, IndexEntries
from tornpage.impl.index.index_layout import HEADER_BYTES, IndexHeader, IndexLayout, may_lie
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.dispatching import IndexPuts

__all__ = ["ALL_TIMES", "NO_TIMES", "IndexFile", "Times"]

_RESERVE_BYTES = 4 << 20
"""Blocks are allocated this many bytes ahead of the entries, room for 200,000 of them."""

_CHUNK_BYTES = 1 << 16

_LOOK_BYTES = 1 << 20
"""This many zeros end the search for entries that a crash left after the last one; later puts overwrite them anyway."""

_AT_ONCE = range(64)
"""This many entries of a chain are walked before the first offset is taken."""

_unpack_entry = ENTRY.unpack_from
_unpack_slot = SLOT.unpack_from

Times = tuple[int, int]
"""The least and the greatest store time, in milliseconds."""

ALL_TIMES: Times = (-(1 << 63), (1 << 63) - 1)
NO_TIMES: Times = ((1 << 63) - 1, -(1 << 63))


class IndexFile:
    """Owns one file of full size; `entries` are the loops that it uses.

    `header` is replaced as a whole. `times` limits the store times of the entries. Until the file was compared with the
    log (`is_proven`) it covers all times.
    """

    def __init__(
        self,
        files: Files,
        file: OpenFile,
        *,
        layout: IndexLayout,
        entries: IndexEntries = PLAIN_ENTRIES,
        mapped_file: Callable[..., MappedFile] = MappedFile,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._files = files
        self._file = file
        self._entries = entries
        self._reserved_bytes = 0
        self._guard = guard()
        self.layout = layout
        self._entries_at = layout.entries_position
        self.header = IndexHeader.decode(files.read(file, 0, HEADER_BYTES), entries_max=layout.entries_max)
        self.mapped: MappedFile = mapped_file(
            files, file, base_offset=0, written_position=layout.position_of(self.header.next_number)
        )
        self.times = ALL_TIMES
        self.is_proven = False

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._file.path

    @property
    def is_full(self) -> bool:
        """Whether the next entry belongs in the next file."""
        return self.header.next_number >= self.layout.entries_max

    @contextlib.contextmanager
    def parts(self) -> Iterator[tuple[memoryview, memoryview]]:
        """Yield slots and entries as the loops expect them."""
        position = self.layout.entries_position
        with self.mapped.view[HEADER_BYTES:position] as heads, self.mapped.view[position:] as entries:
            yield heads, entries

    # ---- writing -------------------------------------------------------------------------------------------------

    def begin(self, header: IndexHeader) -> None:
        """Prepare a new file for its first put. Raises OSError if the disk has no room."""
        self._reserve(header.next_number)
        self._write_header(header)
        self.times, self.is_proven = NO_TIMES, True

    def put(self, puts: IndexPuts, start: int) -> int:
        """Write puts from index `start` on while there is room.

        Return the index of the first one left over. Raises OSError if the disk has no room; nothing was put then.
        """
        header = self.header
        number = header.next_number
        end = min(len(puts.hashes), start + self.layout.entries_max - number)
        self._reserve(number + end - start)
        with self._guard, self.parts() as (heads, entries):
            used, least, greatest = self._entries.put_entries(
                heads, entries, number, header.begin_timestamp, *puts, start, end, self._files.mark
            )
            first_timestamp, first_offset = header.begin_timestamp, header.begin_offset
            if number == 1:
                first_timestamp, first_offset = int(puts.store_timestamps[start]), int(puts.offsets[start])
            self.times = min(self.times[0], int(least)), max(self.times[1], int(greatest))
            self._write_header(
                IndexHeader(
                    begin_timestamp=first_timestamp,
                    end_timestamp=int(puts.store_timestamps[end - 1]),
                    begin_offset=first_offset,
                    end_offset=int(puts.offsets[end - 1]),
                    slots_used=header.slots_used + used,
                    next_number=number + end - start,
                )
            )
        return end

    def _write_header(self, header: IndexHeader) -> None:
        self.mapped.view[:HEADER_BYTES] = header.encode()
        self._files.mark("header")
        self.header = header
        self.mapped.written_position = self.layout.position_of(header.next_number)  # last: a flush covers what is below

    def _reserve(self, end_number: int) -> None:
        """Allocate blocks for everything before an entry, and some more."""
        position = self.layout.position_of(end_number)
        if position > self._reserved_bytes:
            size_bytes = min(self.layout.file_bytes, position + _RESERVE_BYTES)
            self._files.allocate(self._file, size_bytes)
            self._reserved_bytes = size_bytes

    # ---- mending -------------------------------------------------------------------------------------------------

    def restore(self, header: IndexHeader, heads: memoryview, times: Times) -> bool:
        """Write this header and these slots, and zeros after the last entry.

        `times` are those of its entries. Returns whether a counted part was wrong; leftovers of a kill after the last
        entry do not count. Writes only what differs, and never through the mapping: blocks may be missing, and a full
        disk must not fail for those that exist. The file is proven afterwards. No reader may use it meanwhile. Raises
        OSError.
        """
        stored = self.header
        end = self.layout.position_of(header.next_number)
        was_wrong = not stored.agrees_with(header) and max(stored.next_number, header.next_number) > 1
        was_wrong |= self._read(0, HEADER_BYTES) != stored.encode()  # its count is impossible
        was_wrong |= self._restore_slots(heads)
        was_wrong |= self._erase(self.layout.entries_position, self.layout.position_of(1))
        self._erase_after(end, self.layout.position_of(stored.next_number))
        if self._read(0, HEADER_BYTES) != header.encode():
            self._files.pwrite(self._file, header.encode(), 0)
        self.header, self.times, self.is_proven = header, times, True
        self.mapped.written_position, self.mapped.flushed_position = end, 0
        return was_wrong

    def rewrite_from(self, number: int) -> None:
        """Rewrite header, slots and the entries from a number on with equal bytes. Raises OSError."""
        self.mapped.rewrite(0, self.layout.entries_position)
        self.mapped.rewrite(self.layout.position_of(number), self.layout.position_of(self.header.next_number))

    def _restore_slots(self, heads: memoryview) -> bool:
        """Write the slots that differ; return whether one of them led to a counted entry."""
        was_wrong = False
        for start in range(0, len(heads), _CHUNK_BYTES):
            position = HEADER_BYTES + start
            wanted = bytes(heads[start : start + _CHUNK_BYTES])
            found = self._read(position, position + len(wanted))
            if found == wanted:
                continue
            self._files.pwrite(self._file, wanted, position)
            was_wrong |= any(
                number != head and number < self.header.next_number
                for (number,), (head,) in zip(SLOT.iter_unpack(found), SLOT.iter_unpack(wanted), strict=True)
            )
        return was_wrong

    def _erase_after(self, position: int, known_end: int) -> None:
        """Erase everything after the last entry, to `known_end` and to a long run of zeros."""
        clean_bytes = 0
        while position < self.layout.file_bytes and (position < known_end or clean_bytes < _LOOK_BYTES):
            end = min(position + _CHUNK_BYTES, self.layout.file_bytes)
            clean_bytes = 0 if self._erase(position, end) else clean_bytes + end - position
            position = end

    def _erase(self, start: int, end: int) -> bool:
        """Zero a range unless it is zero already; return whether it was not."""
        holds_something = self._read(start, end).count(0) < end - start
        if holds_something:
            self.mapped.zero(start, end - start)
        return holds_something

    def _read(self, start: int, end: int) -> bytes:
        return self._files.read(self._file, start, end - start)

    # ---- reading -------------------------------------------------------------------------------------------------

    def entry(self, number: int) -> tuple[int, int, int, int]:
        """Return hash, offset, time difference and previous number of an entry."""
        found: tuple[int, int, int, int] = ENTRY.unpack_from(self.mapped.view, self.layout.position_of(number))
        return found

    def offsets_of(self, code: int, begin_ms: int, end_ms: int) -> Iterable[int]:
        """Return the offsets of a hash, newest put first.

        Those certainly outside the time window are left out. A closed file yields nothing more.
        """
        mapped = self.mapped
        if not mapped.hold():
            return ()
        try:
            with self._guard:
                header, (least, greatest) = self.header, self.times
                if greatest < begin_ms or end_ms < least:
                    return ()  # also before the first put, when blocks may be missing
                (number,) = _unpack_slot(mapped.view, HEADER_BYTES + code % self.layout.slots * SLOT_BYTES)
            # without a proof the count of the header may be wrong, and only the record decides
            proven = self.is_proven
            limit = header.next_number if proven else self.layout.entries_max
            dated = header if proven and (least < begin_ms or end_ms < greatest) else None
            offsets, number, limit = self._walk(number, limit, code, dated, begin_ms, end_ms)
        finally:
            mapped.release()
        return self._long(offsets, number, limit, code, dated, begin_ms, end_ms) if 0 < number < limit else offsets

    def _walk(
        self, number: int, limit: int, code: int, dated: IndexHeader | None, begin_ms: int, end_ms: int
    ) -> tuple[list[int], int, int]:
        """Walk some entries of a chain, from a number below a limit on.

        The times of entries are compared if `dated` is the header. Returns the offsets of the hash, and number and
        limit for the next walk. The chain has ended if that number is not between 0 and that limit.
        """
        view, entries_at, offsets = self.mapped.view, self._entries_at, []
        for _ in _AT_ONCE:
            if not 0 < number < limit:
                break
            found, offset, difference, previous = _unpack_entry(view, entries_at + number * ENTRY_BYTES)
            if found == code and (dated is None or may_lie(dated, number, difference, begin_ms, end_ms)):
                offsets.append(offset)
            number, limit = previous, number
        return offsets, number, limit

    def _long(
        self, offsets: list[int], number: int, limit: int, code: int, dated: IndexHeader | None, *times: int
    ) -> Iterator[int]:
        """Yield the first offsets of a long chain, then walk on as they are taken."""
        while True:
            yield from offsets
            if not 0 < number < limit or not self.mapped.hold():
                return
            try:
                offsets, number, limit = self._walk(number, limit, code, dated, *times)
            finally:
                self.mapped.release()

    # ---- life ----------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """The number of entries that are not durable yet."""
        durable_position = max(self.mapped.flushed_position, self.layout.position_of(1))
        return (self.mapped.written_position - durable_position) // ENTRY_BYTES

    def flush(self, least_pages: int) -> bool:
        """Flush by a page rule; return whether there was a sync. Raises OSError.

        The owner syncs the name of a new file. Pages of entries are counted, although each entry also changes one of
        the slots.
        """
        is_due = FlushPolicy.is_due(
            written_position=self.mapped.written_position,
            flushed_position=self.mapped.flushed_position,
            least_pages=least_pages,
            file_is_full=self.is_full,
        )
        if is_due:
            self.mapped.flush()
        return is_due

    def close(self) -> None:
        """Unmap and close; the last reader ends the mapping."""
        self.mapped.close()

    def check(self) -> None:
        """Assert that header and watermarks agree."""
        self.mapped.check()
        assert bytes(self.mapped.view[:HEADER_BYTES]) == self.header.encode()
        assert self.mapped.written_position == self.layout.position_of(self.header.next_number)
        assert 0 <= self.header.slots_used < self.header.next_number <= self.layout.entries_max
