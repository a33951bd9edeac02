"""Group commit: one flush answers every put that waits for the disk. Source: `CommitLog.GroupCommitService`."""

import threading
from collections.abc import Callable

from tornpage.impl.guards import MakeGuard
from tornpage.impl.message.message import PutStatus
from tornpage.impl.put.time_outs import Request

__all__ = ["GroupCommit"]

_PUT_OK, _DISK_TOO_LATE = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT  # looking members up costs as much as a call


class GroupCommit:
    """The requests of a synchronous store; `flush` makes all of the log durable and returns up to where it is.

    `guard` makes what guards the list of requests.

    RocketMQ tries a request twice, one file each time, so that one which lies further ahead times out at once; one
    flush of ours goes over all files.
    """

    name = "group-commit"

    def __init__(self, flush: Callable[[], int], *, guard: MakeGuard = threading.Lock) -> None:
        self._flush = flush
        self._guard = guard()
        self._waiting: list[Request] = []
        self._finished = False

    def submit(self, request: Request) -> None:
        """Have it answered by a flush that begins after this call."""
        with self._guard:
            self._waiting.append(request)
            finished = self._finished
        if finished:
            self._serve()

    def step(self, _now_ms: int) -> None:
        """Flush once and answer all that wait by then; puts that do not wait are flushed too."""
        self._serve()

    def _serve(self) -> None:
        with self._guard:
            served, self._waiting = self._waiting, []
        flushed_offset = 0
        try:
            flushed_offset = self._flush()
        finally:  # each request ends, whatever the flush does
            for request in served:
                # others may have made its records durable before one failed
                request.answer(_PUT_OK if flushed_offset >= request.end_offset else _DISK_TOO_LATE)

    def finish(self) -> None:
        """Answer all that wait; a request that comes later is answered by a flush of its own."""
        with self._guard:
            self._finished = True
        self._serve()
