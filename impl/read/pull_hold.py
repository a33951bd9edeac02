"""Long polling: a pull that finds nothing waits until a matching message arrives.

1. A pull is held if it finds nothing and could find something later: at the end of its queue, at a message that is not
   readable yet, or at number 0 of a queue without messages. Any other answer is returned at once.
2. It ends when a message that its filter accepts is in the queue at its offset or past it, when the queue was replaced
   or its minimum rose above the offset, when its time is over, or when the store closes. A message that the filter
   rejects does not end it; RocketMQ answers such a pull every 5 seconds.
3. Its answer is that of a new pull at that time, or the exception of that pull.
4. No wake-up is lost. A pull that found nothing is registered first and then checks whether its queue has changed. The
   dispatcher makes units visible first and then checks the registered pulls. At least one of the two sees the other.
5. Only the step of the service checks and answers pulls, outside of all locks; the dispatcher only notes its queues.

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
"""The longest wait in milliseconds, 24 days; a longer request is shortened."""

_AT_THE_END = frozenset((GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.OFFSET_FOUND_NULL))
_NO_MESSAGE_YET = frozenset((GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE))


def is_not_found(found: GetMessageResult, offset: int) -> bool:
    """Return whether a pull from a queue offset found nothing and may find something later.

    Source: `PullMessageProcessor`, response code PULL_NOT_FOUND.
    """
    return found.status in _AT_THE_END or (found.status in _NO_MESSAGE_YET and offset == 0)


class Pulls(Protocol):
    """The reads of a store that a hold uses. All of them raise StoreClosed after a close."""

    def pull(self, request: PullRequest) -> GetMessageResult:
        """Answer a request, and count it in the statistics. Raises NotReadable too."""

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        """Return the first message that a request accepts, without counting the read.

        The search begins at a queue offset.
        """

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        """Return minimum and maximum of a queue; 0 and 0 for an unknown one."""


class PullHold:
    """The service that holds the pulls of one store, at most `held_max` at a time.

    `path` names the store in errors. If `short_polling_ms` is not None, every held pull waits for that many
    milliseconds (`longPollingEnable` false).
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
        self._check_all = False
        self._finished = False
        self._runner = runner(self)

    @property
    def held_count(self) -> int:
        """The number of waiting pulls."""
        return len(self._held)

    # ---- for consumers -------------------------------------------------------------------------------------------

    def pull(self, request: PullRequest, hold_ms: int) -> Future[GetMessageResult]:
        """Pull; if nothing is found, wait up to `hold_ms` milliseconds; 0 or less does not wait.

        A cancelled future ends the wait. Raises what a pull raises, and TooManyHeldPulls.
        """
        found = self._pulls.pull(request)
        if hold_ms <= 0 or not is_not_found(found, request.offset):
            return _answered(found)
        wait_ms = min(hold_ms, HOLD_MS_MAX) if self._short_polling_ms is None else self._short_polling_ms
        held = HeldPull(request, deadline_ms=self._runner.now_ms() + wait_ms)
        numbers: list[int] = []
        # first, since an interrupt of it may leave the future locked, which the service would wait for
        held.answer.add_done_callback(partial(self._forget, numbers))
        numbers.append(self._hold(held))
        if self._pulls.range_of(request.queue) != (found.min_offset, found.max_offset):
            self._note({request.queue})  # the queue has changed between the pull and its registration
        return held.answer

    def _hold(self, held: HeldPull) -> int:
        """Register a pull that found nothing and return its number.

        The service answers it at its deadline.
        """
        with self._guard:
            if self._finished:
                raise StoreClosed(self._path)
            if len(self._held) >= self._held_max:
                raise TooManyHeldPulls(self._held_max)
            number, is_first = self._held.add(held)
        if is_first:
            self._runner.wake()
        return number

    def _forget(self, numbers: list[int], _answer: "Future[GetMessageResult]") -> None:
        """Remove a cancelled pull from the table; an answered one is not in it any more."""
        with self._guard:
            for number in numbers:
                self._held.take(number)

    # ---- for writers of queues -----------------------------------------------------------------------------------

    def dispatched(self, runs: Sequence[QueueRun]) -> None:
        """Note that the units of these runs are readable. Called by the dispatcher."""
        if len(self._held):
            self._note({_name_of(run) for run in runs})

    def _note(self, queues: set[QueueName]) -> None:
        """Make the service check the pulls that wait for some queues."""
        with self._guard:
            waited_for = {queue for queue in queues if queue in self._held}
            self._arrived |= waited_for
        if waited_for:
            self._runner.wake()

    def queues_deleted(self) -> None:
        """Note that queues were deleted or replaced.

        Every waiting pull is checked from its offset again.
        """
        if len(self._held):
            with self._guard:
                self._check_all = True
            self._runner.wake()

    # ---- the service ---------------------------------------------------------------------------------------------

    def step(self, now_ms: int) -> int | None:
        """Answer pulls whose time is over or whose message has arrived.

        Return the next deadline in milliseconds.
        """
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
        """Return the pulls that may have a message now, with their numbers."""
        arrived, self._arrived = self._arrived, set()
        check_all, self._check_all = self._check_all, False
        if not check_all:
            return self._held.of(arrived)
        all_held = self._held.all()
        for _, held in all_held:
            held.checked_to = held.request.offset
        return all_held

    def _is_to_end(self, held: HeldPull) -> bool:
        """Return whether a pull is to be answered now.

        Record the offset below which no message matched.
        """
        request = held.request
        while True:
            try:
                found = self._pulls.look(request, held.checked_to)
            except Exception:
                return True  # the new pull raises it too
            found.release()
            is_behind = found.min_offset > request.offset
            if found.status is not GetStatus.NO_MATCHED_MESSAGE:
                return is_behind or not is_not_found(found, request.offset)
            held.checked_to = found.next_begin_offset
            if held.checked_to >= found.max_offset:
                return is_behind

    def _answer(self, number: int) -> None:
        """Answer a pull, unless it was answered or cancelled before."""
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
        """Stop holding pulls: waiting and later ones get StoreClosed. Idempotent."""
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
