"""What an appended put is answered, and when: after the disk, after a replica, or at once.

Both waits begin before either is awaited. A failed flush is FLUSH_DISK_TIMEOUT; an answer of the replication that is
not PUT_OK takes its place. Source: `CommitLog.submitFlushRequest`, `submitReplicaRequest`.
"""

from collections.abc import Callable
from concurrent.futures import Future, wait
from time import monotonic

from impl.group_commit import GroupCommit
from impl.message import PutResult, PutStatus
from impl.policy import FlushPolicy
from impl.replication import ReplicaGate, replica_status
from impl.runner import Runner

__all__ = ["PutAnswers"]


class PutAnswers:
    """Settles appended puts. `flush` tries to make all of the log durable and returns up to where it is."""

    def __init__(
        self,
        *,
        flush_policy: FlushPolicy,
        flush: Callable[[], int],
        group_commit: GroupCommit,
        group_commit_runner: Runner,
        replica_gate: ReplicaGate,
        slave_timeout_ms: int,
    ) -> None:
        self._flush_policy = flush_policy
        self._flush = flush
        self._group_commit = group_commit
        self._group_commit_runner = group_commit_runner
        self._replica_gate = replica_gate
        self._slave_timeout_s = slave_timeout_ms / 1000

    def settle(self, result: PutResult, *, waits: bool) -> PutResult:
        """Wait, in this thread, for what the answer of an appended put needs."""
        replica = self._replica_gate.request(result.offset + result.size_bytes, waits=waits)
        given_up_s = monotonic() + self._slave_timeout_s
        status = PutStatus.PUT_OK
        if self._flush_policy.answers_after_flush(wait_store_msg_ok=waits):
            status = self._after_flush(result)
        if isinstance(replica, Future):
            wait([replica], max(0.0, given_up_s - monotonic()))
            replica = _replica_status(replica)
        return _answer(result, status, replica)

    def _after_flush(self, result: PutResult) -> PutStatus:
        return self._flush_status(result, self._flush())

    @staticmethod
    def _flush_status(result: PutResult, flushed_offset: int) -> PutStatus:
        """Return what a flush means for a put: others may have made its records durable before one failed."""
        durable = flushed_offset >= result.offset + result.size_bytes
        return PutStatus.PUT_OK if durable else PutStatus.FLUSH_DISK_TIMEOUT

    def settle_async(self, result: PutResult, *, waits: bool) -> Future[PutResult]:
        """Return the answer of an appended put as a future; replicas answer it after their own time-out."""
        answer: Future[PutResult] = Future()
        answer.set_running_or_notify_cancel()  # it cannot be called back: the record is in the log
        replica = self._replica_gate.request(result.offset + result.size_bytes, waits=waits)

        def flushed(status: PutStatus) -> None:
            if isinstance(replica, Future):
                replica.add_done_callback(
                    lambda done: answer.set_result(_answer(result, status, _replica_status(done)))
                )
            else:
                answer.set_result(_answer(result, status, replica))

        if self._flush_policy.answers_after_flush(wait_store_msg_ok=waits):
            self._group_commit.submit().add_done_callback(
                lambda done: flushed(self._flush_status(result, done.result()))
            )
            self._group_commit_runner.wake()
        else:
            flushed(PutStatus.PUT_OK)
        return answer

    def finish(self) -> None:
        """Answer every put that still waits for the disk; no step of the service runs afterwards."""
        self._group_commit_runner.stop()
        self._group_commit.finish()


def _replica_status(request: Future[bool]) -> PutStatus:
    """Return the answer of a request; one that is not done, or that failed, is not confirmed."""
    answered = request.done() and not request.cancelled() and request.exception() is None
    return replica_status(answered and request.result())


def _answer(result: PutResult, flush: PutStatus, replica: PutStatus) -> PutResult:
    status = flush if replica is PutStatus.PUT_OK else replica
    return result if status is result.status else result._replace(status=status)
