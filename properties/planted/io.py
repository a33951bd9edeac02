"""Define bugs on a failing disk: handling of failed calls and of torn small files."""

import contextlib
import struct
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from isal.isal_zlib import crc32

from tornpage.impl.delay.schedule import DeliverDelayedMessages
from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.dispatch.derived_floor import DerivedFloor, DerivedProof
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.whole_files import WholeFiles
from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.recovery.opening import AbortMarker
from tornpage.impl.recovery.recovery import Recovery
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.model.operations import (
    AimFault,
    Clean,
    Close,
    Crash,
    DeleteTopics,
    HarmDerived,
    Open,
    Operation,
    Put,
    Step,
)
from tornpage.properties.planted.log import B25
from tornpage.properties.planted.programs import COMMIT, FLUSH, FLUSH_QUEUES, PUT, REPUT, SAVE, SMALL
from tornpage.properties.planted.record import PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]

_HEAD = struct.Struct(">8sqq")


# ---- calls that fail -------------------------------------------------------------------------------------------------


class _SecondSyncTrusted(MappedFile):
    """Retry a failed sync and trust the second one. The kernel has dropped the dirty pages."""

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.failure = None
            super().flush()


class _PageCacheTrusted(Recovery):
    """Sync what recovery read from memory and trust it.

    The kernel never writes pages that count as clean.
    """

    def _make_durable(self) -> None:
        clean_exit, self._clean_exit = self._clean_exit, True
        try:
            super()._make_durable()
        finally:
            self._clean_exit = clean_exit


class _ErasureTrusted(MappedFile):
    """Trust an erasure of an earlier recovery whose sync failed."""

    def rewrite(self, start: int, end: int) -> None:
        super().rewrite(start, min(end, self.written_position))


class _RemovedUnitsCounted(ConsumeQueue):
    """Count units of removed files in a queue that could not be erased whole."""

    def _erase(self, number: int) -> bool:
        erased = self._files.cut(number * UNIT_BYTES)
        self._ext_settled = self.ext is None or self.ext.is_empty
        self.max_offset = 0 if self.is_empty else number
        self.min_offset = min(self.min_offset, self.max_offset)
        return erased


class _Unread(ConfigFile):
    """Treat an unreadable file as absent, and lose its content."""

    def _bytes(self, path: str) -> bytes | None:
        with contextlib.suppress(OSError):
            return super()._bytes(path)
        return None


class _HalfWritten(ConfigFile):
    """Replace the last version by a new version that was only partly written."""

    def _write(self, path: str, content: bytes) -> None:
        if self._files.stat(path) is not None:
            self._files.unlink(path)
        file = self._files.create(path)
        try:
            with contextlib.suppress(OSError):
                self._files.pwrite(file, content, 0)
            self._files.sync(file)
        finally:
            self._files.close(file)


class _NotRenamed(ConfigFile):
    """Count a new version whose rename failed as saved."""

    def save(self, document: object) -> None:
        with contextlib.suppress(OSError):
            super().save(document)


class _MarkerKept(AbortMarker):
    """Call an exit clean although the removal of the abort marker failed."""

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            super().remove()


def _marker(files: Files, root: str) -> AbortMarker:
    return _MarkerKept(files, root)


class _FailedRemovalSkipped(CleanCommitLog):
    """Skip a log file whose removal fails and remove the next one, which leaves a gap."""

    def delete_first(self, now_ms: int, *, clock_ms: int, urgent: bool) -> bool:
        try:
            return super().delete_first(now_ms, clock_ms=clock_ms, urgent=urgent)
        except OSError:
            is_passed_over, self._hanging = self._hanging is not None, None
            return is_passed_over


