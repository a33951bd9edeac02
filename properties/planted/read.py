"""Bugs of reads: by offset, by message id, by time, and through a queue."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tornpage.impl.dispatch.reput import ReputMessages
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
    Get,
    GetMessage,
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
    """Take a record for valid although body CRC or trailer do not match."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason in ("bad_body_crc", "bad_checksum"):
        return int.from_bytes(view[position : position + 4], "big"), None
    return size, reason


def _without_position(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Take a record for valid wherever it was written for (hole H3 of 4.9.3)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason != "bad_position":
        return size, reason
    written_for = int.from_bytes(view[position + 28 : position + 36], "big", signed=True)
    return codec.check_record(view, position, limit=limit, offset=written_for)


def _length_trusted(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Reach for the last byte of a record before its length is checked (RMQ-B11)."""
    total, magic = _HEAD.unpack_from(view, position)
    if magic == codec.MESSAGE_MAGIC:
        view[position + total - 1]
    return codec.check_record(view, position, limit=limit, offset=offset)


def _zero_is_no_checksum(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """A checksum of 0 counts as none, and its record as one that lost it (RMQ-B14)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    trailer = bytes(view[position + size - codec.TRAILER_BYTES : position + size])
    return (0, "bad_checksum") if size and trailer == _ZERO_TRAILER else (size, reason)


# ---- through a queue -------------------------------------------------------------------------------------------------


class _ToTheWrittenEnd(ReputMessages):
    """Dispatch goes to the end of what is written, whether or not that may be read (RMQ-B05)."""

    def drain(self) -> None:
        with self._guard:
            while self.error is None and self._derived.dispatch(self._log, self._log.max_offset):
                pass
            self._tell_of_error()


class _Everything(LogReader):
    """Reads to the end of what is written."""

    @property
    def readable_end(self) -> int:
        return self.log.max_offset


class _BehindTheReadableEnd(QueueReads):
    """Pulls bring what is written, whether or not it may be read (4.9.3 in the mode SYNC_FLUSH)."""

    def __init__(self, queues: Any, reader: LogReader, **options: Any) -> None:
        super().__init__(queues, _Everything(reader.log, check=reader.check, buffers=reader.buffers), **options)


class _QueuesMade(QueueReads):
    """Who asks for a queue makes it (RMQ-B38)."""

    def get_message(self, topic: str, queue_id: int, *args: Any, **kwargs: Any) -> GetMessageResult:
        assert isinstance(self._queues, ConsumeQueues)
        self._queues.of((topic.encode(), queue_id))
        return super().get_message(topic, queue_id, *args, **kwargs)


class _BackToZero(QueueReads):
    """Who is ahead of a queue that begins at 0 begins again (RMQ-B44)."""

    def get_message(self, *args: Any, **kwargs: Any) -> GetMessageResult:
        found = super().get_message(*args, **kwargs)
        if found.status is GetStatus.OFFSET_OVERFLOW_BADLY and found.min_offset == 0:
            return replace(found, next_begin_offset=0)
        return found


class _OneAtLeast(QueueReads):
    """Who asks for no message gets one (4.9.3)."""

    def get_message(self, *args: Any, max_msg_nums: int, **kwargs: Any) -> GetMessageResult:
        return super().get_message(*args, max_msg_nums=max(1, max_msg_nums), **kwargs)


# ---- the walk along the units ----------------------------------------------------------------------------------------


def _units_of_a_file(pull: Pull) -> int:
    queue = pull._queue
    assert isinstance(queue, ConsumeQueue)
    return queue._files.file_bytes // UNIT_BYTES


class _NextQueueFile(Pull):
    """Where nothing can be read, the way on is the next queue file, beyond the end if need be (RMQ-B35)."""

    def result(self, min_offset: int, max_offset: int) -> GetMessageResult:
        found = super().result(min_offset, max_offset)
        if found.status is GetStatus.OFFSET_FOUND_NULL:
            units = _units_of_a_file(self)
            return replace(found, next_begin_offset=found.next_begin_offset // units * units + units)
        return found


class _OneQueueFile(Pull):
    """A pull ends with the queue file in which it begins (4.9.3)."""

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        units = _units_of_a_file(self)
        return super()._units(min(limit, units - self._next % units), at_once)


class _FixedBound(Pull):
    """A pull looks at 800 units, however many messages are asked for (RMQ-B43)."""

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        return super()._units(min(limit, _UNITS_LEAST), at_once)


class _BytesForUnits(Pull):
    """The bound of a pull is in bytes, and units are counted against it (RMQ-B45)."""

    _asked = 0

    def run(self, max_msg_nums: int) -> None:
        self._asked = max_msg_nums
        super().run(max_msg_nums)

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        units_max = max(_BYTES_LEAST, self._asked * UNIT_BYTES)
        return super()._units(min(units_max, self._end_number - self._next), at_once)


class _NotCounted(Pull):
    """Only bytes fill an answer, since nobody counts its messages (RMQ-B46)."""

    _asked = 0

    def run(self, max_msg_nums: int) -> None:
        self._asked = max_msg_nums
        self._limits = replace(self._limits, count_in_memory=_NO_LIMIT, count_in_disk=_NO_LIMIT)
        super().run(_NO_LIMIT)

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        return super()._units(min(limit, max(_UNITS_LEAST, self._asked)), at_once)


# ---- times -----------------------------------------------------------------------------------------------------------


class _NearestOfAll(QueueReads):
    """The first message met that has a time, else the nearest one, older or not (RMQ-B37)."""

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
    """Of several messages of one time any may be the answer (RMQ-B37)."""

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        number = super().offset_by_time(topic, queue_id, timestamp_ms)
        return number + (timestamp_ms >= 0 and self.store_timestamp(topic, queue_id, number + 1) == timestamp_ms)


class _LastForEver(QueueReads):
    """A time behind the last message is the last message (RMQ-B37)."""

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        least, end = self.range_of(topic, queue_id)
        number = super().offset_by_time(topic, queue_id, timestamp_ms)
        return number - 1 if least < number == end else number


class _StopsAtDamage(Pull):
    """A pull ends in front of the first message that fails a check, and so do all that follow."""

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


class _UnitsBelieved(QueuedRecords):
    """A unit is believed: whatever record it leads to is served (4.9.3)."""

    def _belongs(self, session: LogSession, key: QueueKey, number: int) -> bool:
        return True


class _NeverTakenBack(ReadBuffers):
    """Who holds a buffer holds its file, closed store or not."""

    def shut(self) -> int:
        self.is_shut = True
        return 0


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

TORN_INSIDE = Crash(survived={page_of(FIRST_LOG_FILE): (0, 1, 0b1001)}, others="kept")
"""The first sector survives, and the fourth, in which a record of 1,712 bytes ends."""
POISONED = (Put(), Flush(), Put(), REPUT, FailSync(), Flush())
MANY = PutBatch(members=(Member(),) * 401)
MANY_FIT = Settings(file_bytes=65536, queue_units=60, index=False)

_B37 = Origin("RMQ-B37", "Offset-by-time is approximate in several ways", "5.1.1", "yes")

BUGS = (
    PlantedBug("no-crc", "recovery and reads check neither body CRC nor trailer", 1,
        Parts({check_record: _without_checksums}), kind="skip the checksum", holes=("H10",), machine="commit-log",
        program=(Settings(file_bytes=2048), (Put(body_bytes=1_600), TORN_INSIDE))),
    PlantedBug("position-not-checked", "a record counts wherever it was written for", 1,
        Parts({check_record: _without_position}), kind="skip the position check", holes=("H3",), machine="commit-log",
        program=(SMALL, (Put(body_kind="record"), Damage())), breaks_first=7),
    PlantedBug("RMQ-B11", "the length of a record is used before it is checked", 7,
        Parts({check_record: _length_trusted}),
        origin=Origin("RMQ-B11", "Record length trusted before it is checked", "5.3.2", "yes"), holes=("G10",),
        machine="commit-log", program=(Settings(), (Put(), Damage(kind="flip", amount=1)))),
    PlantedBug("RMQ-B14", "a record whose checksum is 0 counts as one without", 8,
        Parts({check_record: _zero_is_no_checksum}),
        origin=Origin("RMQ-B14", "Whole-record checksum of zero treated as missing", "5.3.2", "no"),
        machine="commit-log", program=(Settings(), (Put(body_bytes=8, body_kind="sums to zero"), Get()))),
    PlantedBug("RMQ-B05", "dispatch goes to the end of what is written", 17, Parts({ReputMessages: _ToTheWrittenEnd}),
        origin=Origin("RMQ-B05", "Consume queues are built over bytes that are not yet flushed", "5.3.0", "yes"),
        machine="queue", program=(Settings(), (Put(), FailSync(), Flush(), REPUT))),
    PlantedBug("RMQ-B35", "where nothing can be read a reader is sent to the next queue file", 17,
        Parts({QueueReads: partial(QueueReads, pull=_NextQueueFile)}),
        origin=Origin("RMQ-B35", "Jump to the next segment boundary overshoots the queue end", "not fixed", "yes"),
        machine="queue", program=(Settings(), (*POISONED, GetMessage(shift=1)))),
    PlantedBug("RMQ-B37", "the offset of a time is that of the nearest message", 8,
        Parts({QueueReads: _NearestOfAll}), origin=_B37, machine="queue",
        program=(Settings(), (Put(), Put(advance_ms=500), REPUT, OffsetByTime(shift_ms=1)))),
    PlantedBug("any-of-equal-times", "of messages of one time any is the answer to that time (RMQ-B37)", 8,
        Parts({QueueReads: _AnyOfEqualTimes}), origin=_B37, machine="queue",
        program=(Settings(), (Put(), Put(advance_ms=0), REPUT, OffsetByTime()))),
    PlantedBug("last-for-ever", "the offset of a time behind the last message is that of the last message (RMQ-B37)",
        8, Parts({QueueReads: _LastForEver}), origin=_B37, machine="queue",
        program=(Settings(), (Put(), REPUT, OffsetByTime(shift_ms=1)))),
    PlantedBug("RMQ-B38", "whoever asks for a queue makes it", 17, Parts({QueueReads: _QueuesMade}),
        origin=Origin("RMQ-B38", "Reading creates the queue it asks for", "5.3.1", "yes"), machine="queue",
        program=(Settings(), (GetMessage(queue=-1),))),
    PlantedBug("RMQ-B43", "a pull looks at 800 units, however many messages are asked for", 17,
        Parts({QueueReads: partial(QueueReads, pull=_FixedBound)}),
        origin=Origin("RMQ-B43", "Large pulls cut at 800 entries", "4.1.0", "no"), machine="queue",
        program=(MANY_FIT, (MANY, MANY, REPUT, GetMessage(max_msg_nums=1000, tags="TagA")))),
    PlantedBug("RMQ-B44", "a reader ahead of its queue is sent back to 0", 17, Parts({QueueReads: _BackToZero}),
        origin=Origin("RMQ-B44", "Overflowing offset sent back to zero", "4.9.4", "yes"), machine="queue",
        program=(Settings(), (Put(), REPUT, GetMessage(shift=2)))),
    PlantedBug("RMQ-B45", "a pull looks at twenty times as many units as it may", 17,
        Parts({QueueReads: partial(QueueReads, pull=_BytesForUnits)}),
        origin=Origin("RMQ-B45", "Scan bound compared in different units", "5.1.0", "no"), machine="queue",
        program=(MANY_FIT, (MANY, MANY, REPUT, GetMessage(tags="TagA")))),
    PlantedBug("RMQ-B46", "the messages of an answer are not counted", 17,
        Parts({QueueReads: partial(QueueReads, pull=_NotCounted)}),
        origin=Origin("RMQ-B46", "Message counter of a pull result never incremented", "5.1.0", "no"),
        machine="queue", program=(Settings(), (Put(), Put(), REPUT, GetMessage(max_msg_nums=1)))),
    PlantedBug("one-queue-file", "a pull ends with the queue file in which it begins", 17,
        Parts({QueueReads: partial(QueueReads, pull=_OneQueueFile)}), machine="queue",
        program=(Settings(queue_units=1), (Put(), Put(), REPUT, GetMessage()))),
    PlantedBug("one-message-at-least", "who asks for no message gets one", 17, Parts({QueueReads: _OneAtLeast}),
        machine="queue", program=(Settings(), (Put(), REPUT, GetMessage(max_msg_nums=0)))),
    PlantedBug("pulls-behind-the-end", "pulls bring what may not be read", 17,
        Parts({QueueReads: _BehindTheReadableEnd}), machine="queue", program=(Settings(), (*POISONED, GetMessage()))),
    PlantedBug("stops-at-damage", "a pull ends in front of what fails a check, and so does the next one", 7,
        Parts({QueueReads: partial(QueueReads, pull=_StopsAtDamage)}), machine="commit-log",
        program=(Settings(), (Put(), Put(), Damage()))),
    PlantedBug("units-believed", "a pull brings whatever record a unit leads to", 4,
        Parts({QueuedRecords: _UnitsBelieved}), machine="commit-log",
        program=(Settings(), (Put(), Put(topic="U"), Damage(record=1, beside="queue")))),
    PlantedBug("never-taken-back", "a buffer that a reader keeps outlives its store", 11,
        Parts({ReadBuffers: _NeverTakenBack}), machine="retention", program=(SMALL, (PUT, HoldBuffer(), Open()))),
)  # fmt: skip
