"""Define bugs of consume queues: units, files, extension, and pre-fill."""

from dataclasses import replace
from functools import partial

from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.derived_floor import DerivedProof
from tornpage.impl.dispatch.dispatch_records import dispatch_records, read_record
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.dispatching import Dispatched, DispatchRules, ExtDraft, QueueRun
from tornpage.impl.message.properties_text import parse_pairs
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.impl.queue.units import Unit, units_in
from tornpage.impl.read.queue_pull import Pull
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.model.operations import Clean, Close, Flush, HarmDerived, Operation, Put, RefuseFile, Step
from tornpage.properties.planted.programs import (
    FLUSH_QUEUES,
    FULL,
    JOINED,
    KEYED,
    KILL,
    NAMES_U,
    POWER_LOSS,
    REPUT,
    SMALL,
    TAGGED,
)
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]


# ---- units and their files -------------------------------------------------------------------------------------------


class _UnitsKeptAfterCut(ConsumeQueue):
    """Keep the units of records that recovery cut from the log (RMQ-B02)."""

    def end_reconcile(self, log_min: int) -> bool:
        if self._first_proved is not None:
            self._proved = self.max_offset
        return super().end_reconcile(log_min)

    def _end_of_expired(self, log_min: int) -> int:
        return self.max_offset


class _NothingIsAdded(ConsumeQueue):
    """Start dispatch at the end of the log, ignoring units that queues lack (RMQ-B03)."""

    _loaded_end = 0

    def load(self) -> None:
        super().load()
        self._loaded_end = self.max_offset

    def reconcile(self, run: QueueRun) -> None:
        if run.queue_offset < self._loaded_end:
            super().reconcile(run)


class _AppendedTwice(ConsumeQueue):
    """Append a run again when it is dispatched again, without checking its number (RMQ-B32)."""

    def _unknown(self, run: QueueRun, known: int) -> QueueRun:
        return run


class _UnitBeforeTheEnd(ConsumeQueue):
    """Read the unit before the end of a queue even if the queue is empty (RMQ-B33)."""

    def _last_end_offset(self) -> int:
        return self._stored(self.max_offset - 1).end_offset


class _MinimumStays(ConsumeQueue):
    """Keep the minimum of a queue that was cut to nothing (RMQ-B34)."""

    _loaded_min = 0

    def load(self) -> None:
        super().load()
        self._loaded_min = self.min_offset

    def end_reconcile(self, log_min: int) -> bool:
        erased = super().end_reconcile(log_min)
        self.min_offset = max(self.min_offset, self._loaded_min)
        return erased


class _TornUnitStays(ConsumeQueue):
    """Accept a unit whose offset and size match, although a tear cost its tags code (hole C2)."""

    def _equal(self, run: QueueRun, count: int) -> int:
        if run.ext:
            return super()._equal(run, count)
        pairs = zip(units_in(self._read(self._proved, count)), units_in(run.units), strict=False)
        return next((number for number, (stored, told) in enumerate(pairs) if stored[:2] != told[:2]), count)


class _ZeroIsNew(ConsumeQueue):
    """Dispatch the log again after a restart and append number 0 a second time (hole C15)."""

    def reconcile(self, run: QueueRun) -> None:
        self.append(run)

    def append(self, run: QueueRun) -> None:
        if run.queue_offset == 0 and self.max_offset:
            self._write(run)
        else:
            super().append(run)

    def end_reconcile(self, log_min: int) -> bool:
        return False


class _RefusedAndForgotten(ConsumeQueue):
    """Drop units that do not fit on the disk, and continue dispatch (hole C10)."""

    def append(self, run: QueueRun) -> None:
        try:
            super().append(run)
        except OSError:
            return


class _NothingErased(QueueFiles):
    """Cut a queue in memory only and leave the bytes in the file (hole C1)."""

    def _cut_file(self, mapped: MappedFile, position: int) -> bool:
        mapped.written_position = min(position - mapped.base_offset, mapped.size_bytes)
        mapped.flushed_position = min(mapped.flushed_position, mapped.written_position)
        return False


