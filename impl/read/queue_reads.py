"""Reads through a queue: pulls, and the offsets and times of a queue.

A lookup creates no queue. docs/statuses.md, "get from a queue", lists the answers. Source: `DefaultMessageStore`.
"""

from collections.abc import Callable, Iterator

from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.message import GetStatus
from tornpage.impl.queue.units import Unit
from tornpage.impl.read.confirming import ConfirmUnits, confirm_units
from tornpage.impl.read.log_reader import LogReader
from tornpage.impl.read.message_filter import MessageFilter
from tornpage.impl.read.queue_pull import GetMessageResult, Pull, TransferLimits
from tornpage.impl.read.queued_records import QueuedRecords, ReadableQueue, ReadableQueues
from tornpage.impl.read.read_buffer import RecordBuffer
from tornpage.impl.read.time_search import offset_by_time

__all__ = ["QueueReads"]


class QueueReads:
    """Reads queues of one store.

    `corrects_offsets` is False on a slave that leaves corrections to its master. `confirm` is used unless another part
    that checks records is replaced.
    """

    def __init__(
        self,
        queues: ReadableQueues,
        reader: LogReader,
        *,
        records: QueuedRecords,
        limits: TransferLimits,
        corrects_offsets: bool = True,
        pull: Callable[..., Pull] = Pull,
        confirm: ConfirmUnits = confirm_units,
    ) -> None:
        checks = (pull, type(records), type(reader), reader.check, type(reader.log.verified))
        is_usual = checks == (Pull, QueuedRecords, LogReader, check_record, VerifiedRecords)
        self._confirm = confirm if is_usual and confirm is not confirm_units else None
        self._queues = queues
        self._reader = reader
        self._limits = limits
        self._records = records
        self._corrects_offsets = corrects_offsets
        self._pull = pull

    # ---- messages ------------------------------------------------------------------------------------------------

    def get_message(
        self, topic: str, queue_id: int, offset: int, *, max_msg_nums: int, message_filter: MessageFilter | None
    ) -> GetMessageResult:
        """Return the messages from a queue offset on that the filter accepts, as buffers."""
        while True:
            queue = self._queues.find(topic, queue_id)
            if queue is None:
                return GetMessageResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, self._corrected(offset, 0))
            begin = self._begin_of(queue)
            found = self._get_from(queue, offset, max_msg_nums=max_msg_nums, message_filter=message_filter)
            if self._begin_of(queue) == begin and self._queues.find(topic, queue_id) is queue:
                return found
            found.release()  # part of it was deleted meanwhile: the answer would be inconsistent

    def _begin_of(self, queue: ReadableQueue) -> tuple[int, int]:
        """Return the offsets that deletions change: the minimum of the queue and that of the log."""
        return queue.min_offset, self._reader.log.min_offset

    def _get_from(
        self, queue: ReadableQueue, offset: int, *, max_msg_nums: int, message_filter: MessageFilter | None
    ) -> GetMessageResult:
        """Read from one queue.

        The maximum is read before the readable end, so that every record below it is readable.
        """
        max_offset, min_offset = queue.max_offset, queue.min_offset
        with self._reader.session() as session:
            if max_offset == 0:
                return GetMessageResult(GetStatus.NO_MESSAGE_IN_QUEUE, self._corrected(offset, 0))
            if offset < min_offset:
                status, next_offset = GetStatus.OFFSET_TOO_SMALL, self._corrected(offset, min_offset)
            elif offset == max_offset:
                status, next_offset = GetStatus.OFFSET_OVERFLOW_ONE, offset
            elif offset > max_offset:
                status, next_offset = GetStatus.OFFSET_OVERFLOW_BADLY, self._corrected(offset, max_offset)
            elif max_msg_nums <= 0:
                status, next_offset = GetStatus.NO_MATCHED_MESSAGE, offset
            else:
                pull = self._pull(
                    self._records, self._limits, session, queue, offset, max_offset, message_filter, self._confirm
                )
                pull.run(max_msg_nums)
                return pull.result(min_offset, max_offset)
            return GetMessageResult(status, next_offset, min_offset, max_offset)

    def _corrected(self, asked: int, better: int) -> int:
        """Return the offset for the next pull. Source: `nextOffsetCorrection`."""
        return better if self._corrects_offsets else asked

    # ---- offsets and times ----------------------------------------------------------------------------------------

    def names(self) -> list[tuple[str, int]]:
        """Return topic and queue id of every queue, sorted."""
        return sorted((queue.topic, queue.queue_id) for queue in self._queues.all())

    def range_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return minimum and maximum of a queue; 0 and 0 for an unknown one."""
        while (queue := self._queues.find(topic, queue_id)) is not None:
            bounds = queue.min_offset, queue.max_offset
            if self._queues.find(topic, queue_id) is queue:
                return bounds
        return 0, 0

    def unit(self, topic: str, queue_id: int, number: int) -> Unit | None:
        """Return a unit without checking its record; None if there is none."""
        queue = self._queues.find(topic, queue_id)
        return None if queue is None else queue.unit(number)

    def store_timestamp(self, topic: str, queue_id: int, number: int) -> int | None:
        """Return the store time of a message in milliseconds, None if it cannot be served."""
        queue = self._queues.find(topic, queue_id)
        unit = None if queue is None else queue.unit(number)
        if queue is None or unit is None:
            return None
        with self._reader.session() as session:
            return session.store_timestamp() if self._records.find(session, queue.key, number, unit.offset) else None

    def records(self, topic: str, queue_id: int, begin: int, end: int) -> Iterator[RecordBuffer]:
        """Yield the messages of [begin, end) that exist; each buffer is released before the next."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return
        for number in range(max(begin, queue.min_offset), min(end, queue.max_offset)):
            unit = queue.unit(number)
            with self._reader.session() as session:
                size = 0 if unit is None else self._records.find(session, queue.key, number, unit.offset)
                buffer = session.take(size, number) if size else None
            if buffer is not None:
                with buffer:
                    yield buffer

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Return the number of the first message stored at or after a time.

        Returns 0 for an unknown queue.
        """
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else offset_by_time(queue, self._reader, self._records, timestamp_ms)

    def is_in_disk(self, topic: str, queue_id: int, number: int) -> bool:
        """Return whether a message counts as being on disk only.

        Returns False if there is no such message.
        """
        unit = self.unit(topic, queue_id, number)
        return unit is not None and self._limits.is_far(self._reader.readable_end - unit.offset)
