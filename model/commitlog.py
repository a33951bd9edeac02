"""The commit log as a value: what was appended, what is durable, and every answer the log alone decides.

1. Records stand one behind the other in files of one size; none spans two files, and at least 8 bytes stay free
   behind each. When a record does not fit, the rest of the file is blank and the record begins the next file.
2. `0 <= flushed_offset <= end_offset`; neither goes down, except through a crash (model/disasters.py).
3. A refused put changes nothing.
4. Records of one queue are numbered from 0 without a gap; prepared and rolled-back transactions carry 0 and do not
   count.
5. After a failed sync nothing more is accepted, and reads stop at what was flushed.

Nothing here opens, times or draws anything; cost is no concern.
"""

from dataclasses import dataclass, replace
from enum import Enum

from model.message import Message, PutStatus, record_bytes, refusal, waits_for_disk

__all__ = ["CommitLog", "GetStatus", "Layout", "PutOutcome", "Record", "append", "flush", "get", "reopen"]

BLANK_BYTES = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes and promises a store was opened with. `files_max` is how many files the disk has room for."""

    file_bytes: int
    record_bytes_max: int
    trailer: bool
    sync_flush: bool
    files_max: int


@dataclass(frozen=True, slots=True)
class Record:
    """One appended message at its physical offset, `size_bytes` long."""

    offset: int
    size_bytes: int
    queue_offset: int
    store_timestamp: int
    message: Message

    @property
    def end_offset(self) -> int:
        """Physical offset just behind the record."""
        return self.offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class CommitLog:
    """`end_offset` is where the next record goes unless it needs a new file; `poisoned` says a sync has failed."""

    records: tuple[Record, ...] = ()
    end_offset: int = 0
    flushed_offset: int = 0
    files: int = 0
    poisoned: bool = False

    @property
    def readable_end(self) -> int:
        """Physical offset up to which readers see records."""
        return self.flushed_offset if self.poisoned else self.end_offset


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """The answer to a put; `record` is None when nothing was written."""

    status: PutStatus
    record: Record | None = None


class GetStatus(Enum):
    """Every answer a get by physical offset can have."""

    FOUND = "FOUND"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"


def append(
    log: CommitLog, message: Message, *, layout: Layout, store_timestamp: int, sync_fails: bool = False
) -> tuple[CommitLog, PutOutcome]:
    """Put one message. `sync_fails` says that the next file sync of the disk, if this put needs one, will fail:
    that of a new file (which is then refused) or that of a flush.

    Source: docs/statuses.md.
    """
    if log.poisoned:
        return log, PutOutcome(PutStatus.SERVICE_NOT_AVAILABLE)
    refused = refusal(message, trailer=layout.trailer)
    if refused is not None:
        return log, PutOutcome(refused)
    size_bytes = record_bytes(message, trailer=layout.trailer)
    if size_bytes > layout.record_bytes_max or size_bytes + BLANK_BYTES > layout.file_bytes:
        return log, PutOutcome(PutStatus.MESSAGE_ILLEGAL)
    offset, files = log.end_offset, log.files
    if offset + size_bytes + BLANK_BYTES > files * layout.file_bytes:
        if files == layout.files_max or sync_fails:
            return log, PutOutcome(PutStatus.CREATE_MAPEDFILE_FAILED)
        offset, files = files * layout.file_bytes, files + 1
    record = Record(offset, size_bytes, _next_queue_offset(log, message), store_timestamp, message)
    appended = replace(log, records=(*log.records, record), end_offset=record.end_offset, files=files)
    if not (layout.sync_flush and waits_for_disk(message)):
        return appended, PutOutcome(PutStatus.PUT_OK, record)
    flushed, durable = flush(appended, sync_fails=sync_fails)
    return flushed, PutOutcome(PutStatus.PUT_OK if durable else PutStatus.FLUSH_DISK_TIMEOUT, record)


def _next_queue_offset(log: CommitLog, message: Message) -> int:
    if not message.counts_in_its_queue:
        return 0
    queue = (message.topic, message.queue_id)
    counted = [r for r in log.records if r.message.counts_in_its_queue]
    return sum((r.message.topic, r.message.queue_id) == queue for r in counted)


def flush(log: CommitLog, *, sync_fails: bool = False) -> tuple[CommitLog, bool]:
    """Make everything appended durable; a failed sync moves nothing and poisons the log."""
    if log.poisoned:
        return log, False
    if sync_fails and log.flushed_offset < log.end_offset:
        return replace(log, poisoned=True), False
    return replace(log, flushed_offset=log.end_offset), True


def get(log: CommitLog, offset: int) -> tuple[GetStatus, Record | None]:
    """Look a record up by the physical offset at which it begins."""
    if offset < 0:
        return GetStatus.OFFSET_TOO_SMALL, None
    if offset == log.readable_end:
        return GetStatus.OFFSET_OVERFLOW_ONE, None
    if offset > log.readable_end:
        return GetStatus.OFFSET_OVERFLOW_BADLY, None
    found = [record for record in log.records if record.offset == offset]
    return (GetStatus.FOUND, found[0]) if found else (GetStatus.OFFSET_FOUND_NULL, None)


def reopen(log: CommitLog) -> CommitLog:
    """Close cleanly and open again: everything appended is durable, an empty newest file stays."""
    assert not log.poisoned
    return replace(log, flushed_offset=log.end_offset)
