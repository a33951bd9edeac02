"""Asynchronous delivery: copies wait for flush and replica while their levels go on.

1. A copy without an answer is pending, at most `pending_max` of a level. A level with so many pending copies puts no
   more until its first copy is answered (RocketMQ: `scheduleAsyncDeliverMaxPendingLimit`).
2. The progress of a level passes a message once its copy and all earlier ones are answered, so saved progress never
   covers an unanswered copy. An answer only wakes the service. RocketMQ puts again in the callback of a failed put,
   which never ends while the store refuses (RMQ-B59), and polls an open answer without a pause (RMQ-B60).
3. A refused copy is put again after 100 ms, 200 ms and so on, at most a minute, and no later message is put before it.
   RocketMQ goes on to later messages, which overtake it.
4. A copy that is in the log is not put again, whatever its answer, since it would be delivered twice. Copies that flush
   or replica do not confirm are counted, and the first of consecutive ones is logged.

Source: `ScheduleMessageService.PutResultProcess`, `HandlePutResultTask`; spec: services, section 1.7.
"""

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from tornpage.impl.delay.schedule import RETRY_MS, DeliveryRounds
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.read.queued_records import ReadableQueue

__all__ = ["DeliverDelayedMessagesAsync"]

_LOG = logging.getLogger("tornpage.store")

_RETRY_MS_MAX = 60_000


class _Pending(NamedTuple):
    """A handled message.

    Its level goes on at `next_number` once `answer`, if there is one, is known.
    """

    next_number: int
    answer: Future[PutResult] | None

    @property
    def is_answered(self) -> bool:
        return self.answer is None or self.answer.done()


class DeliverDelayedMessagesAsync(DeliveryRounds):
    """The asynchronous delivery of one store.

    `put` puts a copy; its answer may come later, in any thread.
    """

    def __init__(
        self, *parts: Any, put: Callable[[Message], Future[PutResult]], pending_max: int, **settings: Any
    ) -> None:
        super().__init__(*parts, **settings)
        self._put = put
        self._pending_max = pending_max
        self._lines: defaultdict[int, deque[_Pending]] = defaultdict(deque)
        self._refusals: Counter[int] = Counter()
        self._answer: Future[PutResult] | None = None
        self._last_status = PutStatus.PUT_OK

    def step(self, now_ms: int) -> int | None:
        """Record answers and deliver due messages.

        Return when the next round is due in ms, None if none waits.
        """
        if self._may_deliver():
            self.finish()
        return super().step(now_ms)

    def finish(self) -> None:
        """Record the answers of pending copies."""
        for level in self._lines:
            self._note_answers(level)

    def _note_answers(self, level: int) -> None:
        line = self._lines[level]
        while line and line[0].is_answered:
            next_number, answer = line.popleft()
            # pending messages may have expired, and the level gone past them
            self._offsets.advance(level, max(next_number, self._offsets.next_number(level) or 0))
            if answer is not None:
                self._note_status(level, next_number - 1, answer.result().status)

    def _note_status(self, level: int, number: int, status: PutStatus) -> None:
        """Count an unconfirmed copy, and log the first of consecutive ones."""
        self.unconfirmed += status is not PutStatus.PUT_OK
        if status not in (PutStatus.PUT_OK, self._last_status):
            _LOG.warning("delayed_copy_unconfirmed level=%d queue_offset=%d status=%s", level, number, status.value)
        self._last_status = status

    # ---- hooks of a round ----------------------------------------------------------------------------------------

    def _first_number(self, queue: ReadableQueue, level: int) -> int:
        number, line = super()._first_number(queue, level), self._lines[level]
        return max(number, line[-1].next_number) if line else number

    # planted: line-without-end
    def _is_full(self, level: int) -> bool:
        return len(self._lines[level]) >= self._pending_max

    # planted: refused-ten-times-a-second
    def _pause_ms(self, level: int) -> int:
        self._refusals[level] += 1
        return min(self._refusals[level] * RETRY_MS, _RETRY_MS_MAX)

    def _refusal_of(self, copy: Message) -> PutStatus | None:
        answer = self._put(copy)
        if answer.done() and not answer.result().stored:
            return answer.result().status
        self._answer = answer  # a copy that is not answered at once is in the log
        return None

    def _advance(self, level: int, number: int) -> None:
        answer, self._answer = self._answer, None
        self._refusals[level] = 0
        self._lines[level].append(_Pending(number, answer))
        self._note_answers(level)
        if answer is not None and not answer.done():
            answer.add_done_callback(self._answered)

    # planted: answer-wakes-nobody
    def _answered(self, _: Future[PutResult]) -> None:
        if self.wake is not None:
            self.wake()
