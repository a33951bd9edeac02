"""Define bugs of the index: its entries, its queries, and what an open keeps of it."""

import posixpath
import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.index.index_entries import (
    PLAIN_ENTRIES,
    SLOT,
    SLOT_BYTES,
    IndexEntries,
    match_entries,
    put_entries,
    trace_entries,
)
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import HEADER_BYTES, IndexFileProof, IndexHeader, may_lie
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.dispatching import Dispatched, IndexPuts
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.parts import Parts
from tornpage.impl.read.message_query import KeyIndex, MessageQuery, QueryMessageResult
from tornpage.impl.read.read_buffer import RecordBuffer
from tornpage.model.operations import Close, Crash, Open, Put, QueryKey, RefuseFile
from tornpage.properties.planted.programs import FIRST_LOG_FILE, KEYED, LOG_LOST, PUT, REPUT, SMALL, losing, page_of
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]

_I64 = struct.Struct(">q")
_POINTER_BYTES = 8
_STORE_TIMESTAMP_AT = 56
_TWO_MESSAGES_BYTES = 8 << 20


def _entries_of_slot(index_file: IndexFile, code: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, hash, offset and time difference of the entries in a slot, newest first."""
    layout = index_file.layout
    (number,) = SLOT.unpack_from(index_file.mapped.view, HEADER_BYTES + code % layout.slots * SLOT_BYTES)
    limit = index_file.header.next_number if index_file.is_proven else layout.entries_max
    while 0 < number < limit:
        found, offset, difference, previous = index_file.entry(number)
        yield number, found, offset, difference
        number, limit = previous, number


class _OtherTimes(IndexFile):
    """Let a bug decide whether an entry lies in a time window.

    Subclasses define `_lies(number, difference, begin_ms, end_ms)`.
    """

    def offsets_of(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        least, greatest = self.times
        if begin_ms <= greatest and least <= end_ms:
            for number, found, offset, difference in _entries_of_slot(self, code):
                if found == code and (not self.is_proven or self._lies(number, difference, begin_ms, end_ms)):
                    yield offset

    def _lies(self, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
        raise NotImplementedError


# ---- entries and files -----------------------------------------------------------------------------------------------


class _TimeFromPreviousFile(_OtherTimes):
    """Date the first entry of a later file by its distance from the previous file (4.9.3)."""

    def _lies(self, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
        return may_lie(self.header, number + 1, difference, begin_ms, end_ms)


class _WholeSeconds(_OtherTimes):
    """Judge an entry by its own time, rounded down to whole seconds (4.9.3)."""

    def _lies(self, number: int, difference: int, begin_ms: int, end_ms: int) -> bool:
        seconds_ms = 1000 * difference if number > 1 else 0
        return begin_ms <= self.header.begin_timestamp + seconds_ms <= end_ms


class _ChainEndsEarly(IndexFile):
    """Give up a chain at the first entry older than the time window (4.9.3)."""

    def offsets_of(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        least, greatest = self.times
        if greatest < begin_ms or end_ms < least:
            return
        for number, found, offset, difference in _entries_of_slot(self, code):
            if found == code and (not self.is_proven or may_lie(self.header, number, difference, begin_ms, end_ms)):
                yield offset
            if number > 1 and self.header.begin_timestamp + 1000 * difference < begin_ms:
                return


def _each_counts(*arguments: Any) -> tuple[int, int, int]:
    """Put entries, and count one used slot for each."""
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
    """Flush an index file only when it is full, not even at a clean close (RMQ-B48)."""

    def flush(self, least_pages: int = 0) -> int:
        for index_file in self._index_files:
            if index_file.is_full:
                index_file.flush(least_pages)
        if self._has_unsynced_names:
            self._sync_names()
        return 0


class _NamesNotSynced(IndexService):
    """Leave the names of new files unsynced."""

    def _sync_names(self) -> None:
        self._has_unsynced_names = False


class _WrongUnlock(IndexService):
    """Leave a file whose creation failed (RMQ-B51).

    Then release a lock that was not taken, which raises.
    """

    def _make(self, header: IndexHeader) -> IndexFile:
        try:
            return super()._make(header)
        except OSError as error:
            raise RuntimeError("attempt to unlock the write lock, not locked by this thread") from error

    def _give_up(self, path: str) -> None:
        """Leave the unfinished file."""


class _MillisecondNames(IndexService):
    """Give two files made in one millisecond the same name (4.9.3)."""

    def _make(self, header: IndexHeader) -> IndexFile:
        self._last_name = ""
        return super()._make(header)


class _EqualIndexedAgain(IndexService):
    """Index the last indexed record again when it is dispatched again (4.9.3)."""

    def _present(self, puts: IndexPuts) -> int:
        return sum(offset < (self.last_offset or 0) for offset in puts.offsets)


class _NewestFileDropped(IndexService):
    """Drop the newest file at an open (hole I1 of 4.9.3).

    Indexing resumes after the records that it covered.
    """

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


# ---- queries ---------------------------------------------------------------------------------------------------------


class _EqualHashes(MessageQuery):
    """Return every record that the index names, whatever its key (4.9.3)."""

    def _found(
        self, index: KeyIndex, topic: str, key: str, limit: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        found: dict[int, RecordBuffer] = {}
        with self._reader.session() as session:
            for offset in index.candidates(key_hash(topic, key), begin_ms, end_ms) if key else ():
                size = 0 if offset in found else session.find(offset)
                if size and begin_ms <= session.store_timestamp() <= end_ms and len(found) < limit:
                    found[offset] = session.take(size, session.queue_offset())
            return QueryMessageResult(tuple(found[offset] for offset in sorted(found)), *index.last_update)


class _FirstFew:
    """Limit the number of records that an index names."""

    def __init__(self, index: Any, count: int) -> None:
        self._index = index
        self._count = count

    def candidates(self, *asked: int) -> Any:
        return islice(self._index.candidates(*asked), self._count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


class _LimitBeforeTheKey(MessageQuery):
    """Count messages with another key of the same hash against the limit (4.9.3)."""

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        limit = max(0, min(max_num, self._batch_max))
        index: Any = self._index and _FirstFew(self._index, limit)
        query = MessageQuery(index, self._reader, batch_max=self._batch_max)
        return query.by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)


class _RoundsOverlap(MessageQuery):
    """Continue a short query at the time of its oldest message (4.9.3).

    That message is returned twice.
    """

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        found = super().by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)
        left = min(max_num, self._batch_max) - len(found.messages)
        if not found.messages or left <= 0:
            return found
        oldest_ms = found.messages[0].message().store_timestamp
        more = super().by_key(topic, key, max_num=left, begin_ms=begin_ms, end_ms=oldest_ms)
        return QueryMessageResult(
            more.messages + found.messages, found.index_last_update_timestamp, found.index_last_update_phyoffset
        )


class _UnlimitedAllocation(MessageQuery):
    """Allocate room for the requested message count before applying the limit (RMQ-B52)."""

    def by_key(self, topic: str, key: str, *, max_num: int, begin_ms: int, end_ms: int) -> QueryMessageResult:
        bytearray(_POINTER_BYTES * max(0, max_num))
        return super().by_key(topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)


class _TwoMessagesForATime(MessageQuery):
    """Require the bytes of two of the largest messages before reading a store time (RMQ-B47)."""

    def store_timestamp(self, offset: int) -> int | None:
        rest = self.rest_of_file(offset)
        if rest is None:
            return None
        with rest:
            return super().store_timestamp(offset) if rest.size_bytes >= _TWO_MESSAGES_BYTES else None


class _TimeAfterIPv4(MessageQuery):
    """Read a store time at its position after an IPv4 host (RMQ-B47, its first fix)."""

    def store_timestamp(self, offset: int) -> int | None:
        with self._reader.session() as session:
            if not session.find(offset):
                return None
            timestamp: int = _I64.unpack_from(session.view, session.position + _STORE_TIMESTAMP_AT)[0]
            return timestamp


# ---- the index of an open --------------------------------------------------------------------------------------------


class _AheadStays(IndexService):
    """Keep entries of records that the log lost; they hide new entries (hole I3)."""

    def end_reconcile(self) -> bool:
        walk = self._reconcile
        assert walk is not None
        has_more = not walk._settled and (walk._number < walk._stored or walk._at + 1 < len(walk._index_files))
        if not has_more:
            return super().end_reconcile()
        self._reconcile = None
        return False


class _IndexOfEmptyLogKept(Derived):
    """Remove the queues of an empty log but keep its index (hole I4)."""

    def reconcile(self, log: MappedFileQueue, *args: Any, **kwargs: Any) -> None:
        index = self.index
        if log.max_offset == log.min_offset:
            self.index = None
        super().reconcile(log, *args, **kwargs)
        self.index = index


class _HeaderTrusted(IndexFile):
    """Keep entries past the count in the header, and the slots that point there (hole I5)."""

    def _restore_slots(self, heads: memoryview) -> bool:
        return False

    def _erase_after(self, position: int, known_end: int) -> None:
        """Leave the bytes there."""


class _QueuedIsIndexed(Derived):
    """Treat every queued record as indexed (hole I6).

    Keys of records that are queued but not indexed are lost.
    """

    _queued_end = 0
    _indexed = 0

    def load(self) -> None:
        super().load()
        self._queued_end = max((queue.max_physic_offset for queue in self.queues.all()), default=0)
        self._indexed = (self.index.last_offset or 0) if self.index is not None else 0

    def _reconcile(self, given: Dispatched) -> None:
        offsets = [int(offset) for offset in given.index.offsets]
        kept = [n for n, offset in enumerate(offsets) if offset <= self._indexed or offset >= self._queued_end]
        if len(kept) < len(offsets):
            given = given._replace(index=IndexPuts(*([column[n] for n in kept] for column in given.index)))
        super()._reconcile(given)


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

EARLIER_KEYED = Put(properties="KEYS\x01Aa", advance_ms=-1500)
KEYED_AA = Put(properties="KEYS\x01Aa")
OTHER = Put(properties="KEYS\x01BB")
LATER_KEYED = Put(properties="KEYS\x01Aa", advance_ms=3000)
TWO_FILES = Settings(index_entries=2)
BEFORE_THE_ANSWER = losing(page_of(FIRST_LOG_FILE), back=2)

_B47 = Origin("RMQ-B47", "Earliest store time needs more bytes than the log has", "5.1.0", "yes")

BUGS = (
    PlantedBug("RMQ-B48", "the last index file is not flushed, not even at a clean close", 5,
        Parts({IndexService: _OnlyFullFilesFlushed}),
        origin=Origin("RMQ-B48", "Last index segment not flushed on clean shutdown", "5.0.0", "yes"), holes=("I2",),
        machine="queue", program=(Settings(), (KEYED_AA, Close()))),
    PlantedBug("RMQ-B49", "the used-slot counter of an index file grows with every entry", 5,
        Parts({PLAIN_ENTRIES: IndexEntries(_each_counts, _each_is_expected, _each_is_traced)}),
        origin=Origin("RMQ-B49", "Used-slot counter equals entry counter", "4.7.1", "no"), machine="queue",
        program=(Settings(), (KEYED_AA, KEYED_AA, REPUT, Crash(kill=True)))),
    PlantedBug("RMQ-B51", "a failed creation of an index file stops dispatch with an exception and leaves the file", 8,
        Parts({IndexService: _WrongUnlock}),
        origin=Origin("RMQ-B51", "Failed index segment creation unlocks a lock it does not hold", "not fixed", "yes"),
        machine="queue", program=(Settings(), (Put(), REPUT, KEYED_AA, RefuseFile(), REPUT))),
    PlantedBug("inherited-time", "the first entry of a later index file is dated too late", 5,
        Parts({IndexFile: _TimeFromPreviousFile}), machine="queue",
        program=(TWO_FILES, (KEYED_AA, LATER_KEYED, REPUT, QueryKey(begin_ms=3000, window_ms=1000)))),
    PlantedBug("whole-seconds", "the index compares store times rounded down to whole seconds", 5,
        Parts({IndexFile: _WholeSeconds}), machine="queue",
        program=(Settings(), (KEYED_AA, Put(properties="KEYS\x01Aa", advance_ms=500), REPUT, QueryKey(begin_ms=1)))),
    PlantedBug("ends-at-an-older-time", "a key query stops at the first index entry older than its time window", 5,
        Parts({IndexFile: _ChainEndsEarly}), machine="queue",
        program=(Settings(), (KEYED_AA, LATER_KEYED, EARLIER_KEYED, REPUT, QueryKey(begin_ms=2000)))),
    PlantedBug("one-name-a-millisecond", "two index files created in the same millisecond get the same name", 16,
        Parts({IndexService: _MillisecondNames}), machine="queue",
        program=(TWO_FILES, (KEYED_AA, KEYED_AA, REPUT))),
    PlantedBug("equal-is-not-skipped", "dispatching the last indexed record again adds a second index entry", 5,
        Parts({IndexService: _EqualIndexedAgain}), holes=("I7",), machine="queue",
        program=(Settings(index_entries=3), (KEYED_AA, REPUT, Put(properties="KEYS\x01Aa k"), RefuseFile(), REPUT,
            REPUT, Close()))),
    PlantedBug("newest-index-file-dropped", "an open drops the newest index file and does not rebuild it", 5,
        Parts({IndexService: _NewestFileDropped}), holes=("I1",), machine="queue",
        program=(Settings(), (KEYED_AA, Close(), Open()))),
    PlantedBug("index-names-not-synced", "the names of new index files are not synced", 5,
        Parts({IndexService: _NamesNotSynced}), kind="skip a directory sync", machine="queue",
        program=(Settings(), (KEYED_AA, Close()))),
    PlantedBug("equal-hashes", "a key query returns messages of other keys with the same hash", 5,
        Parts({MessageQuery: _EqualHashes}), machine="queue",
        program=(Settings(), (KEYED_AA, OTHER, REPUT, QueryKey()))),
    PlantedBug("limit-before-the-key",
        "messages of other keys with the same hash count against the limit of a key query", 5,
        Parts({MessageQuery: _LimitBeforeTheKey}), machine="queue",
        program=(Settings(), (KEYED_AA, OTHER, REPUT, QueryKey(max_num=1)))),
    PlantedBug("rounds-overlap", "a key query that continues returns its oldest messages twice", 5,
        Parts({MessageQuery: _RoundsOverlap}), machine="queue", program=(Settings(), (KEYED_AA, REPUT, QueryKey()))),
    PlantedBug("RMQ-B52", "a key query allocates memory for the requested count without a limit", 8,
        Parts({MessageQuery: _UnlimitedAllocation}),
        origin=Origin("RMQ-B52", "Result list sized by the caller before the limit is applied", "5.3.3", "yes"),
        machine="queue", program=(Settings(), (QueryKey(max_num=1 << 60),))),
    PlantedBug("RMQ-B47", "the store time of the first message is -1 while the log is small", 8,
        Parts({MessageQuery: _TwoMessagesForATime}), origin=_B47, machine="queue",
        program=(Settings(), (Put(),))),
    PlantedBug("RMQ-B47-IPv6", "the store time of a message with an IPv6 host is read from the wrong position", 8,
        Parts({MessageQuery: _TimeAfterIPv4}), origin=_B47, machine="queue",
        program=(Settings(), (Put(born_v6=True),))),
    PlantedBug("index-ahead-stays", "index entries of records that the log lost are kept", 5,
        Parts({IndexService: _AheadStays}), holes=("I3",), machine="queue", program=(SMALL, (KEYED, REPUT, LOG_LOST))),
    PlantedBug("index-kept-for-an-empty-log", "the index of a log that lost everything is kept", 5,
        Parts({Derived: _IndexOfEmptyLogKept}), holes=("I4",), machine="queue",
        program=(SMALL, (KEYED, REPUT, BEFORE_THE_ANSWER))),
    PlantedBug("index-header-believed", "index slots and entries past the count in the file header are kept", 5,
        Parts({IndexFile: _HeaderTrusted}), holes=("I5",), machine="queue",
        program=(SMALL, (KEYED, REPUT, BEFORE_THE_ANSWER))),
    PlantedBug("queued-is-indexed", "an open treats queued records as indexed, so their keys are never found", 5,
        Parts({Derived: _QueuedIsIndexed}), holes=("I6",), machine="queue",
        program=(SMALL, (PUT, KEYED, KEYED, Crash(others="kept"), Crash(back=6, others="kept")))),
)  # fmt: skip
