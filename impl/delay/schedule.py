"""The service that delivers delayed messages: each is put again, under its own topic, once it is due (contract 12).

1. Each queue of SCHEDULE_TOPIC_XXXX is a level, and on its own: a level whose next message cannot be put, or fails,
   holds up no other.
2. A message is due when the clock says what its unit says, never before: RocketMQ takes what lies further ahead than
   the delay of its level for due at once, as after a clock that was set back.
3. What is due is put, in order, 64 messages of a level in a round at most. The next round is wanted when the next
   message is due, a second later at the latest, in case the clock is set forward; the dispatcher wakes it for a message
   that is due earlier.
4. What will never be delivered is named in the log and passed by: RocketMQ tries it ten times a second for ever, and
   nothing behind it comes (RMQ-B22). What is refused for now is tried again after 100 ms (RMQ-B61).

Source: `ScheduleMessageService.DeliverDelayedMessageTimerTask`; spec: services, section 1.4.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.dispatch.dispatch_records import tags_code_of
from tornpage.impl.io.files import Clock
from tornpage.impl.message.codec import decode_record
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, DelayLevels
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.message import Message, PutResult, PutStatus, StoredMessage
from tornpage.impl.put.delayed_copy import stored_as
from tornpage.impl.queue.consume_queue_ext import is_address
from tornpage.impl.queue.units import units_in
from tornpage.impl.read.log_reader import LogReader
from tornpage.impl.read.queued_records import QueuedRecords, ReadableQueue, ReadableQueues

__all__ = ["FIRST_DELAY_MS", "RETRY_MS", "DeliverDelayedMessages", "DeliveryRounds"]

_LOG = logging.getLogger("tornpage.store")

FIRST_DELAY_MS = 1_000
"""`FIRST_DELAY_TIME`."""
RETRY_MS = 100
"""`DELAY_FOR_A_WHILE`."""
_PAUSE_AFTER_ERROR_MS = 10_000
"""`DELAY_FOR_A_PERIOD`."""
_SLEEP_MS_MAX = 1_000
_DELIVERIES_OF_A_ROUND = 64
_NEVER_MS = 1 << 63
_FINAL = frozenset(
    (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)
)
_TOPIC = SCHEDULE_TOPIC.encode()


class DeliveryRounds(ABC):
    """The rounds of delivery; how a copy is put is left open.

    `delivered`, `skipped` and `unconfirmed` count messages: put again, passed by, and put again with an answer other
    than PUT_OK where that is waited for. `clock` is the time of records, in which messages are due; `may_deliver` says
    no once the store takes no more puts.
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
        self._looks_again_ms = clock() + FIRST_DELAY_MS

    # ---- rounds --------------------------------------------------------------------------------------------------

    def note_runs(self, runs: Sequence[QueueRun]) -> None:
        """Hear of units that can be read now; wakes the service for a message that is due before it would look."""
        for run in runs:
            if run.key[0] == _TOPIC:
                if run.key[1] not in self._queue_ids:
                    self._queue_ids = {*self._queue_ids, run.key[1]}
                if min(_due_times(run)) < self._looks_again_ms and self.wake is not None:
                    self.wake()

    def step(self, now_ms: int) -> int | None:
        """Deliver what is due; return when the next round is wanted, None if nothing waits."""
        self._looks_again_ms = _NEVER_MS  # who comes during the round has to wake
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
        self._looks_again_ms = clock_ms + min(pauses_ms)
        return now_ms + min(pauses_ms)

    def _round_of(self, queue_id: int, clock_ms: int) -> int | None:
        """Deliver what is due of one level; return when to look again, in ms from now, None if nothing waits."""
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
                return RETRY_MS  # the file of it has just gone
            number += 1
            self._advance(level, number)
        return None

    def _is_full(self, level: int) -> bool:
        """Whether a level may put no more for now; who ends that wakes the service."""
        return False

    def _pause_ms(self, level: int) -> int:
        """Return when a level tries a message again that could not be put."""
        return RETRY_MS

    # planted: progress-of-the-round
    def _advance(self, level: int, number: int) -> None:
        self._offsets.advance(level, number)

    @abstractmethod
    def finish(self) -> None:
        """Note what was answered since the last round; no round follows."""

    def _first_number(self, queue: ReadableQueue, level: int) -> int:
        """Return where a level goes on: at its first message at least, for those in front have expired."""
        number, first = self._offsets.next_number(level), queue.min_offset
        if number is None or first == queue.max_offset:
            return max(number or 0, first)
        if number < first:
            self._offsets.advance(level, first)
        return max(number, first)

    # ---- one message ---------------------------------------------------------------------------------------------

    def _due_ms(self, queue: ReadableQueue, number: int, offset: int, code: int) -> int:
        """Return when a message is due: what its unit says, or its extension, or else its record."""
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
        with self._reader.session() as session:
            if self._records.find(session, queue.key, number, offset):
                return decode_record(session.view, session.position)
        return None

    def _is_done(self, queue: ReadableQueue, number: int, offset: int) -> bool:
        """Put the copy of a message that is due; return whether the level may go on behind it."""
        if offset >= self._reader.readable_end:
            return False
        record = self._record(queue, number, offset)
        copy = "its record fails a check, or has expired" if record is None else self._copy_of(stored_as(record))
        if isinstance(copy, str):
            return self._pass_by(queue, number, offset, copy)
        refused = self._refusal_of(copy)
        if refused in _FINAL:
            return self._pass_by(queue, number, offset, f"its copy is {refused.value}")
        self.delivered += refused is None
        return refused is None

    @abstractmethod
    def _refusal_of(self, copy: Message) -> PutStatus | None:
        """Put a copy; return why it is not in the log, or None."""

    def _pass_by(self, queue: ReadableQueue, number: int, offset: int, why: str) -> bool:
        """Name a message that will not be delivered."""
        self.skipped += 1
        _LOG.warning(
            "delayed_message_skipped level=%d queue_offset=%d offset=%d why=%r", queue.queue_id + 1, number, offset, why
        )
        return True


class DeliverDelayedMessages(DeliveryRounds):
    """One service of one store. `put` puts a copy, and waits neither for disk nor replica."""

    def __init__(self, *parts: Any, put: Callable[[Message], PutResult], **settings: Any) -> None:
        super().__init__(*parts, **settings)
        self._put = put

    # planted: refused-copy-put-again
    def _refusal_of(self, copy: Message) -> PutStatus | None:
        result = self._put(copy)
        return None if result.stored else result.status

    def finish(self) -> None:
        """Nothing is left to be answered."""


def _due_times(run: QueueRun) -> Iterator[int]:
    """Yield when the messages of a run are due."""
    if run.ext:
        return (draft.tags_code for draft in run.ext)
    return (unit.tags_code for unit in units_in(run.units))
