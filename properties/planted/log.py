"""Define bugs of the log: making, loading, buffering and flushing its files."""

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.whole_files import WholeFiles
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.durable_floor import DurableFloor, Floor
from tornpage.impl.log.flushing import FlushRealTime
from tornpage.impl.log.loading import Finding, FoundLog, examine_log
from tornpage.impl.log.log_directories import LogDirectories, directory_of
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.message.properties_text import text_of, wait_store_msg_ok
from tornpage.impl.parts import Parts
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.time_outs import Request, TimeOuts
from tornpage.impl.recovery.opening import AbortMarker
from tornpage.model.operations import Close, Crash, Damage, DiskUsed, FailSync, FailWrite, HarmField, Open, Put, Step
from tornpage.properties.planted.programs import (
    ACROSS_TWO_SECTORS,
    FIRST_LOG_FILE,
    FLUSH,
    FULL,
    POOL,
    PUT,
    SMALL,
    SYNC,
    TORN,
    TWO_PAGES,
    losing,
    page_of,
)
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings
from tornpage.properties.scheduler import yield_point

__all__ = ["B25", "BUGS"]

PAGE_BYTES = 4096


# ---- making a file ---------------------------------------------------------------------------------------------------


class _SizeNotSynced(WholeFiles):
    """Rename a new file into place before its size is durable."""

    def _filled(self, path: str, fill: Callable[[OpenFile], object]) -> OpenFile:
        file = self._files.create(path)
        fill(file)
        return file


class _MadeInPlace(WholeFiles):
    """Create a file under its own name before it has its size (hole G1 of 4.9.3)."""

    def make(self, path: str, *, top: str, fill: Callable[[OpenFile], object], replaces: bool = False) -> OpenFile:
        return self._filled(path, fill)


class _DirectoryNotSynced(LogFileMaker):
    """Leave the name of a new file unsynced (hole A2 of 4.9.3)."""

    def _sync_name(self, path: str) -> None:
        pass


class _MarkerNotSynced(AbortMarker):
    """Create the abort marker without making it durable (hole H6 of 4.9.3)."""

    def create(self) -> None:
        if not self.present():
            self._files.close(self._files.create(self._path))


# ---- loading the log at an open --------------------------------------------------------------------------------------


def _empty_newest_blocks(
    files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None
) -> FoundLog:
    """Refuse to start with an empty newest file."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    empty = [path for path in found.leftovers if (stat := files.stat(path)) is not None and not stat.size_bytes]
    blocking = tuple(Finding("damage", "short_file", path, 0, f"{path} is empty") for path in empty)
    return replace(found, findings=found.findings + blocking)


def _short_file_ends_the_load(
    files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None
) -> FoundLog:
    """Load only the files before one of another size, and report nothing."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    sizes = [stat.size_bytes if (stat := files.stat(path)) is not None else 0 for path in found.paths]
    whole = next((number for number, size in enumerate(sizes) if size != file_bytes), len(sizes))
    kept = tuple(finding for finding in found.findings if finding.code != "short_file")
    return replace(found, paths=found.paths[:whole], findings=kept)


