"""The search for the first message of a queue that was stored at or after a time.

Store times ascend with the numbers, so a binary search finds a number whose record is not older than the time while the
record before it is older. If the clock went back there may be several such numbers, and any of them may be returned. A
record that is not readable yet counts as younger than any time, so that a reader never skips it. A number without a
record (pre-fill, or a unit that fails a check) counts as the next number that has one. Expired records count as older
than any time. Source: `ConsumeQueue.getOffsetInQueueByTime`, whose answer depends on the modification times of files.
"""

from tornpage.impl.read.log_reader import LogReader, LogSession
from tornpage.impl.read.queued_records import QueuedRecords, ReadableQueue

__all__ = ["offset_by_time"]


def offset_by_time(queue: ReadableQueue, reader: LogReader, records: QueuedRecords, timestamp_ms: int) -> int:
    """Return the number of the first message stored at or after a time.

    Returns the maximum of the queue if there is none. Cost: one record is read for each binary digit of the count of
    messages.
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
    """Return whether a message was stored before a time.

    Returns None if there is no message of this number.
    """
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
