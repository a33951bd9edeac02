"""Long polling: a consumer that finds nothing waits in the store until a message comes that he wants.

1. A pull is held when it finds nothing and could find something later: at the end of its queue, at a message that
   readers may not see yet, or at number 0 of a queue that has none. Any other answer is given at once.
2. It ends when a message is in the queue, at its offset or behind, that its filter wants; when its queue is another one
   now, or begins behind its offset; when its time is over; when the store closes. A message that the filter does not
   want ends nothing, where RocketMQ answers such a pull every 5 seconds.
3. Its answer is that of a whole pull at that moment, or what such a pull raises.
4. No wake-up is lost. A consumer that found nothing is noted first and then looks once more whether his queue has
   changed; the dispatcher has its units visible first and then looks who is noted. One of the two sees the other.
5. Only the step of the service looks and answers, outside of all locks; the dispatcher leaves a note.

Source: `PullRequestHoldService`, `PullMessageProcessor`, `NotifyMessageArrivingListener`.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from tornpage.impl.errors import StoreClosed, TooManyHeldPulls
from tornpage.impl.guards import MakeGuard
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.message import GetStatus
from tornpage.impl.read.held_pulls import HeldPull, HeldPulls, PullRequest, QueueName
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.service.runner import RunnerFactory

__all__ = ["HOLD_MS_MAX", "PullHold", "Pulls", "is_not_found"]

HOLD_MS_MAX = (1 << 31) - 1
"""Nobody waits for longer, whatever he says: 24 days."""

_AT_THE_END = frozenset((GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.OFFSET_FOUND_NULL))
_NO_MESSAGE_YET = frozenset((GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE))


def is_not_found(found: GetMessageResult, offset: int) -> bool:
    """Return whether a pull from a queue offset found nothing, and there may be something there later.

    Source: `PullMessageProcessor`, response code PULL_NOT_FOUND.
    """
    return found.status in _AT_THE_END or (found.status in _NO_MESSAGE_YET and offset == 0)


class Pulls(Protocol):
    """What a hold asks of the reads of a store; all of it raises StoreClosed behind a close."""

    def pull(self, request: PullRequest) -> GetMessageResult:
        """Answer a request, and count it. Raises NotReadable too."""

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        """Look for the first message that a request wants, from a queue offset on; nobody counts that."""

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        """Return minimum and maximum of a queue, 0 and 0 of one that nobody knows."""


class PullHold:
    """The service that holds the pulls of one store, at most `held_max` at a time. `path` names the store in errors.

    Where `short_polling_ms` is not None, everybody who would wait does so for that long (`longPollingEnable` false).
    """

    name = "pull-hold"

    def __init__(
        self,
        pulls: Pulls,
        *,
        runner: RunnerFactory,
        held_max: int,
        short_polling_ms: int | None,
        path: str,
        guard: MakeGuard = threading.Lock,
    ) -> None:
        self._pulls = pulls
        self._held_max = held_max
        self._short_polling_ms = short_polling_ms
        self._path = path
        self._guard = guard()
        self._held = HeldPulls()
        self._arrived: set[QueueName] = set()
        self._all_anew = False
        self._finished = False
        self._runner = runner(self)

    @property
    def held_count(self) -> int:
        """How many pulls wait."""
        return len(self._held)

    # ---- for consumers -------------------------------------------------------------------------------------------

    def pull(self, request: PullRequest, hold_ms: int) -> Future[GetMessageResult]:
        """Pull, and wait for so many ms at most if nothing is found; 0 or less waits for nothing.

        A future that is cancelled waits no longer. Raises what a pull raises, and TooManyHeldPulls.
        """
        found = self._pulls.pull(request)
        if hold_ms <= 0 or not is_not_found(found, request.offset):
            return _answered(found)
        wait_ms = min(hold_ms, HOLD_MS_MAX) if self._short_polling_ms is None else self._short_polling_ms
        held = HeldPull(request, deadline_ms=self._runner.now_ms() + wait_ms)
        number = self._hold(held)
        held.answer.add_done_callback(partial(self._forget, number))
        if self._pulls.range_of(request.queue) != (found.min_offset, found.max_offset):
            self._note({request.queue})  # the queue has changed since the pull, when nothing was noted yet
        return held.answer

    def _hold(self, held: HeldPull) -> int:
        """Note a pull that found nothing, and return its number; the service knows its deadline from here on."""
        with self._guard:
            if self._finished:
                raise StoreClosed(self._path)
            if len(self._held) >= self._held_max:
                raise TooManyHeldPulls(self._held_max)
            number, is_first = self._held.add(held)
        if is_first:
            self._runner.wake()
        return number

    # planted: place-of-who-gave-up
    def _forget(self, number: int, _answer: "Future[GetMessageResult]") -> None:
        """Give up the place of a pull that was cancelled; one that was answered has none any more."""
        with self._guard:
            self._held.take(number)

    # ---- for those who change queues -----------------------------------------------------------------------------

    def dispatched(self, runs: Sequence[QueueRun]) -> None:
        """Say that readers find the units of these runs in their queues. Called by the dispatcher."""
        if len(self._held):
            self._note({_name_of(run) for run in runs})

    def _note(self, queues: set[QueueName]) -> None:
        """Have the service look at those of some queues that somebody waits for."""
        with self._guard:
            waited_for = {queue for queue in queues if queue in self._held}
            self._arrived |= waited_for
        if waited_for:
            self._runner.wake()

    def queues_deleted(self) -> None:
        """Say that queues are gone, and that there may be others in their places: everybody is looked at anew."""
        if len(self._held):
            with self._guard:
                self._all_anew = True
            self._runner.wake()

    # ---- the service ---------------------------------------------------------------------------------------------

    def step(self, now_ms: int) -> int | None:
        """Answer those whose time is over and those for whom there is something; return the next deadline."""
        with self._guard:
            late = list(self._held.late(now_ms))
            looked_at = self._woken()
        for number, _ in late:
            self._answer(number)
        for number, held in looked_at:
            if self._is_to_end(held):
                self._answer(number)
        with self._guard:
            return self._held.first_deadline_ms

    def _woken(self) -> list[tuple[int, HeldPull]]:
        """Return those that there may be something for, with their numbers."""
        arrived, self._arrived = self._arrived, set()
        all_anew, self._all_anew = self._all_anew, False
        if not all_anew:
            return self._held.of(arrived)
        everybody = self._held.all()
        for _, held in everybody:
            held.looked_to = held.request.offset
        return everybody

    def _is_to_end(self, held: HeldPull) -> bool:
        """Return whether a pull is to be answered now; note up to where there is nothing for it."""
        request = held.request
        while True:
            try:
                found = self._pulls.look(request, held.looked_to)
            except Exception:
                return True  # so will the pull
            found.release()
            is_behind = found.min_offset > request.offset
            if found.status is not GetStatus.NO_MATCHED_MESSAGE:
                return is_behind or not is_not_found(found, request.offset)
            held.looked_to = found.next_begin_offset
            if held.looked_to >= found.max_offset:
                return is_behind

    def _answer(self, number: int) -> None:
        """Answer a pull, unless it has been answered or cancelled."""
        with self._guard:
            held = self._held.take(number)
        if held is None or not held.answer.set_running_or_notify_cancel():
            return
        try:
            found = self._pulls.pull(held.request)
        except BaseException as error:
            held.answer.set_exception(error)
        else:
            held.answer.set_result(found)

    # ---- the end -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Hold nobody any longer: who waits, or comes later, is told StoreClosed. Idempotent."""
        self._runner.stop()
        with self._guard:
            self._finished = True
            left = self._held.all()
            for number, _ in left:
                self._held.take(number)
        for _, held in left:
            if held.answer.set_running_or_notify_cancel():
                held.answer.set_exception(StoreClosed(self._path))


def _answered(found: GetMessageResult) -> Future[GetMessageResult]:
    answer: Future[GetMessageResult] = Future()
    answer.set_result(found)
    return answer


def _name_of(run: QueueRun) -> QueueName:
    topic, queue_id = run.key
    return topic.decode(errors="surrogateescape"), queue_id
