"""The first message of a queue that was not stored before a time.

Numbers grow with store times, so a binary search finds it: its answer is a number whose record is not older while the
one in front of it is. Where the clock went back there may be several such places, and any of them is the answer.
A record that is not readable (yet) counts as younger than any time, so that nobody is led past it. A number without a
record (pre-fill, or a unit that fails a check) has no time of its own and counts as its nearest right neighbour that
has one. Expired records count as older than any time.
Source: `ConsumeQueue.getOffsetInQueueByTime`, whose answer depends on when files were changed.
"""

from tornpage.impl.read.log_reader import LogReader, LogSession
from tornpage.impl.read.queued_records import QueuedRecords, ReadableQueue

__all__ = ["offset_by_time"]


def offset_by_time(queue: ReadableQueue, reader: LogReader, records: QueuedRecords, timestamp_ms: int) -> int:
    """Return the number of the first message stored at or after a time; the maximum of the queue if there is none.

    Cost: as many records are read as the count of messages has binary digits.
    """
    low, high = queue.min_offset, queue.max_offset
    with reader.session() as session:
        while low < high:
            middle = (low + high) // 2
            probe = middle
            while probe < high and (older := _is_older(queue, session, records, probe, timestamp_ms)) is None:
                probe += 1
            if probe < high and older:
                low = probe + 1
            else:
                high = middle
    return low


def _is_older(
    queue: ReadableQueue, session: LogSession, records: QueuedRecords, number: int, timestamp_ms: int
) -> bool | None:
    """Return whether a message was stored before a time; None when there is no message of this number."""
    unit = queue.unit(number)
    if unit is None:
        return None
    if unit.offset < session.min_offset:
        return True
    if unit.offset >= session.readable_end:
        return False
    if not records.find(session, queue.key, number, unit.offset):
        return None
    return session.store_timestamp() < timestamp_ms