class _QueuesFlushedIfPossible(CleanCommitLog):
    """Remove a log file even if the flush of its queues and index fails."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        flush = self._make_derived_durable

        def flush_if_possible() -> None:
            with contextlib.suppress(OSError):
                flush()

        self._make_derived_durable = flush_if_possible


class _PartlyRemovedReused(ConsumeQueues):
    """Return a partly removed queue to service. Its numbers restart at 0."""

    def remove(self, queue: ConsumeQueue) -> None:
        try:
            super().remove(queue)
        except OSError:
            self._queues[queue.key] = self._leftovers.pop(queue.key)
            raise


class _LeftBehind(ConsumeQueues):
    """Forget files of a deleted queue whose removal failed."""

    def _destroy(self, queue: ConsumeQueue) -> None:
        del self._leftovers[queue.key]
        try:
            queue.destroy()
        finally:
            queue.close()


class _DeletionNotTakenBack(DeletedTopics):
    """Leave a failed deletion on disk when only the sync of its directory failed."""

    def write_if_doubtful(self) -> None:
        """Do nothing."""


class _DeletedIfPossible(DeletedTopics):
    """Delete topics although the deletion could not be recorded on disk."""

    def add(self, topics: Collection[bytes], offset: int) -> None:
        with contextlib.suppress(OSError):
            super().add(topics, offset)


class _UntrueFloorKept(DerivedFloor):
    """Keep a derived floor that proved untrue.

    After a failed sync the page cache makes it look true again.
    """

    def forget(self) -> None:
        """Leave the file for the next one to replace."""


class _UnfinishedFileKept(WholeFiles):
    """Create a file under its own name; it stays if it can be neither filled nor removed."""

    def make(self, path: str, *, top: str, fill: Callable[[OpenFile], object], replaces: bool = False) -> OpenFile:
        return self._filled(path, fill)


class _PutAgainAtOnce(DeliverDelayedMessages):
    """Put a copy again at once after no file was available, and report the first answer."""

    def _refusal_of(self, copy: Message) -> PutStatus | None:
        refused = super()._refusal_of(copy)
        if refused is PutStatus.CREATE_MAPEDFILE_FAILED:
            super()._refusal_of(copy)
        return refused


# ---- small files that are torn ---------------------------------------------------------------------------------------


class _InTwoWrites(DurableFloor):
    """Write a higher floor first and its checksum in a second write."""

    def raise_to(self, offset: int) -> None:
        assert self._file is not None
        if offset > self._offset:
            head = _HEAD.pack(b"TPFLOOR1", offset, self._file_bytes)
            self._files.pwrite(self._file, head, 0)
            self._files.pwrite(self._file, struct.pack(">I", crc32(head)), _HEAD.size)
            self._offset = offset


class _NotSyncedAtOpen(DurableFloor):
    """Overwrite an existing floor at an open without a sync."""

    def start(self, offset: int) -> None:
        if self._files.stat(self._path) is None:
            super().start(offset)
            return
        self._file, self._offset = self._files.open(self._path, writable=True), -1
        self.raise_to(offset)


class _RenamedFirst(DerivedFloor):
    """Rename the new derived floor over the old one before syncing it."""

    def write(self, proof: DerivedProof) -> None:
        files = self._files
        self._files = _SyncsNoFile(files)  # type: ignore[assignment]
        try:
            super().write(proof)
        finally:
            self._files = files
        file = files.open(self._path, writable=True)
        try:
            files.sync(file)
        finally:
            files.close(file)


class _SyncsNoFile:
    """Wrap files so that only names become durable."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def sync(self, file: object) -> None:
        """Do nothing."""


class _ShortCheckpoint(Checkpoint):
    """Create a new checkpoint shorter than the length that RocketMQ maps."""

    def start(self) -> None:
        if self._files.stat(self._path) is None:
            self._file = self._files.create(self._path)
        else:
            super().start()


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

THREE_PAGES = Settings(file_bytes=16_384)
BIG = Put(body_bytes=3_000)
DELAYED_LARGE = Put(body_bytes=500, properties="DELAY\x011")
THREE_FILES: tuple[Operation, ...] = (Put(queue_id=1, body_bytes=700), *[Put(body_bytes=700)] * 2, FLUSH, REPUT)
CLEAN_EXPIRED = Clean(after_hours=73, manual=True)
SECOND_STAYS = AimFault("unlink-error", "kind=marker or kind=queue and nth=2")
QUEUE_STAYS = AimFault("unlink-error", "kind=queue and nth=1")
INDEX_STAYS = AimFault("unlink-error", "kind=index and nth=1")
LOST = AimFault("sync-lost", "kind=log and nth=1")

