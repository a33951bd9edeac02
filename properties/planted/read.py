"""Define bugs of reads: by offset, by message id, by time, and through a queue."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tornpage.impl.config.policy import VerifyReads
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.io.read_marks import ReadMarks
from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.impl.message import codec
from tornpage.impl.message.codec import RecordCheck, check_record
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.message.message import GetStatus
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.units import Unit
from tornpage.impl.read.log_reader import LogReader, LogSession
from tornpage.impl.read.queue_pull import GetMessageResult, Pull
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.impl.read.queued_records import QueuedRecords
from tornpage.impl.read.read_buffer import ReadBuffers
from tornpage.model.operations import (
    Crash,
    Damage,
    FailSync,
    Flush,
    GetMessage,
    HarmOpen,
    HoldBuffer,
    Member,
    OffsetByTime,
    Open,
    Put,
    PutBatch,
)
from tornpage.properties.planted.programs import FIRST_LOG_FILE, PUT, REPUT, SMALL, page_of
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]

_HEAD = struct.Struct(">ii")

_ZERO_TRAILER = b"__CRC32#\x010000000000\x02"
_UNITS_LEAST, _BYTES_LEAST = 800, 16_000
_NO_LIMIT = 1 << 31


# ---- by offset and by message id -------------------------------------------------------------------------------------


def _without_checksums(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Accept a record whose body CRC or trailer does not match."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason in ("bad_body_crc", "bad_checksum"):
        return int.from_bytes(view[position : position + 4], "big"), None
    return size, reason


def _without_position(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Accept a record that was written for another position (hole H3 of 4.9.3)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason != "bad_position":
        return size, reason
    written_for = int.from_bytes(view[position + 28 : position + 36], "big", signed=True)
    return codec.check_record(view, position, limit=limit, offset=written_for)


def _length_trusted(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Access the last byte of a record before checking its length (RMQ-B11)."""
    total, magic = _HEAD.unpack_from(view, position)
    if magic == codec.MESSAGE_MAGIC:
        view[position + total - 1]
    return codec.check_record(view, position, limit=limit, offset=offset)


