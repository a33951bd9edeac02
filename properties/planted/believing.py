"""Bugs in what an open believes of the log, and in when it takes the lock (holes of 4.9.3, RMQ-B13, RMQ-B78)."""

import struct
from dataclasses import replace
from typing import Any

from impl import codec
from impl.checkpoint import Checkpoint
from impl.codec import RecordCheck, check_record
from impl.commit_log import CommitLog
from impl.durable_floor import DurableFloor, Floor
from impl.encoder import RecordEncoder
from impl.files import Files, OpenFile
from impl.loading import FoundLog, examine_log
from impl.log_directories import LogDirectories
from impl.log_files import LogFileMaker
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.message import Message, PutResult, PutStatus
from impl.parts import Parts
from impl.recovery import Recovery, RecoveryPlan
from impl.scan import RecordChecker
from impl.store_lock import StoreLock

__all__ = ["BUGS"]

_HEAD = struct.Struct(">ii")
_I64 = struct.Struct(">q")
_MARGIN_MS = 3_000


# ---- what counts as a record -----------------------------------------------------------------------------------------


def _body_only(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Nothing but the body is looked at: neither the trailer nor a NUL in topic or properties (hole H2)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason in ("bad_checksum", "nul_in_topic", "nul_in_properties"):
        return _HEAD.unpack_from(view, position)[0], None
    return size, reason


# ---- the row of files ------------------------------------------------------------------------------------------------


class _NamesWithTheFlush(LogFileMaker):
    """Behind the first file a name is durable once something is flushed: until then a later file may outlive it."""

    def _make_durable(self, file: OpenFile) -> None:
        if int(file.path.rpartition("/")[2]) == 0:
            super()._make_durable(file)
        else:
            self._files.sync(file)


class _FlushesNames(MappedFileQueue):
    """What a flush covers is under a durable name: nothing that was promised is lost with a name."""

    def flush(self, least_pages: int = 0) -> int:
        for path in self.directories.paths:
            self._maker._files.sync_directory(path)
        return super().flush(least_pages)


def _in_a_row_or_not(files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None) -> FoundLog:
    """The files that are there are the log, whatever is missing between them (hole H4)."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    last = int(found.paths[-1].rpartition("/")[2]) if found.paths else 0
    kept = tuple(each for each in found.findings if each.code != "missing_file" or each.offset > last)
    return replace(found, findings=kept)


class _EndsBehindTheGap(Recovery):
    """The log may end where the file behind a gap begins (hole H4)."""

    def _cut(self, plan: RecoveryPlan) -> None:
        scan = plan.scan
        last = self._log.mapped[scan.file_index]
        before = self._log.mapped[scan.file_index - 1] if scan.file_index else last
        if scan.end_offset > last.base_offset or before is last or before.end_offset == last.base_offset:
            super()._cut(plan)
            return
        self._log.drop_behind(scan.file_index)
        self._erase(last, 0)
        last.written_position = 0


class _UnlinkNotSynced(LogFileMaker):
    """A file that recovery cut is unlinked, and its name left to chance (hole H8)."""

    def remove(self, mapped: MappedFile) -> None:
        mapped.close()
        self._files.unlink(mapped.path)


class _ScanStartsByTime(Recovery):
    """Recovery begins in the last file that is older than the checkpoint by 3 s, and believes all before it (H5)."""

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


class _CheckpointBelieved(_ScanStartsByTime):
    """Recovery begins in the last file that is older than the checkpoint, and believes all before it."""

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
    """Return where the records of a file seem to end that nobody checks."""
    while position + codec.BLANK_BYTES <= len(view):
        total, magic = _HEAD.unpack_from(view, position)
        if magic != codec.MESSAGE_MAGIC or total < codec.SMALLEST_RECORD_BYTES or position + total > len(view):
            break
        position += total
    return position


# ---- the lock --------------------------------------------------------------------------------------------------------


class _NotYetLocked(StoreLock):
    """Nothing is locked while the log is recovered."""

    def acquire(self) -> None:
        """Pass."""


class _LocksBehindRecovery(DurableFloor):
    """The lock is taken when the log has been recovered (hole G7, RMQ-B78)."""

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


class _RoomNotAsked(RecordEncoder):
    """A record may be longer than a log file."""

    def __init__(self, *, room_bytes_max: int, **settings: Any) -> None:
        super().__init__(room_bytes_max=1 << 30, **settings)


class _SecondAppendNotLookedAt(CommitLog):
    """What does not fit the next file either is answered like what did (hole A3)."""

    def _append(self, message: Message, record: bytearray, store_timestamp: int) -> PutResult:
        needed_bytes = len(record) + self._trailer_bytes + codec.BLANK_BYTES
        if needed_bytes <= self.log.file_bytes:
            return super()._append(message, record, store_timestamp)
        for _ in range(2):
            if self._file_with_room(needed_bytes) is None:
                return PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        return PutResult(PutStatus.PUT_OK)


BUGS = (
    ("RMQ-B13", "of a record nothing but the body is checked", 1, Parts({check_record: _body_only})),
    ("gap-accepted", "a log file may be missing between others", 1,
     Parts({
         LogFileMaker: _NamesWithTheFlush, MappedFileQueue: _FlushesNames, examine_log: _in_a_row_or_not,
         Recovery: _EndsBehindTheGap,
     })),
    ("unlink-not-synced", "the names of log files that recovery removed are left to chance", 3,
     Parts({LogFileMaker: _UnlinkNotSynced})),
    ("scan-starts-by-time", "recovery believes the log files that are older than the checkpoint", 1,
     Parts({Recovery: _ScanStartsByTime})),
    ("checkpoint-believed", "recovery believes what the checkpoint calls durable, and checks the last file alone", 7,
     Parts({Recovery: _CheckpointBelieved})),
    ("RMQ-B78", "the lock of a store is taken when its log has been recovered", 14,
     Parts({StoreLock: _NotYetLocked, DurableFloor: _LocksBehindRecovery})),
    ("larger-than-a-file", "a record that fits no file is answered as if it were stored", 8,
     Parts({RecordEncoder: _RoomNotAsked, CommitLog: _SecondAppendNotLookedAt})),
)  # fmt: skip
