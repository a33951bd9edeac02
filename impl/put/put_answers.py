"""The answer of an appended put: after the flush, after a replica, or at once.

The waits for flush and replica begin together. A flush that fails or is late gives FLUSH_DISK_TIMEOUT. A replication
status other than PUT_OK replaces it. Source: `CommitLog.submitFlushRequest`, `submitReplicaRequest`.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures._base import FINISHED
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Condition
from typing import Any, TypeVar

from tornpage.impl.config.policy import FlushPolicy
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.replication import ReplicaGate
from tornpage.impl.put.time_outs import Awaited, Request, TimeOuts
from tornpage.impl.service.runner import RunnerFactory

__all__ = ["LightFuture", "PendingAnswer", "PutAnswers"]

_LOG = logging.getLogger("tornpage.store")

_PUT_OK = PutStatus.PUT_OK  # a lookup of a member costs as much as a call
_DISK_TOO_LATE, _SLAVE_TOO_LATE = PutStatus.FLUSH_DISK_TIMEOUT, PutStatus.FLUSH_SLAVE_TIMEOUT
_GRACE_MS = 5_000
"""`DefaultMessageStore.putMessage` waits this much longer than the longer of both time-outs, in ms."""


Result = TypeVar("Result")


class LightFuture(Future[Result]):
    """A future that gets one result; it cannot be cancelled and never fails.

    It costs a quarter of a plain future while no thread waits for it. A plain one creates a condition, two locks and
    three bound methods at once. Here `result` and `exception` wait for an item of a queue, and only
    `concurrent.futures.wait` and `as_completed` need the condition, which is created at its first use. It relies on the
    attributes that `concurrent.futures.Future` has had since Python 3.2: `_condition`, `_state`, `_result`, `_waiters`,
    `_done_callbacks`.

    A waiter creates its queue, or the condition, and then reads the state. `set_result` sets the state and then looks
    for queues and condition. At least one of the two sees the other. Callbacks work in the same way: the thread that
    takes a callback from the list calls it. A queue takes no lock that an interrupted waiter could keep; a condition
    does, and `set_result` would wait for it in the thread that flushes.
    """

    _exception = None
    _created: Condition | None = None
    _sleepers: "list[SimpleQueue[None]] | None" = None

    def __init__(self) -> None:
        self._state = "PENDING"
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name != "_condition":
            raise AttributeError(name)
        return self.__dict__.setdefault("_created", Condition())  # several threads get the same one

    def cancel(self) -> bool:
        """Return False."""
        return False

    def cancelled(self) -> bool:
        """Return False."""
        return False

    def done(self) -> bool:
        """Return whether the result is known."""
        return self._state == FINISHED

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return None once the result is known. Raises TimeoutError after `timeout` seconds."""
        if self._state != FINISHED:
            self._wait(timeout)
        return None

    def _wait(self, timeout: float | None) -> None:
        """Wait until the result is known. Raises TimeoutError after `timeout` seconds."""
        sleeper: SimpleQueue[None] = SimpleQueue()
        sleepers = self.__dict__.setdefault("_sleepers", [])  # several threads get the same list
        sleepers.append(sleeper)
        if self._state != FINISHED:
            with suppress(Empty):
                sleeper.get(timeout=None if timeout is None else max(0, timeout))
        sleepers.remove(sleeper)
        if self._state != FINISHED:
            raise TimeoutError

    def add_done_callback(self, fn: Callable[[Future[Result]], object]) -> None:
        """Call a function with this future once the result is known, at once if it is."""
        self._done_callbacks.append(fn)
        if self._state == FINISHED:
            self._call_back()

    def _call_back(self) -> None:
        callbacks = self._done_callbacks
        while callbacks:
            try:
                callback = callbacks.pop(0)
            except IndexError:  # another thread took the last one
                return
            try:
                callback(self)
            except Exception:
                _LOG.exception("callback_failed")

    def result(self, timeout: float | None = None) -> Result:
        """Return the result once it is known. Raises TimeoutError after `timeout` seconds."""
        if self._state != FINISHED:
            self._wait(timeout)
        return self._result  # type: ignore[return-value]  # set before the state

    def set_result(self, result: Result) -> None:
        """Set the result, and wake waiting threads."""
        self._result = result
        self._state = FINISHED
        for sleeper in tuple(self._sleepers or ()):  # copied at once, since waiters add and remove theirs
            sleeper.put(None)
        condition = self._created
        if condition is not None:
            with condition:
                for waiter in self._waiters:
                    waiter.add_result(self)
                condition.notify_all()
        if self._done_callbacks:
            self._call_back()


class PendingAnswer(LightFuture[PutResult]):
    """The answer of one put that waits for one status, and the request for that status.

    `replica` replaces the awaited status unless it is PUT_OK. The answer cannot be cancelled, since the record is in
    the log. `on_answer` is called with the answer before waiting threads wake.
    """

    both: "_Both | None" = None
    """The two requests, if the put waits for flush and replica."""

    def __init__(
        self,
        result: PutResult,
        *,
        deadline_ms: int,
        timeout_status: PutStatus,
        on_answer: Callable[[PutResult], None],
        replica: PutStatus = _PUT_OK,
    ) -> None:
        self._state = "PENDING"  # as the class above does: a call of it would cost as much as the rest
        self._waiters = []
        self._done_callbacks = []
        self.end_offset = result.offset + result.size_bytes
        self.deadline_ms = deadline_ms
        self.timeout_status = timeout_status
        self._appended = result
        self._replica = replica
        self._on_answer = [on_answer]

    @property
    def is_answered(self) -> bool:
        """Whether the status is known."""
        return not self._on_answer

    def answer(self, status: PutStatus) -> None:
        """Set the status, unless it is known."""
        try:
            on_answer = self._on_answer.pop()  # one of several threads gets it
        except IndexError:
            return
        result = _with_status(self._appended, status if self._replica is _PUT_OK else self._replica)
        try:
            on_answer(result)
        except BaseException:
            _LOG.exception("count_failed")  # the put is answered nevertheless
        try:
            self.set_result(result)
        except BaseException:
            _LOG.exception("callback_failed")  # other puts wait for this thread

    def give_up(self) -> None:
        """Answer with the status of a time-out for everything unknown."""
        if self.both is None:
            self.answer(self.timeout_status)
        else:
            self.both.give_up()