class _OneFileARound(QueueFiles):
    """Flush one file of each queue, and let the checkpoint cover all of them (hole C4)."""

    def _unflushed(self) -> tuple[MappedFile, ...]:
        return super()._unflushed()[:1]


class _NamesNotSynced(QueueFiles):
    """Leave the names of new queue files unsynced."""

    def _sync_names(self) -> None:
        self._names_pending = False


def _with_files(queue_files: type[QueueFiles]) -> Parts:
    return Parts({ConsumeQueues: partial(ConsumeQueues, queue_files=queue_files)})


# ---- dispatch --------------------------------------------------------------------------------------------------------


class _LeavesABacklog(ReputMessages):
    """Close without waiting for dispatch."""

    def drain(self) -> None:
        """Leave the remaining work undone."""

    def step(self, now_ms: int) -> int | None:
        super().drain()
        return None


class _CleanExitTrusted(ConsumeQueue):
    """Treat a queue as complete after a clean exit."""

    _loaded_end = 0

    def load(self) -> None:
        super().load()
        self._loaded_end = self.max_offset

    def reconcile(self, run: QueueRun) -> None:
        if not self._clean_exit or run.queue_offset < self._loaded_end:
            super().reconcile(run)


class _EndsWithTheFirstError(ReputMessages):
    """Stop the dispatcher for good at the first error (RMQ-B12)."""

    _has_ended = False

    def drain(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            super().drain()
            self._has_ended = False


class _SkipsPartialRecord(Derived):
    """Skip all readable records after a partly written one (RMQ-B15).

    In RocketMQ it is a slave that has received half of the record. Here the rest is in a buffer of the pool.
    """

    def dispatch(self, log: MappedFileQueue, readable_end: int) -> bool:
        seen_end = log.max_offset if readable_end == log.committed_where else readable_end
        moved = super().dispatch(log, seen_end)
        if self.error is not None:
            self.error = None
            self._move_to(seen_end, self.store_timestamp)
        return moved


class _FromTheFurthestQueue(Derived):
    """Resume dispatch at the end of the furthest queue (hole C9).

    Other queues keep their gaps.
    """

    _furthest = 0

    def load(self) -> None:
        super().load()
        self._furthest = max((queue.max_physic_offset for queue in self.queues.all()), default=0)

    def _reconcile(self, given: Dispatched) -> None:
        super()._reconcile(given._replace(runs=[run for run in given.runs if self._is_taken(run)]))

    def _is_taken(self, run: QueueRun) -> bool:
        return run.end_offset > self._furthest or run.queue_offset < self.queues.of(run.key).max_offset


class _DelaysKnownTooLate(Derived):
    """Rebuild queues before reading the delay table (hole C12).

    Delayed messages get a tags code.
    """

    def reconcile(
        self, log: MappedFileQueue, table: QueueOffsetTable, *, index_timestamp: int, proof: DerivedProof | None
    ) -> None:
        rules = self._rules
        self._rules = replace(rules, delay_levels=DelayLevels(()))
        super().reconcile(log, table, index_timestamp=index_timestamp, proof=proof)
        self._rules = rules


def _null_properties(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """Fail on a record without properties when multi-dispatch is on (RMQ-B73)."""
    given = dispatch_records(view, position, end, rules)
    while rules.multi_dispatch is not None and position < given.end_position:
        record = read_record(view, position, end)
        if isinstance(record, str) or not record.text:
            raise AttributeError("there are no properties to look into")
        position += record.size_bytes
    return given


def _own_queues_only(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """Write a unit only to a record's own queue, not to the queues that it names."""
    given = dispatch_records(view, position, end, rules)
    return given._replace(runs=[run for run in given.runs if not run.named])


def _joined_pairs_kept(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """Read properties as 4.9.3 does, whichever release wrote the store."""
    return dispatch_records(view, position, end, replace(rules, parse=parse_pairs))


# ---- the extension ---------------------------------------------------------------------------------------------------


class _NegativeIsAnAddress(Pull):
    """Take every negative tags code for an extension address and accept its message (RMQ-B42)."""

    __slots__ = ()

    def _wants_unit(self, code: int) -> bool:
        return super()._wants_unit(min(code, -(1 << 31) - 1) if code < 0 else code)


class _AddressTrusted(ConsumeQueue):
    """Trust an extension address that leads to no unit (hole C17)."""

    def _is_kept(self, stored: Unit, draft: ExtDraft) -> bool:
        return True


class _OneTimeForAll(ConsumeQueue):
    """Give extension units written together the store time of the first, and check no time."""

    def _with_addresses(self, run: QueueRun) -> bytes:
        first = run.ext[0].store_timestamp
        return super()._with_addresses(run._replace(ext=[each._replace(store_timestamp=first) for each in run.ext]))

    def _is_kept(self, stored: Unit, draft: ExtDraft) -> bool:
        assert self.ext is not None
        found = self.ext.get(stored.tags_code)
        return super()._is_kept(stored, draft if found is None else draft._replace(store_timestamp=found[1]))


class _PreviousBitMap(ConsumeQueueExt):
    """Give a message that passes no filter the bit map of the previous message."""

    _before = b""

    def put(self, draft: ExtDraft) -> int:
        self._before = draft.bit_map or self._before
        return super().put(draft._replace(bit_map=self._before))


class _MatchedByTag(ConsumeQueue):
    """Keep an extension unit whose tags code matches, even if it is of another message."""

    def _is_kept(self, stored: Unit, draft: ExtDraft) -> bool:
        found = self.ext.get(stored.tags_code) if self.ext is not None else None
        return found is not None and found.tags_code == draft.tags_code


# ---- numbers before the first message --------------------------------------------------------------------------------


class _PrefillIsTheFurthest(ConsumeQueue):
    """Skip records below the apparent end of a queue that has only pre-fill left (hole C5)."""

    _furthest = 0

    def load(self) -> None:
        super().load()
        if not self.is_empty and self.max_offset > self.first_number:
            last = self._stored(self.max_offset - 1)
            self._furthest = last.end_offset if last.is_prefill else 0

    def reconcile(self, run: QueueRun) -> None:
        if run.end_offset > self._furthest:
            super().reconcile(run)

    def append(self, run: QueueRun) -> None:
        if run.end_offset > self._furthest:
            super().append(run)


class _PrefillIsSeen(ConsumeQueue):
    """Count pre-fill as messages after a restart (hole C6)."""

    def _first_survivor(self, number: int, log_min: int) -> int:
        first = super()._first_survivor(number, log_min)
        while first > self.first_number and self._stored(first - 1).is_prefill:
            first -= 1
        return first


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

COMMIT_ROUND_LATER = Step(service="commit", after_ms=200)
NEGATIVE = Put(properties="TAGS\x01TagZZZ")
DELAYED = Put(properties="DELAY\x011")
PASSES_NO_FILTER = "TAGS\x01TagB"
"""In topic U its bit map is empty (properties/program/bit_maps.py)."""
STORE_TIME_AT = 10
EXPIRED: tuple[Operation, ...] = (FULL, FULL, REPUT, Flush(), Clean(percent=88))
"""The first of two messages of a queue is deleted. When the queue is lost, it is rebuilt with pre-fill at its start."""
BEHIND_PRE_FILL = 20

BUGS = (
    PlantedBug("RMQ-B02", "recovery cuts the log and keeps the queue units of the cut records", 4,
        Parts({ConsumeQueue: _UnitsKeptAfterCut}),
        origin=Origin("RMQ-B02", "Normal recovery cuts the commit log but not the consume queues", "4.3.2", "no"),
        machine="queue", program=(Settings(), (Put(), REPUT, FLUSH_QUEUES, POWER_LOSS))),
    PlantedBug("RMQ-B03", "dispatch starts at the end of the log and skips records that the queues lack", 4,
        Parts({ConsumeQueue: _NothingIsAdded}),
        origin=Origin("RMQ-B03", "Dispatcher starts at the end of the log instead of at the queues' progress",
            "4.5.0", "no"), machine="queue", program=(Settings(), (Put(), KILL))),
    PlantedBug("RMQ-B32", "dispatching a record again appends its unit again", 17,
        Parts({ConsumeQueue: _AppendedTwice}),
        origin=Origin("RMQ-B32", "Consume-queue entries appended twice after recovery", "4.2.0", "no"),
        machine="queue", program=(Settings(), (Put(), REPUT, KEYED, RefuseFile(), REPUT, REPUT))),
    PlantedBug("RMQ-B33", "an empty queue file keeps the store from starting", 7,
        Parts({ConsumeQueue: _UnitBeforeTheEnd}),
        origin=Origin("RMQ-B33", "Empty last queue segment", "merged upstream in 2026", "yes"), machine="queue",
        program=(Settings(), (Put(), HarmDerived(file="queue", harm="zeroed")))),
    PlantedBug("RMQ-B34", "a queue that was cut to nothing keeps its minimum offset", 17,
        Parts({ConsumeQueue: _MinimumStays}),
        origin=Origin("RMQ-B34", "Stale minimum after all segments of a queue were truncated away",
            "merged upstream in 2026", "latent"), machine="queue",
        program=(Settings(queue_units=1), (Put(), Put(), HarmDerived(file="queue", harm="lost")))),
    PlantedBug("torn-unit-stays", "a unit that lost its tags code in a tear is accepted", 4,
        Parts({ConsumeQueue: _TornUnitStays}), holes=("C2",), machine="queue",
        program=(Settings(), (TAGGED, HarmDerived(file="queue", harm="zeroed", amount=12)))),
    PlantedBug("zero-is-new", "the first unit of a queue is appended again after a restart", 4,
        Parts({ConsumeQueue: _ZeroIsNew}), holes=("C15",), machine="queue", program=(Settings(), (Put(), REPUT, KILL))),
    PlantedBug("refused-unit-forgotten", "a unit that does not fit on the disk is dropped", 17,
        Parts({ConsumeQueue: _RefusedAndForgotten}), holes=("C10",), machine="queue",
        program=(Settings(), (Put(), RefuseFile(), REPUT))),
    PlantedBug("stale-units-behind", "bytes of units past the end of a queue are left in its file", 4,
        _with_files(_NothingErased), holes=("C1",), machine="queue",
        program=(Settings(), (Put(), Flush(), Put(), REPUT, FLUSH_QUEUES, POWER_LOSS))),
    PlantedBug("one-queue-file-a-round", "the checkpoint covers queue files that were not flushed", 9,
        _with_files(_OneFileARound), holes=("C4",), machine="queue",
        program=(Settings(queue_units=1), (Put(), Put(), Put(), Flush(), REPUT, FLUSH_QUEUES, POWER_LOSS))),
    PlantedBug("queue-names-not-synced", "the names of new queue files are not synced", 9,
        _with_files(_NamesNotSynced), kind="skip a directory sync", machine="queue",
        program=(Settings(), (Put(), Put(), Flush(), REPUT, FLUSH_QUEUES, POWER_LOSS))),
    PlantedBug("RMQ-B01", "a close with undispatched records counts as clean, and the next start trusts it", 9,
        Parts({ReputMessages: _LeavesABacklog, ConsumeQueue: _CleanExitTrusted}),
        origin=Origin("RMQ-B01", "Clean-shutdown marker removed while dispatch is still behind", "4.2.0", "no"),
        machine="queue", program=(Settings(), (Put(), Close()))),
    PlantedBug("RMQ-B12", "the first error stops the dispatcher for good", 17,
        Parts({ReputMessages: _EndsWithTheFirstError}),
        origin=Origin("RMQ-B12", "Dispatcher thread dies on a non-Exception error", "5.3.0", "yes"), holes=("G6",),
        machine="queue", program=(Settings(), (Put(), RefuseFile(), REPUT, REPUT))),
    PlantedBug("RMQ-B15", "a partly written record makes dispatch skip the records after it", 16,
        Parts({Derived: _SkipsPartialRecord}),
        origin=Origin("RMQ-B15", "Slave dispatcher skips the rest of the buffer on a half-received record", "4.5.1",
            "no"), machine="queue", program=(Settings(pool_buffers=1), (Put(), REPUT, COMMIT_ROUND_LATER))),
    PlantedBug("RMQ-B73", "a message without properties stops dispatch when multi-dispatch is on", 8,
        Parts({dispatch_records: _null_properties}),
        origin=Origin("RMQ-B73", "Message without properties breaks dispatch when multi-dispatch is on", "4.9.4",
            "yes"), holes=("G8",), machine="queue",
        program=(Settings(trailer=False, multi_dispatch=True), (Put(), REPUT))),
    PlantedBug("furthest-queue-first",
        "after a restart dispatch resumes at the end of the furthest queue, so other queues miss units", 4,
        Parts({Derived: _FromTheFurthestQueue}), holes=("C9",), machine="queue",
        program=(Settings(), (Put(topic="U"), Put(), HarmDerived(file="queue", harm="lost", number=1)))),
    PlantedBug("delays-known-too-late",
        "queues are rebuilt before the delay table is read, so delayed messages get wrong tags codes", 4,
        Parts({Derived: _DelaysKnownTooLate}), holes=("C12",), machine="queue", program=(Settings(), (DELAYED, KILL))),
    PlantedBug("named-queue-forgotten", "a record gets no unit in the additional queues that it names", 17,
        Parts({dispatch_records: _own_queues_only}), machine="queue",
        program=(Settings(multi_dispatch=True), (NAMES_U, REPUT))),
    PlantedBug("joined-pair-kept", "a property that a batch of 4.9.0 has joined is indexed, which its release drops", 5,
        Parts({dispatch_records: _joined_pairs_kept}), machine="queue",
        program=(Settings(drops_joined=True), (JOINED, REPUT, KILL))),
    PlantedBug("RMQ-B42", "a negative tags code is taken for an extension address and passes every filter", 17,
        Parts({QueueReads: partial(QueueReads, pull=_NegativeIsAnAddress)}),
        origin=Origin("RMQ-B42", "Negative tag hash mistaken for an extension address", "4.2.0", "no"),
        machine="queue", program=(Settings(), (NEGATIVE, REPUT))),
    PlantedBug("extension-believed", "a unit keeps the address of an extension unit that is gone", 4,
        Parts({ConsumeQueue: _AddressTrusted}), holes=("C17",), machine="queue",
        program=(Settings(queue_ext=True), (Put(), HarmDerived(file="extension", harm="lost")))),
    PlantedBug("one-store-time", "extension units written together all get the store time of the first", 4,
        Parts({ConsumeQueue: _OneTimeForAll}), machine="queue",
        program=(Settings(queue_ext=True), (Put(), Put(), KILL))),
    PlantedBug("bit-map-of-another",
        "the extension gives a message that passes no filter the bit map of the previous message", 4,
        Parts({ConsumeQueueExt: _PreviousBitMap}), machine="queue",
        program=(Settings(queue_ext=True, bit_maps=True), (Put(topic="U"), Put(topic="U",
            properties=PASSES_NO_FILTER), KILL))),
    PlantedBug("known-by-its-tag",
        "an extension unit with a matching tags code is kept although it is of another message", 4,
        Parts({ConsumeQueue: _MatchedByTag}), machine="queue",
        program=(Settings(queue_ext=True), (Put(), HarmDerived(file="extension", harm="zeroed",
            amount=STORE_TIME_AT + 6)))),
    PlantedBug("prefill-is-the-furthest", "a queue that has only pre-fill left skips all records below 2 GiB", 4,
        Parts({ConsumeQueue: _PrefillIsTheFurthest}), holes=("C5",), machine="retention",
        program=(SMALL, (*EXPIRED, HarmDerived(), HarmDerived(harm="zeroed", amount=BEHIND_PRE_FILL)))),
    PlantedBug("prefill-is-seen", "after a restart pre-fill counts as messages", 17,
        Parts({ConsumeQueue: _PrefillIsSeen}), holes=("C6",), machine="retention",
        program=(SMALL, (*EXPIRED, HarmDerived()))),
)  # fmt: skip