BUGS = (
    PlantedBug("second-sync-trusted",
        "a failed sync is retried and the second one trusted, after the pages were dropped (RMQ-B25)", 9,
        Parts({MappedFile: _SecondSyncTrusted}), origin=B25, machine="failing-disk",
        program=(SMALL, (PUT, LOST, FLUSH, Crash())), breaks_first=2),
    PlantedBug("page-cache-believed", "recovery trusts pages in memory that a failed sync has dropped", 6,
        Parts({Recovery: _PageCacheTrusted}), machine="failing-disk", program=(SMALL, (PUT, LOST, FLUSH, Open()))),
    PlantedBug("erasure-believed", "recovery trusts an erasure whose sync failed", 3,
        Parts({MappedFile: _ErasureTrusted}), machine="failing-disk",
        program=(THREE_PAGES, (BIG, FLUSH, BIG, BIG, BIG, LOST,
            Crash(survived={"page /store/commitlog/00000000000000000000 2": 1})))),
    PlantedBug("counts-what-is-gone", "a queue that was erased only in part still counts units of removed files", 7,
        Parts({ConsumeQueue: _RemovedUnitsCounted}), machine="failing-disk",
        program=(replace(SMALL, queue_ext=True, queue_units=1), (SECOND_STAYS, PUT, PUT, Open()))),
    PlantedBug("unread-is-empty",
        "a progress file that cannot be read is treated as empty", 13, Parts({ConfigFile: _Unread}),
        machine="failing-disk",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, AimFault("read-error",
            "path=consumerOffset.json and op=open"), Open())), breaks_first=17),
    PlantedBug("half-written-progress", "a partly written progress file replaces the last complete one", 13,
        Parts({ConfigFile: _HalfWritten}), machine="failing-disk",
        program=(SMALL, (PUT, REPUT, COMMIT, AimFault("short-write", "kind=progress"), Close(), Open()))),
    PlantedBug("not-renamed", "a save of progress counts as done although its rename failed", 13,
        Parts({ConfigFile: _NotRenamed}), machine="failing-disk",
        program=(SMALL, (PUT, REPUT, COMMIT, AimFault("rename-error", "kind=progress"), Close(), Open()))),
    PlantedBug("marker-stays", "a close counts as clean although the abort marker could not be removed", 2,
        Parts({AbortMarker: _marker}), machine="failing-disk",
        program=(SMALL, (PUT, AimFault("unlink-error", "kind=marker"), Close()))),
    PlantedBug("who-stays-is-passed-over",
        "after failing to remove a log file, clean-up removes the next one and leaves a gap", 10,
        Parts({CleanCommitLog: _FailedRemovalSkipped}), machine="failing-disk",
        program=(SMALL, (*THREE_FILES, AimFault("unlink-error", "nth=1"), CLEAN_EXPIRED))),
    PlantedBug("queues-flushed-if-possible", "clean-up removes a log file although its queues could not be flushed", 4,
        Parts({CleanCommitLog: _QueuesFlushedIfPossible}), machine="failing-disk",
        program=(SMALL, (*THREE_FILES, AimFault("sync-error", "kind=queue"), CLEAN_EXPIRED, Crash()))),
    PlantedBug("deleted-queue-known-again",
        "a deleted queue returns to service when one of its files cannot be removed", 10,
        Parts({ConsumeQueues: _PartlyRemovedReused}), machine="failing-disk",
        program=(SMALL, (PUT, REPUT, QUEUE_STAYS, DeleteTopics()))),
    PlantedBug("deleted-queue-left-behind", "files of a deleted queue that could not be removed are forgotten", 4,
        Parts({ConsumeQueues: _LeftBehind}), machine="failing-disk",
        program=(SMALL, (PUT, REPUT, FLUSH_QUEUES, QUEUE_STAYS, DeleteTopics(), Close()))),
    PlantedBug("refused-deletion-stays",
        "a topic deletion that was answered with an error takes effect after a clean close", 10,
        Parts({DeletedTopics: _DeletionNotTakenBack}), machine="failing-disk",
        program=(SMALL, (PUT, AimFault("directory-sync-error", "path=config"), DeleteTopics(), Open()))),
    PlantedBug("deleted-if-possible", "a topic is deleted although the deletion could not be recorded on disk", 10,
        Parts({DeletedTopics: _DeletedIfPossible}), machine="failing-disk",
        program=(SMALL, (PUT, FLUSH, AimFault("rename-error", "kind=topics"), DeleteTopics(), Crash()))),
    PlantedBug("untrue-floor-kept", "a derived floor that proved untrue is kept", 4,
        Parts({DerivedFloor: _UntrueFloorKept}), machine="failing-disk",
        program=(SMALL, (PUT, HarmDerived(harm="zeroed"), AimFault("sync-lost"), Open(), Close()))),
    PlantedBug("half-made-index-file-stays",
        "an unfinished index file that could not be removed is left after a clean close", 5,
        Parts({WholeFiles: _UnfinishedFileKept}), machine="failing-disk",
        program=(SMALL, (Put(properties="KEYS\x01k"), AimFault("short-write", "kind=index and nth=1"), INDEX_STAYS,
            REPUT, Close()))),
    PlantedBug("refused-copy-put-again",
        "a copy that found no file is put again at once and stored twice", 12,
        Parts({DeliverDelayedMessages: _PutAgainAtOnce}), machine="failing-disk",
        program=(SMALL, (DELAYED_LARGE, REPUT, AimFault("no-space", "op=create and nth=1"), Step(service="schedule",
            after_ms=1_000)))),
    PlantedBug("floor-in-two-writes",
        "the durable floor and its checksum are written in two writes, so a crash can tear it", 13,
        Parts({DurableFloor: _InTwoWrites}), machine="commit-log",
        program=(SMALL, (PUT, FLUSH, Crash(back=2, others="kept")))),
    PlantedBug("floor-not-synced", "an open does not sync the durable floor that it writes", 7,
        Parts({DurableFloor: _NotSyncedAtOpen}), machine="commit-log", program=(SMALL, (PUT, Crash(kill=True)))),
    PlantedBug("derived-floor-renamed-first",
        "a new derived floor is renamed into place before its content is synced", 13,
        Parts({DerivedFloor: _RenamedFirst}), machine="commit-log",
        program=(SMALL, (PUT, FLUSH, REPUT, Step(service="flush-queues", after_ms=60_000), Crash(back=2)))),
    PlantedBug("checkpoint-of-its-times", "a new checkpoint file is shorter than the length that RocketMQ maps", 13,
        Parts({Checkpoint: _ShortCheckpoint}), machine="commit-log", program=(SMALL, (Close(), Crash()))),
)  # fmt: skip
