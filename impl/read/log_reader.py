"""Checked reads of the commit log, one session for each read by physical offset.

A record is returned only if it is valid at its offset, lies below the readable end, and not after the blank of its
file. The setting `verify_reads` says whether its checksums are verified (`impl.log.verified_records`). A session reads
the readable end once, so that all parts of an answer are consistent. Source: `CommitLog.getMessage`,
`CommitLog.getData`, with the checks of docs/format.md, "Valid record".
"""

import struct
from types import TracebackType
from typing import Self

from tornpage.impl.io.read_marks import ReadMarks
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.scan import RecordChecker
from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.impl.message.codec import BORN_HOST_V6, RecordCheck, decode_record, framed_record, properties_of_record
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.read.confirming import ConfirmKey, ConfirmUnits, Wanted
from tornpage.impl.read.read_buffer import BufferLease, ReadBuffer, ReadBuffers, RecordBuffer, RecordWindow

__all__ = ["LogReader", "LogSession"]

_I64 = struct.Struct(">q")
_OFFSET = _I64
_new_tuple = tuple.__new__  # with all fields given, half the time of a call of the class


class LogReader:
    """Open sessions. `never_grows` says that the log is damaged and gets no more records."""

    def __init__(
        self, log: MappedFileQueue, *, check: RecordChecker, buffers: ReadBuffers, never_grows: bool = False
    ) -> None:
        self.log = log
        self.never_grows = never_grows
        self.check = check
        self.buffers = buffers

    @property
    def readable_end(self) -> int:
        """The physical offset up to which readers may read now."""
        return self.log.readable_end

    def session(self, *, verifies: bool = False) -> "LogSession":
        """Begin a session; to be used in a `with` statement.

        With `verifies` every record is verified, whatever the setting `verify_reads` is.
        """
        return LogSession(self, verifies=verifies)