def _in_path_order(files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None) -> FoundLog:
    """Order the files of several directories by path."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    return replace(found, paths=tuple(sorted(found.paths)))


class _NamedAfterTheList(LogDirectories):
    """Replace several directories by a single one whose name is the whole list."""

    def __init__(self, files: Files, paths: Collection[str], **options: Any) -> None:
        names = [path.rpartition("/")[2] for path in paths]
        super().__init__(files, [f"{directory_of(min(paths))}/{','.join(names)}"], **options)


# ---- claims of durability --------------------------------------------------------------------------------------------


class _EarlyAcknowledgement(GroupCommit):
    """Answer a synchronous put before its flush."""

    def submit(self, request: Request) -> None:
        request.answer(PutStatus.PUT_OK)


class _LyingFlush(MappedFile):
    """Move the flushed watermark without syncing."""

    def flush(self) -> None:
        self.flushed_position = self.committed_position


class _DroppedFirstPage(MappedFile):
    """Leave out the page in which a flush begins, as if the start had been rounded up."""

    def flush(self) -> None:
        start = self.flushed_position // PAGE_BYTES * PAGE_BYTES
        end = min(start + PAGE_BYTES, self.size_bytes)
        page = bytes(self.view[start:end])
        self.view[self.flushed_position : end] = bytes(end - self.flushed_position)
        super().flush()
        self.view[start:end] = page


class _WholePagesOnly(MappedFile):
    """Leave out the page that is not full yet, as if the end had been rounded down."""

    def flush(self) -> None:
        start = max(self.committed_position // PAGE_BYTES * PAGE_BYTES, self.flushed_position)
        rest = bytes(self.view[start : self.committed_position])
        self.view[start : self.committed_position] = bytes(len(rest))
        super().flush()
        self.view[start : start + len(rest)] = rest


class _SyncErrorIgnored(MappedFile):
    """Count a failed sync as a flush (hole A1 of 4.9.3)."""

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.failure = None
            self.flushed_position = self.committed_position


class _LastFileOnly(MappedFileQueue):
    """Sync only the newest file when a flush spans two files."""

    def flush(self, least_pages: int = 0) -> int:
        if self.mapped:
            self.mapped[-1].flush()
            self.flushed_where = self.committed_where
        return self.flushed_where


class _FloorFirst(MappedFileQueue):
    """Write the durable floor before the flush that it describes."""

    def flush(self, least_pages: int = 0) -> int:
        files, root = self._maker._files, self.directories.paths[0].rpartition("/")[0]
        if files.stat(f"{root}/config/durableFloor") is not None:
            floor = DurableFloor(files, f"{root}/config/durableFloor", file_bytes=self.file_bytes)
            floor.start(self.committed_where)
            floor.close()
        return super().flush(least_pages)


class _FloorAhead(DurableFloor):
    """Claim one page more in the durable floor than was flushed."""

    def raise_to(self, offset: int) -> None:
        super().raise_to(offset + PAGE_BYTES)


# ---- flushes ---------------------------------------------------------------------------------------------------------


class _OnlyWaitingPuts(CommitLog):
    """Advance the checkpoint only for puts that wait for their flush (RMQ-B06)."""

    def _append(self, message: Message, record: bytearray, store_timestamp: int) -> PutResult:
        before = self._last_store_timestamp
        result = super()._append(message, record, store_timestamp)
        if not wait_store_msg_ok(text_of(message.properties) or ""):
            self._last_store_timestamp = before
        return result


class _CheckpointAhead(CommitLog):
    """Put the time of the newest record into the checkpoint, flushed or not (4.9.3, pool)."""

    def flush(self, least_pages: int = 0) -> None:
        super().flush(least_pages)
        self.flushed_store_timestamp = self._last_store_timestamp


class _Spins(GroupCommit):
    """Run a service without work again at once (RMQ-B30)."""

    def step(self, now_ms: int) -> int:  # type: ignore[override]
        super().step(now_ms)
        return now_ms


class _ForgetsAtShutdown(GroupCommit):
    """Drop requests that wait when the store is closed (4.9.3, requests after the last swap)."""

    def finish(self) -> None:
        self._waiting.clear()
        super().finish()


class _SwappedUnderAWriter(GroupCommit):
    """Swap two request lists while a writer adds a request, which is then lost (RMQ-B31).

    The served list is emptied together with a request that arrived after its flush.
    """

    def __init__(self, flush: Callable[[], int], **options: Any) -> None:
        super().__init__(flush, **options)
        self._served: list[Request] = []

    def submit(self, request: Request) -> None:
        waiting = self._waiting
        yield_point("add a request")
        waiting.append(request)
        if self._finished:
            self._serve()

    def _serve(self) -> None:
        served = self._waiting
        self._waiting, self._served = self._served, served
        flushed_offset = 0
        try:
            flushed_offset = self._flush()
        finally:
            for request in served:
                is_durable = flushed_offset >= request.end_offset
                request.answer(PutStatus.PUT_OK if is_durable else PutStatus.FLUSH_DISK_TIMEOUT)
            yield_point("empty the list")
            served.clear()


class _TriesTwice(MappedFileQueue):
    """Flush at most two files; a request further ahead times out at once (4.9.3)."""

    def flush(self, least_pages: int = 0) -> int:
        kept = self.mapped
        start = self.find(self.flushed_where)
        try:
            self.mapped = kept[: kept.index(start) + 2] if start is not None else kept
            return super().flush(least_pages)
        finally:
            self.mapped = kept


class _FullFilesWait(MappedFile):
    """Apply the page rule to the end of a full file, so that no timed flush gets past it."""

    @property
    def is_full(self) -> bool:
        return False


class _NeverThorough(FlushRealTime):
    """Never let the timer flush an amount smaller than the page rule."""

    def _least_pages(self, now_ms: int) -> int:
        return self._policy.flush_commit_log_least_pages


class _NoTimeOut(TimeOuts):
    """Ignore deadlines: a put that waits for a hanging disk waits forever."""

    def step(self, now_ms: int) -> int | None:
        return None


# ---- buffers of the pool ---------------------------------------------------------------------------------------------


class _PoolUnderSync(MappedFileQueue):
    """Use the pool in a synchronous store, whose flush does not wait for a commit (RMQ-B28)."""

    def __init__(self, maker: Any, allocation: Any, **options: Any) -> None:
        super().__init__(maker, allocation, **options)
        self.use_pool(TransientStorePool(2, maker.file_bytes))


class _ShortCommitIgnored(MappedFile):
    """Count a short write of a commit as whole (4.9.3 ignores the result of the write)."""

    def commit(self) -> None:
        written = self.written_position
        try:
            super().commit()
        except OSError:
            self._committed_position = written


class _WholeBufferWritten(MappedFile):
    """Write the whole buffer after a blank record, including bytes of an earlier file."""

    def commit(self) -> None:
        blank_position, self.blank_position = self.blank_position, None
        try:
            super().commit()
        finally:
            self.blank_position = blank_position


class _BufferKept(MappedFileQueue):
    """Keep the buffer of a full file (4.9.3, when a file with a buffer is destroyed)."""

    def _return(self, buffer: memoryview | None) -> None:
        """Return nothing to the pool."""


class _ReadersSeeBuffers(MappedFileQueue):
    """Let readers see everything written, committed or not."""

    @property
    def committed_where(self) -> int:
        return self.max_offset


class _FlushOfBuffers(MappedFile):
    """Count bytes that are still in the buffer as flushed."""

    def flush(self) -> None:
        super().flush()
        self.flushed_position = self.written_position


class _CommitsAtOnce(MappedFileQueue):
    """Commit from the commit service and a flush at once, each to the end it saw (RMQ-B29)."""

    def __init__(self, maker: Any, allocation: Any, **options: Any) -> None:
        super().__init__(maker, allocation, **options)
        self._commit_lock = nullcontext()


# ---- files made ahead ------------------------------------------------------------------------------------------------


class _OneFlagForAll(AllocateMappedFiles):
    """Refuse every file, ready or not, after one creation failed (4.9.3, `hasException`)."""

    def take(self, base_offset: int) -> MappedFile:
        for request in self._requests.values():
            if request.failure is not None:
                raise request.failure
        return super().take(base_offset)


class _EndsForGood(AllocateMappedFiles):
    """Stop the allocation service at its first error (4.9.3)."""

    _ended = False

    def step(self, now_ms: int) -> int | None:
        if self._ended:
            return None
        due_ms = super().step(now_ms)
        self._ended = any(request.failure is not None for request in self._requests.values())
        return None if self._ended else due_ms


class _LastFirst(AllocateMappedFiles):
    """Create the file after the next one first; a crash in between leaves a gap."""

    def step(self, now_ms: int) -> int | None:
        with self._guard:
            missing = sorted(base for base, request in self._requests.items() if request.file is None)
        if len(missing) > 1 and self._requests[missing[-1]].failure is None:
            self._requests[missing[-1]].file = self._maker.make(missing[-1])
            return now_ms
        return super().step(now_ms)


class _LeftBehind(AllocateMappedFiles):
    """Leave unused prepared files after a clean close."""

    def close(self) -> None:
        self._runner.stop()
        for request in self._requests.values():
            if request.file is not None:
                request.file.close()
        self._requests.clear()


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

TWO_PATHS = Settings(file_bytes=1024, log_paths=2)
FLOOR = "/store/config/durableFloor"
AHEAD = Settings(file_bytes=1024, files_ahead=1)
CLOSE = Close()
BY_TIMER = Step(service="flush")
COMMIT_ROUND = Step(service="commit")
ALLOCATE = Step(service="allocate")
WAITS = Put(later=True)

B25 = Origin("RMQ-B25", "Flushed position advanced although the flush failed", "after 5.3.3", "yes")

BUGS = (
    PlantedBug("size-not-synced", "the size of a new log file is not synced", 7, Parts({WholeFiles: _SizeNotSynced}),
        machine="commit-log", program=(SMALL, (FULL, PUT, losing(f"size {FIRST_LOG_FILE}")))),
    PlantedBug("made-in-place", "a new log file has its name before it has its size", 7,
        Parts({WholeFiles: _MadeInPlace}), holes=("G1",), machine="commit-log",
        program=(SMALL, (PUT, Crash(kill=True, back=5)))),
    PlantedBug("directory-not-synced", "the directory entry of a new log file is not synced", 2,
        Parts({LogFileMaker: _DirectoryNotSynced}), kind="skip a directory sync", holes=("A2",), machine="commit-log",
        program=(SMALL, (PUT, FLUSH, losing(f"link {FIRST_LOG_FILE}", page_of(FLOOR))))),
    PlantedBug("marker-not-synced", "the abort marker is not made durable", 7, Parts({AbortMarker: _MarkerNotSynced}),
        holes=("H6",), machine="commit-log",
        program=(SMALL, (ACROSS_TWO_SECTORS, Crash(survived={**TORN.survived, "create /store/abort": 0},
            others="kept")))),
    PlantedBug("RMQ-B08", "an empty newest log file keeps the store from starting", 7,
        Parts({examine_log: _empty_newest_blocks}),
        origin=Origin("RMQ-B08", "A zero-length last segment blocks start-up", "5.1.3", "yes"),
        machine="queue", program=(Settings(file_bytes=1024, trailer=False), (PUT, HarmField(field="ahead")))),
    PlantedBug("RMQ-B09", "a log file of the wrong size silently ends the log", 7,
        Parts({examine_log: _short_file_ends_the_load}),
        origin=Origin("RMQ-B09", "Mis-sized segment silently ends the load", "4.9.3", "no"), machine="commit-log",
        program=(SMALL, (PUT, Damage(kind="truncate", amount=1)))),
    PlantedBug("RMQ-B10", "log files in several directories are loaded in path order, not in offset order", 1,
        Parts({examine_log: _in_path_order}),
        origin=Origin("RMQ-B10", "Multi-directory log loaded in path order", "4.9.2", "no"), machine="commit-log",
        program=(TWO_PATHS, (FULL, FULL, FULL, Crash(others="kept")))),
    PlantedBug("RMQ-B79", "a list of log directories becomes one directory named after the list", 1,
        Parts({LogDirectories: _NamedAfterTheList}),
        origin=Origin("RMQ-B79", "Directory literally named after the path list", "4.9.4", "yes"),
        machine="commit-log", program=(TWO_PATHS, (PUT,))),
    PlantedBug("early-acknowledgement", "a synchronous put is acknowledged before its flush", 2,
        Parts({GroupCommit: _EarlyAcknowledgement}), kind="acknowledge early", machine="commit-log",
        program=(SYNC, (PUT,)), breaks_first=9),
    PlantedBug("lying-flush", "a flush moves the flushed watermark without a sync", 2, Parts({MappedFile: _LyingFlush}),
        kind="drop a flush", machine="commit-log", program=(SMALL, (PUT, Close()))),
    PlantedBug("dropped-first-page", "a flush leaves out the page in which it begins", 2,
        Parts({MappedFile: _DroppedFirstPage}), kind="round a flush", machine="commit-log",
        program=(SYNC, (PUT, losing(page_of(FIRST_LOG_FILE), page_of(FLOOR))))),
    PlantedBug("whole-pages-only", "a flush leaves out the last, partly filled page", 2,
        Parts({MappedFile: _WholePagesOnly}), kind="round a flush", machine="commit-log",
        program=(SMALL, (PUT, Close()))),
    PlantedBug("sync-error-ignored", "a failed sync counts as a flush (RMQ-B25)", 9,
        Parts({MappedFile: _SyncErrorIgnored}), origin=B25, holes=("A1",), machine="commit-log",
        program=(SMALL, (PUT, FailSync(), FLUSH))),
    PlantedBug("last-file-only", "a flush that spans two files syncs only the newest one", 2,
        Parts({MappedFileQueue: _LastFileOnly}), kind="drop a flush", machine="commit-log",
        program=(SMALL, (FULL, PUT, Close()))),
    PlantedBug("floor-before-flush", "the durable floor is written before the flush that it describes", 7,
        Parts({MappedFileQueue: _FloorFirst}), kind="reorder flushes", machine="commit-log",
        program=(SYNC, (PUT,)), breaks_first=16),
    PlantedBug("floor-ahead", "the durable floor is one page higher than what was flushed", 7,
        Parts({DurableFloor: _FloorAhead}), kind="acknowledge early", machine="commit-log", program=(SMALL, (Open(),))),
    PlantedBug("RMQ-B06", "the checkpoint advances only for puts that wait for their flush", 9,
        Parts({CommitLog: _OnlyWaitingPuts}),
        origin=Origin("RMQ-B06", "Physical checkpoint never advances for no-wait messages under sync flush",
            "not fixed", "yes"), machine="flush", program=(SMALL, (Put(properties="WAIT\x01false"), CLOSE))),
    PlantedBug("checkpoint-ahead", "the checkpoint names a record that is not durable", 9,
        Parts({CommitLog: _CheckpointAhead}), kind="swap flush and checkpoint", machine="flush",
        program=(SMALL, (BY_TIMER, PUT, BY_TIMER, Step(service="flush-queues")))),
    PlantedBug("RMQ-B30", "a service without work runs again at once (busy loop)", 16, Parts({GroupCommit: _Spins}),
        origin=Origin("RMQ-B30", "Group commit and transfer services spin", "4.0.0", "no"), machine="flush",
        program=(SYNC, (Step(),))),
    PlantedBug("forgotten-at-shutdown", "a close does not flush and answer the puts that are waiting", 16,
        Parts({GroupCommit: _ForgetsAtShutdown}), machine="flush", program=(SYNC, (WAITS, CLOSE)), breaks_first=8),
    PlantedBug("RMQ-B31", "a put that arrives while group commit swaps its lists is never answered", 17,
        Parts({GroupCommit: _SwappedUnderAWriter}),
        origin=Origin("RMQ-B31", "Group-commit request lists swapped under a writer", "4.1.0", "no"), machine="flush"),
    PlantedBug("two-files-a-flush", "a flush stops after two files", 9, Parts({MappedFileQueue: _TriesTwice}),
        machine="flush", program=(TWO_PAGES, (PUT, Put(body_bytes=8_000), PUT, BY_TIMER))),
    PlantedBug("full-files-wait", "the end of a full file waits for the minimum page count of a flush", 9,
        Parts({MappedFile: _FullFilesWait}), machine="flush", program=(SMALL, (BY_TIMER, FULL, FULL, BY_TIMER))),
    PlantedBug("never-thorough",
        "the timer never flushes less than the minimum page count", 9, Parts({FlushRealTime: _NeverThorough}),
        machine="flush", program=(SMALL, (PUT, BY_TIMER))),
    PlantedBug("no-time-out", "a put that waits for a hanging disk is never answered", 16,
        Parts({TimeOuts: _NoTimeOut}), machine="flush",
        program=(SYNC, (WAITS, Step(service="time-outs", after_ms=5_000)))),
    PlantedBug("RMQ-B28", "with a write buffer pool, a synchronous flush does not wait for the commit", 8,
        Parts({MappedFileQueue: _PoolUnderSync}),
        origin=Origin("RMQ-B28", "Sync flush with a write buffer always times out", "5.2.0", "no"), machine="flush",
        program=(SYNC, (PUT,))),
    PlantedBug("short-commit-ignored", "a short write during a commit counts as whole", 1,
        Parts({MappedFile: _ShortCommitIgnored}), holes=("H9",), machine="flush",
        program=(POOL, (FailWrite(), PUT, FLUSH)), breaks_first=9),
    PlantedBug("whole-buffer-written", "a commit writes bytes that an earlier file left in the buffer", 1,
        Parts({MappedFile: _WholeBufferWritten}), holes=("H11",), machine="flush",
        program=(POOL, (PUT, Put(body_bytes=621), Put(body_bytes=79), FLUSH, Put(body_bytes=683,
            properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b"), Put(body_bytes=87), FLUSH))),
    PlantedBug("buffer-kept", "the buffer of a full file is not returned to the pool", 8,
        Parts({MappedFileQueue: _BufferKept}), machine="flush",
        program=(replace(POOL, pool_buffers=1), (FailSync(), PUT, PUT)), breaks_first=9),
    PlantedBug("readers-see-buffers", "readers see bytes that are not committed", 17,
        Parts({MappedFileQueue: _ReadersSeeBuffers}), machine="flush", program=(POOL, (PUT,)), breaks_first=9),
    PlantedBug("RMQ-B29", "two concurrent commits move the committed watermark back", 9,
        Parts({MappedFileQueue: _CommitsAtOnce}),
        origin=Origin("RMQ-B29", "Commit called from two threads without mutual exclusion", "5.0.0", "yes"),
        machine="flush"),
    PlantedBug("flush-of-buffers",
        "a flush counts bytes as flushed that were not committed", 9, Parts({MappedFile: _FlushOfBuffers}),
        machine="flush", program=(POOL, (PUT, COMMIT_ROUND, PUT, CLOSE)), breaks_first=2),
    PlantedBug("one-flag-for-all-files", "a failed file creation also refuses other files that are ready", 8,
        Parts({AllocateMappedFiles: _OneFlagForAll}), machine="flush", program=(AHEAD, (FailSync(), PUT, PUT))),
    PlantedBug("allocation-ends", "after one error no log file is created any more", 8,
        Parts({AllocateMappedFiles: _EndsForGood}), machine="flush",
        program=(AHEAD, (PUT, DiskUsed(percent=100), ALLOCATE)), breaks_first=16),
    PlantedBug("last-file-first", "the file after the next one is created first", 7,
        Parts({AllocateMappedFiles: _LastFirst}), machine="flush", program=(AHEAD, (PUT,)), breaks_first=8),
    PlantedBug("prepared-left-behind", "prepared log files are left after a clean close", 2,
        Parts({AllocateMappedFiles: _LeftBehind}), machine="flush", program=(AHEAD, (PUT, ALLOCATE, CLOSE))),
)  # fmt: skip
