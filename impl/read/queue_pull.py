"""One pull: the matching messages of a queue from a number on, within the limits.

The next offset never skips a message that may become readable: the pull ends at the readable end, and the next offset
stays before it. A unit whose record has expired or fails a check is skipped. A damaged log does not grow, so a unit
that points past its end is passed too. Source: `DefaultMessageStore.getMessage`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tornpage.impl.message.message import GetStatus
from tornpage.impl.message.properties_text import CHECKSUM_NAME
from tornpage.impl.queue.consume_queue_ext import is_address
from tornpage.impl.queue.units import Unit
from tornpage.impl.read.confirming import ConfirmUnits
from tornpage.impl.read.log_reader import LogSession
from tornpage.impl.read.message_filter import MessageFilter
from tornpage.impl.read.queued_records import QueuedRecords, ReadableQueue
from tornpage.impl.read.read_buffer import RecordBuffer, RecordBuffers, RecordWindow

__all__ = ["GetMessageResult", "Pull", "TransferLimits"]

_UNITS_LEAST = 800
"""The least number of units that a pull examines, whatever the filter accepts; RocketMQ says 16,000 bytes."""
_UNITS_AT_ONCE = 64
_UNITS_CONFIRMED_MAX = 4096
"""The greatest number of units that one call confirms."""


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """The limits of one answer, under the names of the configuration.

    A message counts as being on disk only if it lies more than `memory_bytes` before the end of the log.
    """

    bytes_in_memory: int
    count_in_memory: int
    bytes_in_disk: int
    count_in_disk: int
    memory_bytes: int

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """The limits in their order."""
        return (
            self.bytes_in_memory,
            self.count_in_memory,
            self.bytes_in_disk,
            self.count_in_disk,
            self.memory_bytes,
        )

    def is_far(self, behind_bytes: int) -> bool:
        """Return whether a record so far before the end of the log counts as on disk only."""
        return behind_bytes > self.memory_bytes

    def is_full(self, collected_bytes: int, count: int, size: int, *, behind_bytes: int) -> bool:
        """Return whether an answer with a message has no room for another one of `size` bytes.

        Source: `isTheBatchFull`.
        """
        if self.is_far(behind_bytes):
            return collected_bytes + size > self.bytes_in_disk or count >= self.count_in_disk
        return collected_bytes + size > self.bytes_in_memory or count >= self.count_in_memory


@dataclass(frozen=True, slots=True)
class GetMessageResult(RecordBuffers):
    """The outcome of a read by queue. Release it, or use it in a `with` statement.

    `next_begin_offset` is the queue offset for the next pull; `min_offset` and `max_offset` are those of the queue.
    Source: `GetMessageResult`.
    """

    status: GetStatus
    next_begin_offset: int
    min_offset: int = 0
    max_offset: int = 0
    messages: Sequence[RecordBuffer] = ()
    suggest_pulling_from_slave: bool = False
    behind_bytes: int | None = None
    """Bytes from the last examined unit's record to the end of the log; None if no unit was examined."""

    @property
    def size_bytes(self) -> int:
        """The bytes of all messages."""
        messages = self.messages
        if isinstance(messages, RecordWindow):
            return messages.size_bytes
        return sum(message.size_bytes for message in messages)