class LogSession:
    """Holds the log file that it reads, and the files of its buffers, until the session ends.

    After `find` has returned a size, `view` and `position` say where the record is, until the next `find`.
    """

    __slots__ = ("_file_bytes", "_lease", "_leases", "_marks", "_reader", "_setting", "_taken", "_verified", "position",
                 "readable_end", "view")  # fmt: skip

    view: memoryview

    def __init__(self, reader: LogReader, *, verifies: bool) -> None:
        log = reader.log
        self._reader = reader
        self._verified: VerifiedRecords = log.verified
        self._setting = "always" if verifies else self._verified.setting
        self._marks: ReadMarks | None = None
        self._file_bytes = log.file_bytes
        self._lease: BufferLease | None = None
        self._leases: list[BufferLease] = []
        self._taken: list[ReadBuffer | RecordWindow] = []
        self.readable_end = reader.readable_end

    @property
    def never_grows(self) -> bool:
        """Whether the log is damaged and gets no more records."""
        return self._reader.never_grows

    @property
    def min_offset(self) -> int:
        """Physical offset of the first retained byte."""
        return self._reader.log.min_offset

    def next_file_offset(self, offset: int) -> int:
        """Return the offset of the file after that of an offset. Source: `CommitLog.rollNextFile`."""
        return offset - offset % self._file_bytes + self._file_bytes

    def find(self, offset: int) -> int:
        """Return the size of the record that begins at an offset.

        Returns 0 if there is none that may be served.
        """
        if offset >= self.readable_end:
            return 0
        lease = self._lease
        if lease is None or not lease.base_offset <= offset < lease.base_offset + self._file_bytes:
            lease = self._turn_to(offset)
            if lease is None:
                return 0
        self.position = position = offset - lease.base_offset
        if self._setting == "always":
            size, defect = self._reader.check(lease.view, position, limit=self._file_bytes, offset=offset)
        else:
            size, defect = self._found(lease, position, offset)
        if defect is not None:
            self._verified.note_bad_record()
            self._marks = None
        if offset + size > self.readable_end or not lease.mapped.may_hold_record(position):
            return 0
        return size

    def _found(self, lease: BufferLease, position: int, offset: int) -> RecordCheck:
        """Check a record, without its checksums if the setting `verify_reads` permits that."""
        if self._setting == "never":
            return framed_record(lease.view, position, limit=self._file_bytes, offset=offset)
        marks = self._marks
        if marks is None:
            self._marks = marks = self._verified.marks_of(lease.mapped)
        if marks.trusts(position):
            return framed_record(lease.view, position, limit=self._file_bytes, offset=offset)
        size, defect = self._reader.check(lease.view, position, limit=self._file_bytes, offset=offset)
        if size:
            self._verified.note_verified(marks, position)
        return size, defect

    def _turn_to(self, offset: int) -> BufferLease | None:
        """Hold the file of an offset.

        Files held earlier in the session stay held; they may be needed again.
        """
        for lease in self._leases:
            if lease.base_offset <= offset < lease.base_offset + self._file_bytes:
                break
        else:
            file = self._reader.log.find(offset)
            found = None if file is None else self._reader.buffers.lease(file)
            if found is None:
                return None
            lease = found
            self._leases.append(lease)
        self._lease, self.view = lease, lease.view
        self._marks = None
        return lease

    def store_timestamp(self) -> int:
        """Return the store time of the record found last, in milliseconds."""
        at = self.position + (68 if self.view[self.position + 39] & BORN_HOST_V6 else 56)
        timestamp: int = _I64.unpack_from(self.view, at)[0]
        return timestamp

    def queue_offset(self) -> int:
        """Return the queue offset in the record found last."""
        queue_offset: int = _I64.unpack_from(self.view, self.position + 20)[0]
        return queue_offset

    def properties(self) -> dict[str, str]:
        """Return the properties of the record found last, trailer included."""
        return self._reader.buffers.parse(properties_of_record(self.view, self.position))

    def message(self) -> StoredMessage:
        """Decode the record found last."""
        return decode_record(self.view, self.position, self._reader.buffers.parse)

    def take(self, size: int, queue_offset: int) -> RecordBuffer:
        """Return a buffer of the record found last, whose size must be `size`."""
        assert self._lease is not None
        buffer = self._lease.record(self.position, size, queue_offset)
        self._taken.append(buffer)
        return buffer

    def take_keyed(
        self, confirm: ConfirmKey, offset: int, topic: bytes, key: bytes, begin_ms: int, end_ms: int
    ) -> RecordBuffer | None:
        """Return a buffer of the record at an offset if it is confirmed to be of a key and a time.

        Return None if the other methods have to decide.
        """
        lease = self._turn_to(offset) if offset < self.readable_end else None
        if lease is None:
            return None
        position, setting = offset - lease.base_offset, self._setting
        trusted, marks = setting == "never", None
        if setting == "once":
            self._marks = marks = self._marks or self._verified.marks_of(lease.mapped)
            trusted = marks.trusts(position)
        size, queue_offset = confirm(
            lease.view, position, offset, self._file_bytes, topic, key, begin_ms, end_ms, trusted
        )
        if not size:
            return None
        if marks is not None and not trusted:
            self._verified.note_verified(marks, position)
        if offset + size > self.readable_end or not lease.mapped.may_hold_record(position):
            return None
        buffer = lease.record(position, size, queue_offset)
        self._taken.append(buffer)
        return buffer

    def confirm(
        self,
        confirm: ConfirmUnits,
        key: QueueKey,
        number: int,
        units: bytes,
        max_msg_nums: int,
        limits: tuple[int, int, int, int, int],
    ) -> tuple[RecordWindow, int, bool] | None:
        """Confirm leading units of a queue, and return a window of their records.

        Return the distance from the last examined record to the readable end too, -1 without one, and whether the
        answer is full. Return None if the file of the first record cannot be read.
        """
        offset = _OFFSET.unpack_from(units)[0] if units else -1
        lease = self._turn_to(offset) if 0 <= offset < self.readable_end else None
        if lease is None:
            return None
        setting, file = self._setting, lease.mapped
        found = confirm(
            _new_tuple(
                Wanted,
                (
                    units,
                    lease.view,
                    self._verified.marks_of(file) if setting == "once" else None,
                    setting == "never",
                    key[0],
                    key[1],
                    number,
                    lease.base_offset,
                    self._file_bytes,
                    self._file_bytes if file.blank_position is None else file.blank_position,
                    self.readable_end,
                    max_msg_nums,
                    limits,
                ),
            )
        )
        window = lease.window(units, found.records, number, found.size_bytes)
        self._taken.append(window)
        return window, found.behind_bytes, found.is_full

    def rest_of_file(self, offset: int) -> ReadBuffer | None:
        """Return everything readable from an offset to the end of its file, unchecked.

        Returns None if there is nothing.
        """
        lease = self._turn_to(offset) if self.min_offset <= offset < self.readable_end else None
        if lease is None:
            return None
        size_bytes = min(lease.mapped.end_offset, self.readable_end) - offset
        buffer = lease.buffer(offset - lease.base_offset, size_bytes)
        self._taken.append(buffer)
        return buffer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:  # the caller never gets them
            for buffer in self._taken:
                buffer.release()
        for lease in self._leases:
            lease.give_back()
