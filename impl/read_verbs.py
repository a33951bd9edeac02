"""The public reads of a message store, all but `get`: by queue, key, id, time and place.

What they answer: docs/statuses.md. Each of them raises StoreClosed after `close()` and ForkedStore in a forked child.
Source: `MessageStore`.
"""

from impl.delayed_delivery import DelayedDelivery
from impl.message import GetResult
from impl.message_filter import MessageFilter
from impl.message_query import QueryMessageResult
from impl.queue_pull import GetMessageResult
from impl.read_buffer import ReadBuffer, RecordBuffer
from impl.read_path import ReadPath
from impl.read_statistics import ReadStatisticsSnapshot

__all__ = ["ReadVerbs"]

_TIME_MAX = (1 << 63) - 1
_MESSAGES = 32


class ReadVerbs:
    """A base class of the store. Buffers in an answer are its reader's: release them."""

    _delivery: DelayedDelivery
    _reads: ReadPath

    # ---- messages ------------------------------------------------------------------------------------------------

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_msg_nums: int = _MESSAGES,
        message_filter: MessageFilter | None = None,
        group: str = "",
    ) -> GetMessageResult:
        """Return messages of a queue from a queue offset on; `group` is who reads, for the statistics.

        Raises NotReadable while the running flag NOT_READABLE is set.
        """
        return self._reads.get_message(
            topic, queue_id, offset, max_msg_nums=max_msg_nums, message_filter=message_filter, group=group
        )

    def query_message(
        self, topic: str, key: str, *, max_num: int = _MESSAGES, begin_ms: int = 0, end_ms: int = _TIME_MAX
    ) -> QueryMessageResult:
        """Return the newest messages of a topic with a key, stored in [begin_ms, end_ms], oldest first.

        At most `max_msgs_num_batch` of the configuration come at once.
        """
        query = self._reads.query
        return self._reads.look(query.by_key, topic, key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)

    def message_by_id(self, message_id: str) -> GetResult:
        """Return the message of an offset message id, as `PutResult.message_id` has it; hex digits may be small.

        The status is OFFSET_FOUND_NULL, and `message` None, for a text that is no offset message id, for a place where
        no readable record begins, and for a record that another host stored.
        """
        return self._reads.look(self._reads.by_id, message_id)

    def select_message_by_offset(self, offset: int, size: int | None = None) -> RecordBuffer | None:
        """Return the record that begins at a physical offset, if it has that size."""
        return self._reads.look(self._reads.query.at, offset, size)

    def commit_log_data(self, offset: int) -> ReadBuffer | None:
        """Return all readable bytes from a physical offset to the end of its log file, for who copies the log.

        They were checked when the log was opened or written, and are not checked again.
        """
        return self._reads.look(self._reads.query.rest_of_file, offset)

    # ---- queues --------------------------------------------------------------------------------------------------

    def queues(self) -> list[tuple[str, int]]:
        """Return topic and queue id of every queue."""
        return self._reads.look(self._reads.queues.names)

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the first message; an unknown queue counts as an empty one, 0."""
        return self._reads.look(self._reads.queues.range_of, topic, queue_id)[0]

    def max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the queue offset that the next message gets; an unknown queue counts as an empty one, 0."""
        return self._reads.look(self._reads.queues.range_of, topic, queue_id)[1]

    def message_total_in_queue(self, topic: str, queue_id: int) -> int:
        """Return how many numbers lie between minimum and maximum."""
        min_offset, max_offset = self._reads.look(self._reads.queues.range_of, topic, queue_id)
        return max_offset - min_offset

    def commit_log_offset_in_queue(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the physical offset of a message, None if the queue has no such message (RocketMQ: 0)."""
        unit = self._reads.look(self._reads.queues.unit, topic, queue_id, queue_offset)
        return None if unit is None else unit.offset

    def store_timestamp_in_queue(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return the store time of a message in ms, None if it cannot be read (RocketMQ: -1)."""
        return self._reads.look(self._reads.queues.store_timestamp, topic, queue_id, queue_offset)

    def earliest_message_time(self, topic: str | None = None, queue_id: int = 0) -> int | None:
        """Return the store time in ms of the first message of a queue, or of the log if no topic is given.

        None if there is no such message, or if it cannot be read (RocketMQ: -1).
        """
        if topic is None:
            return self._reads.look(self._reads.query.store_timestamp, self._reads.log.min_offset)
        queue_offset = self.min_offset_in_queue(topic, queue_id)
        return self.store_timestamp_in_queue(topic, queue_id, queue_offset)

    def offset_in_queue_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Return the queue offset of the first message stored at or after a time; the maximum if there is none."""
        return self._reads.look(self._reads.queues.offset_by_time, topic, queue_id, timestamp_ms)

    def message_ids_in_queue(self, topic: str, queue_id: int, begin: int, end: int) -> dict[str, int]:
        """Return the queue offset of each message id in [begin, end), as far as there are messages."""
        return self._reads.look(self._reads.message_ids, topic, queue_id, begin, end)

    def is_in_disk(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Return whether a message is so old that it has likely left the memory; False when there is none."""
        return self._reads.look(self._reads.queues.is_in_disk, topic, queue_id, queue_offset)

    # ---- numbers -------------------------------------------------------------------------------------------------

    def read_statistics(self) -> ReadStatisticsSnapshot:
        """Return counts, latencies and rates of the reads by queue so far."""
        return self._reads.statistics()

    def delay_offsets(self) -> dict[int, int]:
        """Return the number of the next message to be delivered of each delay level that has ever delivered one."""
        return self._delivery.progress()

    def runtime_info(self) -> dict[str, str]:
        """Return what an operator asks, as texts under RocketMQ's names."""
        return {**self._reads.runtime_info(), **self._delivery.runtime_info()}

    @property
    def leaked_buffers(self) -> int:
        """How many log files of a closed store are still mapped, because somebody keeps a view of a buffer."""
        return self._reads.buffers.leaked
