"""Define bugs of an open: trust, cut, erasure, and rebuilding of queues and index."""

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tornpage.impl.background import Background
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import IndexHeader
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.files import Files
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.store_lock import StoreLock
from tornpage.impl.io.zeros import first_nonzero
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.durable_floor import DurableFloor, Floor
from tornpage.impl.log.loading import Finding, FoundLog, examine_log
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.scan import RecordChecker
from tornpage.impl.message import codec
from tornpage.impl.message.codec import RecordCheck, check_record
from tornpage.impl.message.dispatching import UNIT_BYTES, Dispatched, QueueRun
from tornpage.impl.message.encoder import RecordEncoder
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.impl.recovery.derived_proof import checksums_hold
from tornpage.impl.recovery.recovery import Recovery, RecoveryPlan
from tornpage.model.operations import (
    Close,
    Crash,
    Damage,
    FailWrite,
    HarmDerived,
    Member,
    Open,
    OpenTwice,
    Put,
    PutBatch,
    Step,
)
from tornpage.properties.planted.programs import (
    ACROSS_TWO_SECTORS,
    FIRST_LOG_FILE,
    FLUSH,
    FULL,
    KEYED,
    LOG_LOST,
    POOL,
    PUT,
    REPUT,
    SMALL,
    TORN,
    TWO_PAGES,
    losing,
    page_of,
)
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]

_HEAD = struct.Struct(">ii")
_I64 = struct.Struct(">q")
_MARGIN_MS = 3_000
_FILES_COMPARED = 3


# ---- the cut ---------------------------------------------------------------------------------------------------------


class _NoErase(Recovery):
    """Leave the bytes after the cut on disk (hole H1 of 4.9.3)."""

    def _erase(self, last: MappedFile, position: int) -> None:
        last.written_position = position


class _EraseNotSynced(Recovery):
    """Erase the cut bytes in the page cache without a sync."""

    def carry_out(self, plan: RecoveryPlan) -> None:
        for file in self._log.mapped:
            file.sync = _no_sync  # type: ignore[method-assign]
        super().carry_out(plan)


def _no_sync() -> None:
    """Skip the sync."""


class _WrongWalkDirection(MappedFileQueue):
    """Walk the files backwards from the first one at a cut, and find none (RMQ-B26)."""

    def drop_after(self, index: int) -> None:
        at = 0
        while at > index + 1:
            at -= 1
            self._maker.remove(self.mapped.pop(at))


class _RemovesWhileIterating(MappedFileQueue):
    """Remove files from the list being iterated, which skips every other file (RMQ-B27)."""

    def drop_after(self, index: int) -> None:
        kept = self.mapped[: index + 1]
        for mapped in self.mapped:
            if mapped not in kept:
                self.mapped.remove(mapped)
                self._maker.remove(mapped)


# ---- what counts as a record -----------------------------------------------------------------------------------------


