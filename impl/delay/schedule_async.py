"""Asynchronous delivery: copies wait for disk and replica as any message does, and no level waits for them.

1. A copy whose answer is open stands in the line of its level, `pending_max` of them at most; a level whose line is
   full puts no more until its first copy is answered (RocketMQ: `scheduleAsyncDeliverMaxPendingLimit`).
2. A level goes on behind a message once its copy is answered, and those before it are: so nothing that is saved speaks
   of a copy that is not answered. An answer wakes the service and does nothing else; RocketMQ puts again in the
   callback of a put that failed, which never ends while the store refuses (RMQ-B59), and asks an open answer again and
   again without a pause (RMQ-B60).
3. A copy that is refused is put again after 100 ms, 200 ms and so on, a minute at most, and nothing behind it is put
   before it. RocketMQ goes on behind it, and what comes later overtakes it.
4. A copy that is stored is not put again, whatever its answer: it would come twice. Those that are not confirmed by
   disk or replica are counted, and the first of a row is named in the log.

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
    """A message that was handled: its level goes on at `next_number` once `answer`, if there is one, is known."""

    next_number: int
    answer: Future[PutResult] | None

    @property
    def is_answered(self) -> bool:
        return self.answer is None or self.answer.done()


class DeliverDelayedMessagesAsync(DeliveryRounds):
    """One service of one store. `put` puts a copy, whose answer may come later, in whatever thread."""

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
        """Note what was answered, deliver what is due; return when the next round is wanted, None if nothing waits."""
        if self._may_deliver():
            self.finish()
        return super().step(now_ms)

    def finish(self) -> None:
        """Note what was answered."""
        for level in self._lines:
            self._note_answers(level)

    def _note_answers(self, level: int) -> None:
        line = self._lines[level]
        while line and line[0].is_answered:
            next_number, answer = line.popleft()
            # what stood in line may have expired, and the level gone on behind it
            self._offsets.advance(level, max(next_number, self._offsets.next_number(level) or 0))
            if answer is not None:
                self._note_status(level, next_number - 1, answer.result().status)

    def _note_status(self, level: int, number: int, status: PutStatus) -> None:
        """Count who is not confirmed, and name the first of a row."""
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
        self._answer = answer  # whoever is not answered at once is in the log
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
