"""Specify the commit log as a value: records, durability, answers of puts and gets.

1. Records follow each other in files of one size. No record spans two files, and at least 8 bytes stay free after each.
   When a record does not fit, the rest of the file becomes a blank and the record begins the next file. The records of
   a batch are placed like one record.
2. `0 <= flushed_offset <= committed_offset <= end_offset`. None of them goes down, except in a crash (model/crash.py).
3. A refused put changes nothing in the log, but the file that it asked for may be made later. If the append to the
   mapped file fails, the log gains at most a new file, and the one before it is closed.
4. Records of one queue are numbered from 0 without a gap, as long as no other record names the queue
   (model/dispatch.py). Prepared and rolled-back transactions carry 0 and do not count.
5. After a failed sync no put is accepted, and reads stop at the flushed offset.
6. A put has two steps. The append decides gates, refusals, place and numbers. The settling waits for disk and replica.
   The answer of the replica takes precedence over that of the disk.

New files are made when a record needs one, or some files ahead of that:

7. Files are made in ascending order, one at a time. Each is durable in size and name before the next. A put that takes
   a prepared file needs neither a sync nor room on the disk.
8. A put that takes a file also asks for the next `files_ahead` files, which a service makes. Without files ahead a put
   makes its own file.
9. A file that cannot be made is removed. It fails the put that waits for it. The next put tries at once, and the
   service tries after `allocation_retry_ms`. It fails no put whose own file is ready.
10. Prepared files that were not used are removed at close and by the recovery after a crash.

Clarity comes before cost here: functions may take time proportional to the log.

Source: docs/statuses.md, "every put that got this far".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tornpage.model import admission, batch, delay, dispatch, pool, waiting
from tornpage.model.flushing import flush
from tornpage.model.message import Batch, Message, PutStatus, record_bytes, waits_for_disk
from tornpage.model.state import BLANK_BYTES, CommitLog, Conditions, Layout, Record
from tornpage.model.waiting import Waiting

__all__ = [
    "NO_TROUBLE",
    "Appended",
    "CommitLog",
    "Conditions",
    "GetStatus",
    "Layout",
    "PutOutcome",
    "Record",
    "allocate_round",
    "append",
    "flush",
    "get",
    "put",
    "settle",
    "wait_for",
]

NO_TROUBLE = Conditions()


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append, before disk and replica are asked.

    Without records the answer is final. `waits` says whether the producer wants to wait for disk and replica.
    """

    status: PutStatus
    records: tuple[Record, ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """The answer to a put; `records` is empty when nothing was written."""

    status: PutStatus
    records: tuple[Record, ...] = ()

    @property
    def record(self) -> Record | None:
        """The first record, or None when nothing was written."""
        return self.records[0] if self.records else None


class GetStatus(Enum):
    """Every answer to a get (`GetMessageStatus`).

    A get by physical offset has one of the first five, a pull from a queue has any.
    """

    FOUND = "FOUND"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"


def put(
    log: CommitLog,
    given: Message | Batch,
    *,
    layout: Layout,
    store_timestamp: int,
    conditions: Conditions = NO_TROUBLE,
) -> tuple[CommitLog, PutOutcome]:
    """Put one message or one batch."""
    log, appended = append(log, given, layout=layout, store_timestamp=store_timestamp, conditions=conditions)
    return settle(log, appended, layout=layout, conditions=conditions)


def append(
    log: CommitLog,
    given: Message | Batch,
    *,
    layout: Layout,
    store_timestamp: int,
    conditions: Conditions = NO_TROUBLE,
) -> tuple[CommitLog, Appended]:
    """Place and number the records of a message or batch, or refuse them.

    Source: docs/statuses.md, the parts about puts, in their order.
    """
    closed = admission.service_refusal(log, layout=layout, lock_held_ms=conditions.lock_held_ms)
    if closed is not None:
        return log, Appended(closed)
    messages = _messages(log, given, layout)
    if isinstance(messages, PutStatus):
        return log, Appended(messages)
    sizes_bytes = [record_bytes(message, trailer=layout.trailer) for message in messages]
    if log.end_offset + sum(sizes_bytes) + BLANK_BYTES > log.files * layout.file_bytes:
        log, taken = _take_file(log, layout=layout, now_ms=store_timestamp, conditions=conditions)
        if not taken:
            return log, Appended(PutStatus.CREATE_MAPEDFILE_FAILED)
    if conditions.append_fails:
        return log, Appended(PutStatus.UNKNOWN_ERROR)
    records = _records(log, messages, sizes_bytes, layout, store_timestamp)
    appended = log.changed(
        records=(*log.records, *records),
        end_offset=records[-1].end_offset,
        appended_in_this_life=log.appended_in_this_life + len(records),
    )
    return appended, Appended(PutStatus.PUT_OK, records, waits_for_disk(given))


def _messages(log: CommitLog, given: Message | Batch, layout: Layout) -> tuple[Message, ...] | PutStatus:
    """Return what is stored of a message or a batch, or why it is refused."""
    if isinstance(given, Batch):
        return batch.messages_of(given, layout=layout)
    refused = admission.as_given(given) or delay.refusal(given, layout=layout)
    if refused is not None:
        return refused
    placed = delay.rewritten(given, layout=layout)
    stored = dispatch.rewritten(log, placed, layout=layout)
    refused = admission.as_stored(given, stored, layout=layout)
    refused = refused or delay.copy_refusal(given, placed, layout=layout)
    refused = refused or dispatch.refusal(log, placed, layout=layout)
    return (replace(stored, body=stored.body or b""),) if refused is None else refused


def _take_file(log: CommitLog, *, layout: Layout, now_ms: int, conditions: Conditions) -> tuple[CommitLog, bool]:
    """Close the last file and continue in a new one.

    The result is False if no file can be had. Then nothing is closed.
    """
    if layout.fast_fail and pool.lacks_buffer(log, layout=layout):
        return log, False
    if layout.files_ahead:
        log = log.changed(asked=max(log.asked, 1 + layout.files_ahead))
    if not log.prepared:
        log, made = _made_file(log, layout=layout, now_ms=now_ms, conditions=conditions)
        if not made:
            return log, False
    end_offset = log.files * layout.file_bytes
    log = log.changed(end_offset=end_offset, files=log.files + 1, prepared=log.prepared - 1)
    log = log.changed(asked=max(log.asked - 1, 0))
    return pool.with_buffer(log, layout=layout), True


def _made_file(log: CommitLog, *, layout: Layout, now_ms: int, conditions: Conditions) -> tuple[CommitLog, bool]:
    files = log.files - log.oldest_offset // layout.file_bytes + log.prepared
    no_room = conditions.no_room or files >= layout.files_max
    if no_room or conditions.sync_fails:
        return log.changed(retry_ms=now_ms + layout.allocation_retry_ms if log.asked else 0), False
    return log.changed(prepared=log.prepared + 1, retry_ms=0), True


def _records(
    log: CommitLog, messages: Sequence[Message], sizes_bytes: Sequence[int], layout: Layout, store_timestamp: int
) -> tuple[Record, ...]:
    """Return the records of messages for one queue, the first one at the end of the log."""
    first = messages[0]
    number = dispatch.next_queue_offset(log, (first.topic, first.queue_id), layout=layout)
    records = []
    offset = log.end_offset
    for index, (message, size_bytes) in enumerate(zip(messages, sizes_bytes, strict=True)):
        queue_offset = number + index if message.counts_in_its_queue else 0
        records.append(Record(offset, size_bytes, queue_offset, store_timestamp, message))
        offset += size_bytes
    return tuple(records)


def allocate_round(
    log: CommitLog, *, layout: Layout, now_ms: int, conditions: Conditions = NO_TROUBLE
) -> tuple[CommitLog, bool]:
    """Take one step of the allocation service while no put waits for a file.

    It makes one file if one is wanted and a try is due.
    """
    if log.prepared >= log.asked or now_ms < log.retry_ms:
        return log, False
    return _made_file(log, layout=layout, now_ms=now_ms, conditions=conditions)


def settle(
    log: CommitLog, appended: Appended, *, layout: Layout, conditions: Conditions = NO_TROUBLE
) -> tuple[CommitLog, PutOutcome]:
    """Answer an append at once, after a flush if the put waits for the disk.

    A replica that does not answer counts as timed out. Other producers may have appended and flushed meanwhile; records
    that are already durable need no sync.
    """
    if not appended.records:
        return log, PutOutcome(appended.status)
    open_waits = wait_for(appended, layout=layout, now_ms=0, conditions=conditions)
    if open_waits.disk is None:
        if open_waits.end_offset > log.flushed_offset:
            log, _ = flush(log, sync_fails=conditions.sync_fails)
        open_waits = waiting.flushed(open_waits, log)
    status = waiting.given_up(open_waits).answer
    assert status is not None
    return log, PutOutcome(status, appended.records)


def wait_for(appended: Appended, *, layout: Layout, now_ms: int, conditions: Conditions = NO_TROUBLE) -> Waiting:
    """Return what an append that was not refused waits for."""
    return waiting.begin(
        appended.records[-1].end_offset,
        waits=appended.waits,
        layout=layout,
        now_ms=now_ms,
        conditions=conditions,
    )


def get(log: CommitLog, offset: int) -> tuple[GetStatus, Record | None]:
    """Look up a record by the physical offset at which it begins."""
    if offset < log.min_offset:
        return GetStatus.OFFSET_TOO_SMALL, None
    if offset == log.readable_end:
        return GetStatus.OFFSET_OVERFLOW_ONE, None
    if offset > log.readable_end:
        return GetStatus.OFFSET_OVERFLOW_BADLY, None
    found = [record for record in log.records if record.offset == offset]
    return (GetStatus.FOUND, found[0]) if found else (GetStatus.OFFSET_FOUND_NULL, None)