class Pull:
    """One walk over the units of a queue before `end_number`.

    Units appended meanwhile are left to the next pull, since the answer names a maximum. With `confirm`, leading units
    are confirmed in one pass, and the walk examines the others. Source: the loop of `DefaultMessageStore.getMessage`.
    """

    __slots__ = (
        "_behind_bytes",
        "_confirm",
        "_end_number",
        "_filter",
        "_limits",
        "_next",
        "_queue",
        "_records",
        "_session",
        "_status",
        "_window",
        "messages",
    )

    def __init__(
        self,
        records: QueuedRecords,
        limits: TransferLimits,
        session: LogSession,
        queue: ReadableQueue,
        offset: int,
        end_number: int,
        message_filter: MessageFilter | None,
        confirm: ConfirmUnits | None = None,
    ) -> None:
        self._confirm = confirm
        self._window: RecordWindow | None = None
        self._end_number = end_number
        self._records = records
        self._limits = limits
        self._session = session
        self._queue = queue
        self._filter = message_filter
        self._next = offset
        self._status = GetStatus.NO_MATCHED_MESSAGE
        self._behind_bytes: int | None = None
        self.messages: list[RecordBuffer] = []

    def run(self, max_msg_nums: int) -> None:
        """Examine units until the answer is full or the readable end is reached.

        A limit on examined units ends the walk too.
        """
        if self._confirm is not None and self._filter is None and self._confirmed(self._confirm, max_msg_nums):
            return
        self._walk(max_msg_nums)

    def _confirmed(self, confirm: ConfirmUnits, max_msg_nums: int) -> bool:
        """Confirm the units from the current number on; return whether the pull is complete.

        If it is not, the walk goes on at the first unit that was not confirmed.
        """
        wanted_units = min(max_msg_nums + 1, self._end_number - self._next, _UNITS_CONFIRMED_MAX)
        units = self._queue.unit_bytes(self._next, wanted_units)
        found = self._session.confirm(confirm, self._queue.key, self._next, units, max_msg_nums, self._limits.numbers)
        if found is None:
            return False
        window, behind_bytes, is_full = found
        if behind_bytes >= 0:
            self._behind_bytes = behind_bytes
        count = len(window)
        self._next += count
        if is_full or (count == wanted_units == self._end_number - self._next + count):
            self._window = window
            return True
        self.messages = list(window)
        return False

    def _walk(self, max_msg_nums: int) -> None:
        """Examine units one after the other."""
        session, messages, limits = self._session, self.messages, self._limits
        find, key = self._records.find, self._queue.key
        readable_end, min_offset = session.readable_end, session.min_offset
        skip_below, collected_bytes = 0, sum(message.size_bytes for message in messages)
        limit = min(max(_UNITS_LEAST, max_msg_nums), self._end_number - self._next)
        for unit in self._units(limit, min(max_msg_nums + 1, _UNITS_AT_ONCE)):
            offset, unit_size, code = unit
            if not offset and unit.is_prefill:
                self._next += 1
                continue
            if offset >= readable_end:
                if session.never_grows:
                    self._status = GetStatus.MESSAGE_WAS_REMOVING
                    self._next += 1
                    continue
                self._status = GetStatus.OFFSET_FOUND_NULL
                return
            self._behind_bytes = behind_bytes = readable_end - offset
            if offset < skip_below:
                self._next += 1
                continue
            if messages and (
                len(messages) >= max_msg_nums
                or limits.is_full(collected_bytes, len(messages), unit_size, behind_bytes=behind_bytes)
            ):
                return
            number = self._next
            self._next = number + 1
            if self._filter is not None and not self._wants_unit(code):
                self._status = GetStatus.NO_MATCHED_MESSAGE
                continue
            size = find(session, key, number, offset)
            if not size:
                self._status = GetStatus.MESSAGE_WAS_REMOVING
                if offset < min_offset:
                    skip_below = session.next_file_offset(offset)
                continue
            if self._filter is not None and not self._filter.matches_record(partial(_properties_at, session)):
                self._status = GetStatus.NO_MATCHED_MESSAGE
                continue
            messages.append(session.take(size, number))
            collected_bytes += size
            skip_below = 0

    def _units(self, limit: int, at_once: int) -> Iterator[Unit]:
        """Yield units from the current number on, across file ends.

        They are read in small batches, since most pulls need few.
        """
        left = limit
        while left > 0:
            count = 0
            for unit in self._queue.units(self._next, min(at_once, left)):
                count += 1
                yield unit
            if not count:
                if left == limit:
                    self._status = GetStatus.OFFSET_FOUND_NULL
                return
            left -= count
            at_once = _UNITS_AT_ONCE

    def _wants_unit(self, code: int) -> bool:
        assert self._filter is not None
        if not is_address(code):
            return self._filter.matches_unit(code, None)
        ext = None if self._queue.ext is None else self._queue.ext.get(code)
        return self._filter.matches_unit(None if ext is None else ext.tags_code, ext)

    def result(self, min_offset: int, max_offset: int) -> GetMessageResult:
        """Return the outcome of the walk."""
        behind_bytes = self._behind_bytes
        messages = tuple(self.messages) if self._window is None else self._window
        return GetMessageResult(
            GetStatus.FOUND if messages else self._status,
            self._next,
            min_offset,
            max_offset,
            messages,
            behind_bytes is not None and self._limits.is_far(behind_bytes),
            behind_bytes,
        )


def _properties_at(session: LogSession) -> Mapping[str, str]:
    """Return the properties of the record found last, as in `StoredMessage`."""
    properties = session.properties()
    properties.pop(CHECKSUM_NAME, None)
    return properties
