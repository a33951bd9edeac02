"""The service that delivers delayed messages (contract 12).

Each is put again, under its own topic, when it is due.

1. Each queue of SCHEDULE_TOPIC_XXXX is a level. Levels are independent: a level whose next message cannot be put, or
   fails, delays no other.
2. A message is due at the time in its unit, never before. RocketMQ treats a message as due at once if its time is
   further ahead than the delay of its level, as after a clock that was set back.
3. Due messages are put in order, at most 64 messages of a level in a round. The next round is due when the next
   message is, and after a second at the latest, in case the clock is set forward. The dispatcher wakes the service for
   a message that is due earlier.
4. A message that can never be delivered is logged and skipped. RocketMQ tries it ten times a second forever, and no
   later message is delivered (RMQ-B22). A message that is refused for now is tried again after 100 ms (RMQ-B61).

Source: `ScheduleMessageService.DeliverDelayedMessageTimerTask`; spec: services, section 1.4.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.dispatch.dispatch_records import tags_code_of
from tornpage.impl.io.files import Clock
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, DelayLevels
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.message import Message, PutResult, PutStatus, StoredMessage
from tornpage.impl.put.delayed_copy import as_stored
from tornpage.impl.queue.consume_queue_ext import is_address
from tornpage.impl.queue.units import units_in
from tornpage.impl.read.log_reader import LogReader
from tornpage.impl.read.queued_records import QueuedRecords, ReadableQueue, ReadableQueues

__all__ = ["FIRST_DELAY_MS", "RETRY_MS", "DeliverDelayedMessages", "DeliveryRounds"]

_LOG = logging.getLogger("tornpage.store")

FIRST_DELAY_MS = 1_000
"""`FIRST_DELAY_TIME`, milliseconds."""
RETRY_MS = 100
"""`DELAY_FOR_A_WHILE`, milliseconds."""
_PAUSE_AFTER_ERROR_MS = 10_000
"""`DELAY_FOR_A_PERIOD`, milliseconds."""
_SLEEP_MS_MAX = 1_000
_DELIVERIES_OF_A_ROUND = 64
_NEVER_MS = 1 << 63
_FINAL = frozenset(
    (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)
)
_TOPIC = SCHEDULE_TOPIC.encode()


class DeliveryRounds(ABC):
    """The rounds of delivery; subclasses decide how a copy is put.

    `delivered` counts messages put again, `skipped` those skipped, `unconfirmed` those whose awaited answer was not
    PUT_OK. `clock` is the time of records, in which messages are due. `may_deliver` is False once the store accepts no
    puts.
    """

    name = "schedule"

    def __init__(
        self,
        queues: ReadableQueues,
        reader: LogReader,
        records: QueuedRecords,
        offsets: DelayOffsets,
        *,
        levels: DelayLevels,
        copy_of: Callable[[Message], Message | str],
        clock: Clock,
        may_deliver: Callable[[], bool],
    ) -> None:
        self.wake: Callable[[], None] | None = None
        self.delivered = 0
        self.skipped = 0
        self.unconfirmed = 0
        self._queues = queues
        self._reader = reader
        self._records = records
        self._offsets = offsets
        self._levels = levels
        self._copy_of = copy_of
        self._clock = clock
        self._may_deliver = may_deliver
        self._queue_ids = {queue.queue_id for queue in queues.all() if queue.key[0] == _TOPIC}
        self._next_round_ms = clock() + FIRST_DELAY_MS

    # ---- rounds --------------------------------------------------------------------------------------------------

    def note_runs(self, runs: Sequence[QueueRun]) -> None:
        """Note units that are readable now.

        Wake the service for a message that is due before its next round.
        """
        for run in runs:
            if run.key[0] == _TOPIC:
                if run.key[1] not in self._queue_ids:
                    self._queue_ids = {*self._queue_ids, run.key[1]}
                if min(_due_times(run)) < self._next_round_ms and self.wake is not None:
                    self.wake()

    def step(self, now_ms: int) -> int | None:
        """Deliver due messages.

        Return when the next round is due in milliseconds, None if no message waits.
        """
        self._next_round_ms = _NEVER_MS  # a message that arrives during the round has to wake the service
        if not self._may_deliver():
            return None
        clock_ms = self._clock()
        pauses_ms = [
            pause_ms
            for queue_id in sorted(self._queue_ids)
            if (pause_ms := self._round_of(queue_id, clock_ms)) is not None
        ]
        if not pauses_ms:
            return None
        self._next_round_ms = clock_ms + min(pauses_ms)
        return now_ms + min(pauses_ms)

    def _round_of(self, queue_id: int, clock_ms: int) -> int | None:
        """Deliver due messages of one level.

        Return the ms until its next round, None if no message waits.
        """
        queue = self._queues.find(SCHEDULE_TOPIC, queue_id)
        if queue is None:
            return None
        try:
            return self._deliver(queue, queue_id + 1, clock_ms)
        except Exception:
            _LOG.exception("delivery_failed level=%d", queue_id + 1)
            return _PAUSE_AFTER_ERROR_MS

    def _deliver(self, queue: ReadableQueue, level: int, clock_ms: int) -> int | None:
        number = self._first_number(queue, level)
        handled = 0
        while number < queue.max_offset:
            unit = queue.unit(number)
            if unit is not None:
                wait_ms = self._due_ms(queue, number, unit.offset, unit.tags_code) - clock_ms
                if wait_ms > 0:
                    return min(wait_ms, _SLEEP_MS_MAX)
                if self._is_full(level):
                    return None
                if handled == _DELIVERIES_OF_A_ROUND:
                    return 0
                if not self._is_done(queue, number, unit.offset):
                    return self._pause_ms(level)
                handled += 1
            elif queue.min_offset > number:
                return RETRY_MS  # its file was just deleted
            number += 1
            self._advance(level, number)
        return None

    def _is_full(self, level: int) -> bool:
        """Return whether a level may put no more for now.

        The event that ends this wakes the service.
        """
        return False

    def _pause_ms(self, level: int) -> int:
        """Return the ms until a level tries a refused message again."""
        return RETRY_MS

    # planted: progress-of-the-round
    def _advance(self, level: int, number: int) -> None:
        self._offsets.advance(level, number)

    @abstractmethod
    def finish(self) -> None:
        """Record the answers since the last round; no round follows."""

    def _first_number(self, queue: ReadableQueue, level: int) -> int:
        """Return the next number of a level, at least that of its first message."""
        number, first = self._offsets.next_number(level), queue.min_offset
        if number is None or first == queue.max_offset:
            return max(number or 0, first)
        if number < first:
            self._offsets.advance(level, first)
        return max(number, first)

    # ---- one message ---------------------------------------------------------------------------------------------

    def _due_ms(self, queue: ReadableQueue, number: int, offset: int, code: int) -> int:
        """Return when a message is due in milliseconds.

        It is taken from the unit, the extension or the record.
        """
        if not is_address(code):
            return code
        ext = None if queue.ext is None else queue.ext.get(code)
        if ext is not None:
            return ext.tags_code
        record = self._record(queue, number, offset)
        if record is None:
            return 0
        return tags_code_of(_TOPIC, record.properties, record.store_timestamp, self._levels)

    def _record(self, queue: ReadableQueue, number: int, offset: int) -> StoredMessage | None:
        with self._reader.session(verifies=True) as session:
            if self._records.find(session, queue.key, number, offset):
                return session.message()
        return None

    def _is_done(self, queue: ReadableQueue, number: int, offset: int) -> bool:
        """Put the copy of a due message; return whether the level may go on to the next message."""
        if offset >= self._reader.readable_end:
            return False
        record = self._record(queue, number, offset)
        copy = "its record fails a check, or has expired" if record is None else self._copy_of(as_stored(record))
        if isinstance(copy, str):
            return self._skip(queue, number, offset, copy)
        refused = self._refusal_of(copy)
        if refused in _FINAL:
            return self._skip(queue, number, offset, f"its copy is {refused.value}")
        self.delivered += refused is None
        return refused is None

    @abstractmethod
    def _refusal_of(self, copy: Message) -> PutStatus | None:
        """Put a copy; return the status that refuses it, or None if it is in the log."""

    def _skip(self, queue: ReadableQueue, number: int, offset: int, why: str) -> bool:
        """Log a message that will not be delivered; return True."""
        self.skipped += 1
        _LOG.warning(
            "delayed_message_skipped level=%d queue_offset=%d offset=%d why=%r", queue.queue_id + 1, number, offset, why
        )
        return True


class DeliverDelayedMessages(DeliveryRounds):
    """The delivery of one store. `put` puts a copy without a wait for flush or replica."""

    def __init__(self, *parts: Any, put: Callable[[Message], PutResult], **settings: Any) -> None:
        super().__init__(*parts, **settings)
        self._put = put

    # planted: refused-copy-put-again
    def _refusal_of(self, copy: Message) -> PutStatus | None:
        result = self._put(copy)
        return None if result.stored else result.status

    def finish(self) -> None:
        """Do nothing; no answer is open."""


def _due_times(run: QueueRun) -> Iterator[int]:
    """Yield when the messages of a run are due, in milliseconds."""
    if run.ext:
        return (draft.tags_code for draft in run.ext)
    return (unit.tags_code for unit in units_in(run.units))