def _zero_is_no_checksum(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Treat a checksum of 0 as missing, and its record as damaged (RMQ-B14)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    trailer = bytes(view[position + size - codec.TRAILER_BYTES : position + size])
    return (0, "bad_checksum") if size and trailer == _ZERO_TRAILER else (size, reason)


# ---- through a queue -------------------------------------------------------------------------------------------------


class _ToTheWrittenEnd(ReputMessages):
    """Dispatch to the written end of the log, readable or not (RMQ-B05)."""

    def drain(self) -> None:
        with self._guard:
            while self.error is None and self._derived.dispatch(self._log, self._log.max_offset):
                pass
            self._tell_of_error()


class _Everything(LogReader):
    """Read to the written end of the log."""

    @property
    def readable_end(self) -> int:
        return self.log.max_offset


class _PastReadableEnd(QueueReads):
    """Return written messages, readable or not (4.9.3 in the mode SYNC_FLUSH)."""

    def __init__(self, queues: Any, reader: LogReader, **options: Any) -> None:
        super().__init__(queues, _Everything(reader.log, check=reader.check, buffers=reader.buffers), **options)


class _QueuesCreated(QueueReads):
    """Create the queue that a read asks for (RMQ-B38)."""

    def get_message(self, topic: str, queue_id: int, *args: Any, **kwargs: Any) -> GetMessageResult:
        assert isinstance(self._queues, ConsumeQueues)
        self._queues.of((topic.encode(), queue_id))
        return super().get_message(topic, queue_id, *args, **kwargs)


class _BackToZero(QueueReads):
    """Send a reader past the end of a queue that begins at 0 back to 0 (RMQ-B44)."""

    def get_message(self, *args: Any, **kwargs: Any) -> GetMessageResult:
        found = super().get_message(*args, **kwargs)
        if found.status is GetStatus.OFFSET_OVERFLOW_BADLY and found.min_offset == 0:
            return replace(found, next_begin_offset=0)
        return found


class _OneAtLeast(QueueReads):
    """Return a message when none is asked for (4.9.3)."""

    def get_message(self, *args: Any, max_msg_nums: int, **kwargs: Any) -> GetMessageResult:
        return super().get_message(*args, max_msg_nums=max(1, max_msg_nums), **kwargs)


# ---- the walk along the units ----------------------------------------------------------------------------------------


def _units_of_a_file(pull: Pull) -> int:
    queue = pull._queue
    assert isinstance(queue, ConsumeQueue)
    return queue._files.file_bytes // UNIT_BYTES


class _NextQueueFile(Pull):
    """Send a reader past an unreadable unit to the next queue file (RMQ-B35).

    That file may not exist.
    """

    def result(self, min_offset: int, max_offset: int) -> GetMessageResult:
        found = super().result(min_offset, max_offset)
        if found.status is GetStatus.OFFSET_FOUND_NULL:
            units = _units_of_a_file(self)
            return replace(found, next_begin_offset=found.next_begin_offset // units * units + units)
        return found


class _OneQueueFile(Pull):
    """End a pull at the end of the queue file in which it begins (4.9.3)."""

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        units = _units_of_a_file(self)
        return super()._units(min(limit, units - self._next % units), at_once)


class _FixedBound(Pull):
    """Scan at most 800 units, however many messages are requested (RMQ-B43)."""

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        return super()._units(min(limit, _UNITS_LEAST), at_once)


class _BytesForUnits(Pull):
    """Compare a limit in bytes with a count of units (RMQ-B45)."""

    _asked = 0

    def run(self, max_msg_nums: int) -> None:
        self._asked = max_msg_nums
        super().run(max_msg_nums)

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        units_max = max(_BYTES_LEAST, self._asked * UNIT_BYTES)
        return super()._units(min(units_max, self._end_number - self._next), at_once)


class _NotCounted(Pull):
    """Limit an answer in bytes only, without counting its messages (RMQ-B46)."""

    _asked = 0

    def run(self, max_msg_nums: int) -> None:
        self._asked = max_msg_nums
        self._limits = replace(self._limits, count_in_memory=_NO_LIMIT, count_in_disk=_NO_LIMIT)
        super().run(_NO_LIMIT)

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        return super()._units(min(limit, max(_UNITS_LEAST, self._asked)), at_once)


# ---- times -----------------------------------------------------------------------------------------------------------


class _NearestOfAll(QueueReads):
    """Return the first probed message with that time, else the nearest one (RMQ-B37)."""

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        low, end = self.range_of(topic, queue_id)
        high, older, younger = end - 1, None, None
        while low <= high:
            middle = (low + high) // 2
            found_ms = self.store_timestamp(topic, queue_id, middle)
            if found_ms is None or found_ms < 0:
                return 0
            if found_ms == timestamp_ms:
                return middle
            if found_ms > timestamp_ms:
                high, younger = middle - 1, (found_ms - timestamp_ms, middle)
            else:
                low, older = middle + 1, (timestamp_ms - found_ms, middle)
        return min((side for side in (older, younger) if side is not None), default=(0, 0))[1]


class _AnyOfEqualTimes(QueueReads):
    """Return any of several messages with the same time (RMQ-B37)."""

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        number = super().offset_by_time(topic, queue_id, timestamp_ms)
        return number + (timestamp_ms >= 0 and self.store_timestamp(topic, queue_id, number + 1) == timestamp_ms)


class _LastForEver(QueueReads):
    """Return the last message for a time after the last message (RMQ-B37)."""

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        least, end = self.range_of(topic, queue_id)
        number = super().offset_by_time(topic, queue_id, timestamp_ms)
        return number - 1 if least < number == end else number


class _StopsAtDamage(Pull):
    """End a pull before the first message that fails a check, and every later pull as well."""

    def run(self, max_msg_nums: int) -> None:
        begin = self._next
        super().run(max_msg_nums)
        whole = [number for number, message in enumerate(self.messages, begin) if message.queue_offset == number]
        if self._filter is None and len(whole) < len(self.messages):
            for message in self.messages[len(whole) :]:
                message.release()
            del self.messages[len(whole) :]
            self._next, self._status = begin + len(whole), GetStatus.OFFSET_FOUND_NULL


# ---- records and buffers ---------------------------------------------------------------------------------------------


class _UnitsTrusted(QueuedRecords):
    """Trust a unit and return whichever record it points to (4.9.3)."""

    def _belongs(self, session: LogSession, key: QueueKey, number: int) -> bool:
        return True


class _BuffersKept(ReadBuffers):
    """Keep a file mapped for as long as a reader holds a buffer, even in a closed store."""

    def shut(self) -> int:
        self.is_shut = True
        return 0


# ---- marks of verified records ---------------------------------------------------------------------------------------


class _KeptAfterBadRecord(VerifiedRecords):
    """Keep the marks after the check of a record has failed."""

    def note_bad_record(self) -> None:
        pass


class _KeptAfterFailure(VerifiedRecords):
    """Keep the marks after an operation on a log file has failed."""

    def note_failure(self) -> None:
        pass


class _MarkedToPosition(VerifiedRecords):
    """Mark everything in the file up to a verified record."""

    def note_verified(self, marks: ReadMarks, position: int) -> None:
        for before in range(0, position + 1, 64):
            marks.add(before)


class _NeverVerified(VerifiedRecords):
    """Treat the setting `always` as `never`."""

    def __init__(self, setting: VerifyReads) -> None:
        super().__init__("never" if setting == "always" else setting)


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

TORN_INSIDE = Crash(survived={page_of(FIRST_LOG_FILE): (0, 1, 0b1001)}, others="kept")
"""The first sector survives, and the fourth, in which a record of 1,712 bytes ends."""
POISONED = (Put(), Flush(), Put(), REPUT, FailSync(), Flush())
ONCE = Settings(verify_reads="once")
BODY = Put(body_bytes=8)
MANY = PutBatch(members=(Member(),) * 401)
MANY_FIT = Settings(file_bytes=65536, queue_units=60, index=False)

_B37 = Origin("RMQ-B37", "Offset-by-time is approximate in several ways", "5.1.1", "yes")

BUGS = (
    PlantedBug("no-crc", "recovery and reads check neither the body CRC nor the trailer checksum", 1,
        Parts({check_record: _without_checksums}), kind="skip the checksum", holes=("H10",), machine="commit-log",
        program=(Settings(file_bytes=2048), (Put(body_bytes=1_600), TORN_INSIDE))),
    PlantedBug("position-not-checked", "a record written for another position counts as valid", 1,
        Parts({check_record: _without_position}), kind="skip the position check", holes=("H3",), machine="commit-log",
        program=(SMALL, (Put(body_kind="record"), Damage())), breaks_first=7),
    PlantedBug("RMQ-B11", "the length of a record is used before it is checked", 7,
        Parts({check_record: _length_trusted}),
        origin=Origin("RMQ-B11", "Record length trusted before it is checked", "5.3.2", "yes"), holes=("G10",),
        machine="commit-log", program=(Settings(), (Put(), Damage(kind="flip", amount=1)))),
    PlantedBug("RMQ-B14", "a record whose checksum is 0 counts as one without a checksum", 8,
        Parts({check_record: _zero_is_no_checksum}),
        origin=Origin("RMQ-B14", "Whole-record checksum of zero treated as missing", "5.3.2", "no"),
        machine="commit-log", program=(Settings(), (Put(body_bytes=8, body_kind="sums to zero"),))),
    PlantedBug("RMQ-B05",
        "dispatch goes to the written end of the log instead of the readable end", 17,
        Parts({ReputMessages: _ToTheWrittenEnd}),
        origin=Origin("RMQ-B05", "Consume queues are built over bytes that are not yet flushed", "5.3.0", "yes"),
        machine="queue", program=(Settings(), (Put(), FailSync(), Flush(), REPUT))),
    PlantedBug("RMQ-B35", "where nothing is readable, a reader is sent to the next queue file even past the end", 17,
        Parts({QueueReads: partial(QueueReads, pull=_NextQueueFile)}),
        origin=Origin("RMQ-B35", "Jump to the next segment boundary overshoots the queue end", "not fixed", "yes"),
        machine="queue", program=(Settings(), (*POISONED, GetMessage(shift=1)))),
    PlantedBug("RMQ-B37", "the offset for a time is that of the nearest message, even an earlier one", 8,
        Parts({QueueReads: _NearestOfAll}), origin=_B37, machine="queue",
        program=(Settings(), (Put(), Put(advance_ms=500), REPUT, OffsetByTime(shift_ms=1)))),
    PlantedBug("any-of-equal-times",
        "the offset for a time is that of any message with that time, not the first (RMQ-B37)", 8,
        Parts({QueueReads: _AnyOfEqualTimes}), origin=_B37, machine="queue",
        program=(Settings(), (Put(), Put(advance_ms=0), REPUT, OffsetByTime()))),
    PlantedBug("last-for-ever", "the offset for a time after the last message is that of the last message (RMQ-B37)",
        8, Parts({QueueReads: _LastForEver}), origin=_B37, machine="queue", program=(Settings(), (Put(), REPUT))),
    PlantedBug("RMQ-B38", "reading from a queue that does not exist creates it", 17,
        Parts({QueueReads: _QueuesCreated}),
        origin=Origin("RMQ-B38", "Reading creates the queue it asks for", "5.3.1", "yes"), machine="queue",
        program=(Settings(), (GetMessage(queue=-1),))),
    PlantedBug("RMQ-B43", "a pull scans at most 800 units, however many messages are requested", 17,
        Parts({QueueReads: partial(QueueReads, pull=_FixedBound)}),
        origin=Origin("RMQ-B43", "Large pulls cut at 800 entries", "4.1.0", "no"), machine="queue",
        program=(MANY_FIT, (MANY, MANY, REPUT, GetMessage(max_msg_nums=1000, tags="TagA")))),
    PlantedBug("RMQ-B44", "a reader past the end of its queue is sent back to 0", 17, Parts({QueueReads: _BackToZero}),
        origin=Origin("RMQ-B44", "Overflowing offset sent back to zero", "4.9.4", "yes"), machine="queue",
        program=(Settings(), (Put(), REPUT, GetMessage(shift=2)))),
    PlantedBug("RMQ-B45", "a pull scans twenty times as many units as allowed", 17,
        Parts({QueueReads: partial(QueueReads, pull=_BytesForUnits)}),
        origin=Origin("RMQ-B45", "Scan bound compared in different units", "5.1.0", "no"), machine="queue",
        program=(MANY_FIT, (MANY, MANY, REPUT, GetMessage(tags="TagA")))),
    PlantedBug("RMQ-B46", "the messages of a pull are not counted against its limit", 17,
        Parts({QueueReads: partial(QueueReads, pull=_NotCounted)}),
        origin=Origin("RMQ-B46", "Message counter of a pull result never incremented", "5.1.0", "no"),
        machine="queue", program=(Settings(), (Put(), Put(), REPUT, GetMessage(max_msg_nums=1)))),
    PlantedBug("one-queue-file", "a pull ends at the end of the queue file in which it begins", 17,
        Parts({QueueReads: partial(QueueReads, pull=_OneQueueFile)}), machine="queue",
        program=(Settings(queue_units=1), (Put(), Put(), REPUT, GetMessage()))),
    PlantedBug("one-message-at-least", "a pull that asks for no message gets one", 17, Parts({QueueReads: _OneAtLeast}),
        machine="queue", program=(Settings(), (Put(), REPUT, GetMessage(max_msg_nums=0)))),
    PlantedBug("pulls-behind-the-end", "a pull returns messages past the readable end", 17,
        Parts({QueueReads: _PastReadableEnd}), machine="queue", program=(Settings(), (*POISONED, GetMessage()))),
    PlantedBug("stops-at-damage", "a pull stops before a damaged message, and so does every later pull", 7,
        Parts({QueueReads: partial(QueueReads, pull=_StopsAtDamage)}), machine="commit-log",
        program=(Settings(), (Put(), Put(), Damage()))),
    PlantedBug("units-believed", "a pull returns any record that a unit points to, without checking topic and queue", 4,
        Parts({QueuedRecords: _UnitsTrusted}), machine="commit-log",
        program=(Settings(), (Put(), Put(topic="U"), Damage(record=1, beside="queue")))),
    PlantedBug("verified-after-failed-check", "records count as verified after the check of a record has failed", 7,
        Parts({VerifiedRecords: _KeptAfterBadRecord}), machine="queue",
        program=(ONCE, (BODY, REPUT, HarmOpen("failed_check")))),
    PlantedBug("verified-after-failure",
        "records count as verified after an operation on a log file has failed", 7,
        Parts({VerifiedRecords: _KeptAfterFailure}), machine="queue",
        program=(ONCE, (BODY, REPUT, HarmOpen("failed_append")))),
    PlantedBug("verified-past-the-check", "all records up to a verified one count as verified", 7,
        Parts({VerifiedRecords: _MarkedToPosition}), machine="queue",
        program=(ONCE, (BODY, PUT, REPUT, HarmOpen("other")))),
    PlantedBug("reads-unverified", "reads verify nothing although they are configured to verify everything", 7,
        Parts({VerifiedRecords: _NeverVerified}), machine="queue", program=(Settings(), (BODY, REPUT, HarmOpen()))),
    PlantedBug("never-taken-back", "a buffer that a reader holds stays mapped after the store is closed", 11,
        Parts({ReadBuffers: _BuffersKept}), machine="retention", program=(SMALL, (PUT, HoldBuffer(), Open()))),
)  # fmt: skip
