"""The answer of an appended put: after the flush, after a replica, or at once.

The waits for flush and replica begin together. A flush that fails or is late gives FLUSH_DISK_TIMEOUT. A replication
status other than PUT_OK replaces it. Source: `CommitLog.submitFlushRequest`, `submitReplicaRequest`.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures._base import FINISHED
from threading import Condition
from typing import Any, TypeVar

from tornpage.impl.config.policy import FlushPolicy
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.replication import ReplicaGate, replica_status
from tornpage.impl.put.time_outs import Awaited, Request, TimeOuts
from tornpage.impl.service.runner import RunnerFactory

__all__ = ["LightFuture", "PendingAnswer", "PutAnswers"]

_LOG = logging.getLogger("tornpage.store")

_PUT_OK = PutStatus.PUT_OK  # a lookup of a member costs as much as a call
_GRACE_MS = 5_000
"""`DefaultMessageStore.putMessage` waits this much longer than the longer of both time-outs, in ms."""


Result = TypeVar("Result")


class LightFuture(Future[Result]):
    """A future that gets one result; it cannot be cancelled and never fails.

    It costs a quarter of a plain future while no thread waits for it. A plain one creates a condition, two locks and
    three bound methods at once; this one creates its condition at its first use. It relies on the attributes that
    `concurrent.futures.Future` has had since Python 3.2: `_condition`, `_state`, `_result`, `_waiters`,
    `_done_callbacks`.

    A waiter creates the condition and then reads the state. `set_result` sets the state and then looks for the
    condition. At least one of the two sees the other. Callbacks work in the same way without a condition: the thread
    that takes a callback from the list calls it.
    """

    _exception = None

    def __init__(self) -> None:
        self._state = "PENDING"
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name != "_condition":
            raise AttributeError(name)
        return self.__dict__.setdefault(name, Condition())  # several threads get the same one

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
        return None if self._state == FINISHED else super().exception(timeout)

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
        if self._state == FINISHED:
            return self._result  # type: ignore[return-value]  # set before the state
        return super().result(timeout)

    def set_result(self, result: Result) -> None:
        """Set the result, and wake waiting threads."""
        self._result = result
        self._state = FINISHED
        if "_condition" in self.__dict__:
            with self._condition:
                for waiter in self._waiters:
                    waiter.add_result(self)
                self._condition.notify_all()
        self._call_back()


class PendingAnswer(LightFuture[PutResult]):
    """The answer of one put, complete once the statuses of flush and replica are known.

    A status is None while it is unknown. Group commit and the time-outs see it as the request for the status of the
    flush. It cannot be cancelled, since the record is in the log. `on_answer` is called with the answer before waiting
    threads wake.
    """

    timeout_status = PutStatus.FLUSH_DISK_TIMEOUT

    def __init__(
        self,
        result: PutResult,
        *,
        flush: PutStatus | None,
        replica: PutStatus | None,
        deadline_ms: int,
        on_answer: Callable[[PutResult], None],
    ) -> None:
        super().__init__()
        self.end_offset = result.offset + result.size_bytes
        self.deadline_ms = deadline_ms
        self.replica: Awaited | None = None
        self._appended = result
        self._flush = flush
        self._replica = replica
        self._on_answer = on_answer
        self._flush_open = [None] if flush is None else []
        self._first_open = [None] if flush is None and replica is None else None

    @property
    def is_answered(self) -> bool:
        """Whether the status of the flush is known."""
        return not self._flush_open

    def answer(self, status: PutStatus) -> None:
        """Set the status of the flush, unless it is known."""
        try:
            self._flush_open.pop()  # one of several threads gets it
        except IndexError:
            return
        self._flush = status
        self._answer_if_last()

    def replicated(self, status: PutStatus) -> None:
        """Set the status of the replica; called once."""
        self._replica = status
        self._answer_if_last()

    def give_up(self) -> None:
        """Answer with the status of a time-out for everything unknown."""
        if self.replica is not None:
            self.replica.answer(self.replica.timeout_status)
        self.answer(self.timeout_status)

    def _answer_if_last(self) -> None:
        if self._first_open is not None:
            try:
                self._first_open.pop()  # one of two threads gets it, the other one answers
            except IndexError:
                pass
            else:
                return
        status = self._flush if self._replica is _PUT_OK else self._replica
        assert status is not None
        result = _with_status(self._appended, status)
        try:
            self._on_answer(result)
        except BaseException:
            _LOG.exception("count_failed")  # the put is answered nevertheless
        try:
            self.set_result(result)
        except BaseException:
            _LOG.exception("callback_failed")  # other puts wait for this thread


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
        replica = self._replica_gate.request(result.offset + result.size_bytes, waits=waits)
        flushes = waits and self._is_synchronous
        if not flushes:
            if self._is_synchronous:
                self._group_commit_runner.wake()
            if isinstance(replica, PutStatus):
                return _with_status(result, replica)
        pending = PendingAnswer(
            result,
            flush=None if flushes else _PUT_OK,
            replica=replica if isinstance(replica, PutStatus) else None,
            deadline_ms=self._time_outs_runner.now_ms() + self._flush_timeout_ms,
            on_answer=on_answer,
        )
        if isinstance(replica, Future):
            self._await_replica(pending, replica)
        if flushes:
            self._group_commit.submit(pending)
            self._group_commit_runner.wake()
            self._watch(pending, self._flush_timeout_ms)
        return pending

    def _await_replica(self, pending: PendingAnswer, replica: Future[bool]) -> None:
        awaited = pending.replica = Awaited(
            pending.replicated,
            end_offset=pending.end_offset,
            deadline_ms=self._time_outs_runner.now_ms() + self._slave_timeout_ms,
            timeout_status=PutStatus.FLUSH_SLAVE_TIMEOUT,
        )
        replica.add_done_callback(lambda done: awaited.answer(_replica_status(done)))
        self._watch(awaited, self._slave_timeout_ms)

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


def _replica_status(request: Future[bool]) -> PutStatus:
    """Return the status of a request; a cancelled or failed one is not confirmed."""
    answered = request.done() and not request.cancelled() and request.exception() is None
    return replica_status(answered and request.result())


def _with_status(result: PutResult, status: PutStatus) -> PutResult:
    return result if status is result.status else result._replace(status=status)