class _Both:
    """The requests of a put that waits for flush and replica. The later status answers it."""

    def __init__(self, pending: PendingAnswer, *, replica_deadline_ms: int) -> None:
        self.flush = Awaited(
            self._flushed,
            end_offset=pending.end_offset,
            deadline_ms=pending.deadline_ms,
            timeout_status=_DISK_TOO_LATE,
        )
        self.replica = Awaited(
            self._replicated,
            end_offset=pending.end_offset,
            deadline_ms=replica_deadline_ms,
            timeout_status=_SLAVE_TOO_LATE,
        )
        self._pending = pending
        self._first_open = [None]
        self._flush_status = self._replica_status = _PUT_OK

    def _flushed(self, status: PutStatus) -> None:
        self._flush_status = status
        self._answer_if_last()

    def _replicated(self, status: PutStatus) -> None:
        self._replica_status = status
        self._answer_if_last()

    def _answer_if_last(self) -> None:
        try:
            self._first_open.pop()  # one of two threads gets it, the other one answers
        except IndexError:
            self._pending.answer(self._flush_status if self._replica_status is _PUT_OK else self._replica_status)

    def give_up(self) -> None:
        """Answer both requests with a time-out."""
        for request in (self.replica, self.flush):
            request.answer(request.timeout_status)


class PutAnswers:
    """Answers appended puts, and owns the services for flush and time-outs."""

    def __init__(
        self,
        *,
        flush_policy: FlushPolicy,
        group_commit: GroupCommit,
        time_outs: TimeOuts,
        runner: RunnerFactory,
        replica_gate: ReplicaGate,
        slave_timeout_ms: int,
    ) -> None:
        self._flush_timeout_ms = flush_policy.sync_flush_timeout
        self._replica_gate = replica_gate
        self._slave_timeout_ms = slave_timeout_ms
        self._group_commit = group_commit
        self._group_commit_runner = runner(group_commit)
        self._time_outs = time_outs
        self._time_outs_runner = runner(time_outs)
        self._is_synchronous = flush_policy.answers_after_flush(wait_store_msg_ok=True)

    def settle(
        self, result: PutResult, *, waits: bool, on_answer: Callable[[PutResult], None]
    ) -> PutResult | PendingAnswer:
        """Return the answer of an appended put, or a pending one.

        A pending answer calls `on_answer` when it is complete.
        """
        replica = self._replica_gate.status(result.offset + result.size_bytes, waits=waits)
        flushes = waits and self._is_synchronous
        if self._is_synchronous and not flushes:
            self._group_commit_runner.wake()
        if replica is not None and not flushes:
            return _with_status(result, replica)
        now_ms = self._time_outs_runner.now_ms()
        timeout_ms = self._flush_timeout_ms if flushes else self._slave_timeout_ms
        pending = PendingAnswer(
            result,
            deadline_ms=now_ms + timeout_ms,
            timeout_status=_DISK_TOO_LATE if flushes else _SLAVE_TOO_LATE,
            on_answer=on_answer,
            replica=replica or _PUT_OK,
        )
        if not flushes:
            self._replica_gate.request(pending)
            self._watch(pending, timeout_ms)
        elif replica is not None:
            self._await_flush(pending)
        else:
            both = pending.both = _Both(pending, replica_deadline_ms=now_ms + self._slave_timeout_ms)
            self._replica_gate.request(both.replica)
            self._watch(both.replica, self._slave_timeout_ms)
            self._await_flush(both.flush)
        return pending

    def _await_flush(self, request: Request) -> None:
        self._group_commit.submit(request)
        self._group_commit_runner.wake()
        self._watch(request, self._flush_timeout_ms)

    def _watch(self, request: Request, timeout_ms: int) -> None:
        """Register a time-out for a request; last, since after `finish` it is answered at once."""
        if self._time_outs.watch(request, timeout_ms):
            self._time_outs_runner.wake()

    def wait(self, pending: PendingAnswer) -> PutResult:
        """Return the answer once it is known.

        After every time-out has passed, answer with a time-out.
        """
        patience_ms = max(self._flush_timeout_ms, self._slave_timeout_ms) + _GRACE_MS
        if not self._group_commit_runner.wait(pending, timeout_ms=patience_ms):
            pending.give_up()
        return pending.result()

    def finish(self) -> None:
        """Answer every waiting put; no step of a service runs afterwards."""
        self._group_commit_runner.stop()
        self._group_commit.finish()
        self._time_outs_runner.stop()
        self._time_outs.finish()


def _with_status(result: PutResult, status: PutStatus) -> PutResult:
    return result if status is result.status else result._replace(status=status)