def _body_only(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Check only the body: neither the trailer nor a NUL in topic or properties (hole H2)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason in ("bad_checksum", "nul_in_topic", "nul_in_properties"):
        return _HEAD.unpack_from(view, position)[0], None
    return size, reason


# ---- the list of files -----------------------------------------------------------------------------------------------


class _NamesWithTheFlush(LogFileMaker):
    """Make the name of a later file durable only at a flush.

    Until then the next file may survive without it.
    """

    def _sync_name(self, path: str) -> None:
        if int(path.rpartition("/")[2]) == 0:
            super()._sync_name(path)


class _FlushesNames(MappedFileQueue):
    """Make names durable at every flush. No promised record is then lost with its file name."""

    def flush(self, least_pages: int = 0) -> int:
        for path in self.directories.paths:
            self._maker._files.sync_directory(path)
        return super().flush(least_pages)


def _gaps_ignored(files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None) -> FoundLog:
    """Take the present files for the log, whichever files are missing between them (hole H4)."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    last = int(found.paths[-1].rpartition("/")[2]) if found.paths else 0
    kept = tuple(each for each in found.findings if each.code != "missing_file" or each.offset > last)
    return replace(found, findings=kept)


class _EndsAfterGap(Recovery):
    """Let the log end at the start of a file that follows a gap (hole H4)."""

    def _cut(self, plan: RecoveryPlan) -> None:
        scan = plan.scan
        last = self._log.mapped[scan.file_index]
        before = self._log.mapped[scan.file_index - 1] if scan.file_index else last
        if scan.end_offset > last.base_offset or before is last or before.end_offset == last.base_offset:
            super()._cut(plan)
            return
        self._log.drop_after(scan.file_index)
        self._erase(last, 0)
        last.written_position = 0


class _UnlinkNotSynced(LogFileMaker):
    """Unlink a file that recovery cut without syncing its directory (hole H8)."""

    def remove(self, mapped: MappedFile) -> None:
        mapped.close()
        self._files.unlink(mapped.path)


class _ScanStartsByTime(Recovery):
    """Start the scan in the last file that is 3 s older than the checkpoint (H5).

    All files before it are trusted.
    """

    def plan(self, *args: Any, **kwargs: Any) -> RecoveryPlan:
        walk, start_base = self._walk, self._start_base()

        def walk_from_there(
            view: memoryview, position: int, *, file_bytes: int, base_offset: int, check: RecordChecker
        ) -> tuple[int, str | None]:
            if base_offset < start_base:
                return _end_by_lengths(view, position), None
            return walk(view, position, file_bytes=file_bytes, base_offset=base_offset, check=check)

        self._walk = walk_from_there
        return super().plan(*args, **kwargs)

    def _start_base(self) -> int:
        checkpoint = Checkpoint(self._files, f"{self._root}/checkpoint")
        checkpoint.load()
        durable_ms = min(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp) - _MARGIN_MS
        older = [file.base_offset for file in self._log.mapped if 0 < _first_store_time(file.view) <= durable_ms]
        return max(older, default=0)


class _CheckpointTrusted(_ScanStartsByTime):
    """Start the scan in the last file older than the checkpoint.

    All files before it are trusted.
    """

    def _start_base(self) -> int:
        checkpoint = Checkpoint(self._files, f"{self._root}/checkpoint")
        checkpoint.load()
        durable_ms = checkpoint.physic_msg_timestamp
        older = [file.base_offset for file in self._log.mapped if 0 < _first_store_time(file.view) <= durable_ms]
        return max(older, default=0)


def _first_store_time(view: memoryview) -> int:
    if len(view) < codec.SMALLEST_RECORD_BYTES or _HEAD.unpack_from(view, 0)[1] != codec.MESSAGE_MAGIC:
        return 0
    store_timestamp: int = _I64.unpack_from(view, 68 if view[39] & codec.BORN_HOST_V6 else 56)[0]
    return store_timestamp


def _end_by_lengths(view: memoryview, position: int) -> int:
    """Return where the records of an unchecked file seem to end."""
    while position + codec.BLANK_BYTES <= len(view):
        total, magic = _HEAD.unpack_from(view, position)
        if magic != codec.MESSAGE_MAGIC or total < codec.SMALLEST_RECORD_BYTES or position + total > len(view):
            break
        position += total
    return position


# ---- the lock --------------------------------------------------------------------------------------------------------


class _NotYetLocked(StoreLock):
    """Take no lock while the log is recovered."""

    def acquire(self) -> None:
        """Do nothing."""


class _LockAfterRecovery(DurableFloor):
    """Take the lock after the log is recovered (hole G7, RMQ-B78)."""

    _lock: StoreLock | None = None

    def start(self, offset: int) -> None:
        self._lock = StoreLock(self._files, self._path.removesuffix("/config/durableFloor"))
        self._lock.acquire()
        super().start(offset)

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            self._lock.release()


# ---- puts ------------------------------------------------------------------------------------------------------------


class _RoomUnchecked(RecordEncoder):
    """Allow a record longer than a log file."""

    def __init__(self, *, room_bytes_max: int, **settings: Any) -> None:
        super().__init__(room_bytes_max=1 << 30, **settings)


class _SecondAppendUnchecked(CommitLog):
    """Answer a record that does not fit the next file either as if it were stored (hole A3)."""

    def _append(self, message: Message, record: bytearray, store_timestamp: int) -> PutResult:
        needed_bytes = len(record) + self._trailer_bytes + codec.BLANK_BYTES
        if needed_bytes <= self.log.file_bytes:
            return super()._append(message, record, store_timestamp)
        for _ in range(2):
            if self._file_with_room(needed_bytes) is None:
                return PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        return PutResult(PutStatus.PUT_OK)


# ---- what an open trusts of queues and index -------------------------------------------------------------------------


def _trusted(*_: Any, **__: Any) -> bool:
    """Trust the derived floor without reading queues and index (holes C13, C16, I5 of 4.9.3)."""
    return True


# ---- rebuilding queues -----------------------------------------------------------------------------------------------


class _ZeroUnitCounts(ConsumeQueue):
    """Count the first unit of a newest queue file of zeros (hole C7).

    No message has its number.
    """

    _new_number = -1

    def _end_of_units(self) -> int:
        newest = self._files.mapped[-1] if self._files.mapped else None
        if newest is not None and first_nonzero(newest.view, 0) is None:
            self._new_number = newest.base_offset // UNIT_BYTES
        return super()._end_of_units()

    def end_reconcile(self, log_min: int) -> bool:
        erased = super().end_reconcile(log_min)
        if self.max_offset == self._new_number and not self.is_empty:
            self._write(QueueRun(self.key, self.max_offset, bytes(UNIT_BYTES), self.max_physic_offset))
        return erased


class _ThreeFilesCompared(ConsumeQueue):
    """Compare only the units in the last three files of a queue with the log (hole C16)."""

    def _equal(self, run: QueueRun, count: int) -> int:
        compared_from = self._files.end_position - _FILES_COMPARED * self._files.file_bytes
        believed = min(count, max(0, compared_from // UNIT_BYTES - self._proved))
        if not believed:
            return super()._equal(run, count)
        return believed


class _LostQueueFromTheLastFile(Derived):
    """Rebuild a lost queue from the newest log file only (hole C13)."""

    _start = 0

    def load(self) -> None:
        super().load()
        self._found = {queue.key for queue in self.queues.all()}

    def reconcile(self, log: MappedFileQueue, *args: Any, **kwargs: Any) -> None:
        self._start = log.mapped[-1].base_offset if log.mapped else 0
        super().reconcile(log, *args, **kwargs)

    def _reconcile(self, given: Dispatched) -> None:
        runs = [run for run in given.runs if run.key in self._found or run.end_offset > self._start]
        super()._reconcile(given._replace(runs=runs))


class _PastLogEnd(Derived):
    """Resume dispatch after the furthest unit found, even past the end of the log (hole C8)."""

    _furthest = 0

    def load(self) -> None:
        super().load()
        self._furthest = max((queue.max_physic_offset for queue in self.queues.all()), default=0)

    def reconcile(self, *args: Any, **kwargs: Any) -> None:
        super().reconcile(*args, **kwargs)
        if self._furthest > self.reput_from_offset:
            self._move_to(self._furthest, self.store_timestamp)


class _CheckpointByTheIndex(Background):
    """Write a checkpoint that covers unflushed queues when an index file is full (hole C3)."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        checkpoint, derived = parts["checkpoint"], parts["derived"]
        if (index := derived.index) is None:
            return
        make = index._make

        def make_and_note(header: IndexHeader) -> IndexFile:
            if index.index_files:
                checkpoint.note_dispatched(header.end_timestamp)
                with contextlib.suppress(OSError):
                    index.index_files[-1].flush(0)
                    checkpoint.flush()
            return make(header)  # type: ignore[no-any-return]

        index._make = make_and_note


class _CheckpointFirst(Background):
    """Write the checkpoint before flushing what it covers."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        checkpoint, derived = parts["checkpoint"], parts["derived"]
        flushables = derived.flushables

        def checkpoint_first() -> Iterator[Any]:
            checkpoint.note_dispatched(derived.store_timestamp)
            checkpoint.flush()
            yield from flushables()

        derived.flushables = checkpoint_first
        super().__init__(*args, **parts)


class _StrayFileBlocks(QueueFiles):
    """Refuse to start when a stray file lies in a queue directory (hole G2)."""

    def _queue_file_names(self) -> tuple[dict[int, int], list[Finding]]:
        names, findings = super()._queue_file_names()
        if findings:
            raise OSError(f"{findings[0].file} is no consume queue file")
        return names, findings


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

NARROW_QUEUES = Settings(file_bytes=1024, queue_units=1)
SECOND_OF_THE_LOG = page_of("/store/commitlog/00000000000000001024")
SECOND_OF_THE_QUEUE = page_of("/store/consumequeue/T/0/00000000000000000020")

BUGS = (
    PlantedBug("no-erase-after-cut",
        "recovery cuts the log but leaves the cut bytes on disk", 3, Parts({Recovery: _NoErase}),
        kind="skip the erase", holes=("H1",), machine="commit-log",
        program=(TWO_PAGES, (PutBatch(members=(Member(body_bytes=2_000),) * 3), losing(page_of(FIRST_LOG_FILE, 1))))),
    PlantedBug("erase-not-synced", "recovery erases the cut bytes but does not sync the erasure", 3,
        Parts({Recovery: _EraseNotSynced}), kind="skip the erase", holes=("F1",), machine="commit-log",
        program=(SMALL, (PUT, Crash(kill=True))), breaks_first=6),
    PlantedBug("RMQ-B26", "recovery cuts the log but keeps the files after the cut", 1,
        Parts({MappedFileQueue: _WrongWalkDirection}),
        origin=Origin("RMQ-B26", "Reset-offset walks an iterator from the wrong end", "5.0.0", "yes"),
        machine="commit-log", program=(SMALL, (FULL, FLUSH, FULL, Crash()))),
    PlantedBug("RMQ-B27", "recovery removes only every other file after the cut", 1,
        Parts({MappedFileQueue: _RemovesWhileIterating}),
        origin=Origin("RMQ-B27", "Reset-offset removes through an iterator that cannot remove", "5.2.0", "latent"),
        machine="commit-log", program=(SMALL, (FULL, FLUSH, FULL, FULL, Crash()))),
    PlantedBug("RMQ-B13",
        "recovery and reads check the CRC of a record's body but not its trailer", 1, Parts({check_record: _body_only}),
        kind="skip the checksum", origin=Origin("RMQ-B13", "Recovery checksum covers the body only", "5.2.0", "yes"),
        holes=("H2",), machine="commit-log", program=(POOL, (Put(topic="Coda"), FailWrite(), PUT, Open()))),
    PlantedBug("gap-accepted", "recovery accepts a log with a file missing in the middle", 1,
        Parts({LogFileMaker: _NamesWithTheFlush, MappedFileQueue: _FlushesNames, examine_log: _gaps_ignored,
            Recovery: _EndsAfterGap}), holes=("H4", "G4"), machine="commit-log",
        program=(SMALL, (FULL, FULL, FULL,
            losing("link /store/commitlog/00000000000000001024")))),
    PlantedBug("unlink-not-synced", "recovery removes log files without syncing their directory", 3,
        Parts({LogFileMaker: _UnlinkNotSynced}), kind="skip a directory sync", holes=("H8",), machine="commit-log",
        program=(SMALL, (ACROSS_TWO_SECTORS, TORN))),
    PlantedBug("scan-starts-by-time", "recovery does not scan log files that are older than the checkpoint", 1,
        Parts({Recovery: _ScanStartsByTime}), holes=("H5",), machine="commit-log",
        program=(SMALL, (PUT, FLUSH, REPUT, Step(service="flush-queues"), Put(body_bytes=800, advance_ms=-100_000),
            FULL, FULL, FULL, losing(page_of("/store/commitlog/00000000000000003072"))))),
    PlantedBug("checkpoint-believed",
        "recovery trusts what the checkpoint calls durable and scans only the last file", 7,
        Parts({Recovery: _CheckpointTrusted}), kind="trust the checkpoint", machine="commit-log",
        program=(SMALL, (FULL, PUT, Damage()))),
    PlantedBug("RMQ-B78", "the lock of the store is taken only after its log is recovered", 14,
        Parts({StoreLock: _NotYetLocked, DurableFloor: _LockAfterRecovery}),
        origin=Origin("RMQ-B78", "Two processes on one store directory", "4.2.0", "no"), holes=("G7",),
        machine="commit-log", program=(SMALL, (PUT, OpenTwice()))),
    PlantedBug("larger-than-a-file", "a record too large for any log file is answered as if it were stored", 8,
        Parts({RecordEncoder: _RoomUnchecked, CommitLog: _SecondAppendUnchecked}), holes=("A3",),
        machine="commit-log", program=(SMALL, (Put(body_bytes=1_000),))),
    PlantedBug("derived-floor-believed", "an open trusts the derived floor without reading the queues and the index",
        4, Parts({checksums_hold: _trusted}), kind="trust the checkpoint", machine="queue",
        program=(SMALL, (PUT, HarmDerived()))),
    PlantedBug("zero-unit-counts", "the first unit of a new queue file counts before it is written", 17,
        Parts({ConsumeQueue: _ZeroUnitCounts}), holes=("C7",),
        program=(NARROW_QUEUES, (FULL, FULL, REPUT, losing(SECOND_OF_THE_QUEUE, SECOND_OF_THE_LOG)))),
    PlantedBug("three-files-compared", "only the last three files of a queue are compared with the log", 4,
        Parts({ConsumeQueue: _ThreeFilesCompared}), holes=("C16",),
        program=(NARROW_QUEUES, (*(PUT,) * 5, HarmDerived(harm="torn")))),
    PlantedBug("lost-queue-from-the-last-file", "a lost queue is rebuilt from the newest log file only", 4,
        Parts({Derived: _LostQueueFromTheLastFile}), holes=("C13",), machine="queue",
        program=(SMALL, (PUT, FULL, Crash(others="kept")))),
    PlantedBug("begins-behind-the-end", "dispatch resumes past the end of the log", 16,
        Parts({Derived: _PastLogEnd}), holes=("C8",), machine="queue", program=(SMALL, (PUT, REPUT, LOG_LOST, PUT))),
    PlantedBug("checkpoint-by-the-index",
        "a full index file makes the checkpoint cover queues that are not flushed", 9,
        Parts({Background: _CheckpointByTheIndex}), holes=("C3",), machine="queue",
        program=(Settings(file_bytes=1024, index_entries=2), (PUT, KEYED, KEYED, REPUT,
            losing(page_of("/store/consumequeue/T/0/00000000000000000000"))))),
    PlantedBug("checkpoint-before-flush", "the checkpoint is written before queues and index are flushed", 9,
        Parts({Background: _CheckpointFirst}), kind="swap flush and checkpoint", machine="queue",
        program=(SMALL, (PUT, Put(queue_id=1), Close(), losing(page_of("/store/consumequeue/T/0/00000000000000000000"),
            back=18)))),
    PlantedBug("stray-file-blocks", "a stray file in a queue directory keeps the store from starting", 7,
        Parts({ConsumeQueues: partial(ConsumeQueues, queue_files=_StrayFileBlocks)}), holes=("G2",), machine="queue",
        program=(SMALL, (PUT, HarmDerived(harm="stray")))),
)  # fmt: skip
