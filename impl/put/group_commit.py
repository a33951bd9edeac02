"""Group commit: one flush answers all waiting synchronous puts.

Source: `CommitLog.GroupCommitService`.
"""

import threading
from collections.abc import Callable

from tornpage.impl.guards import MakeGuard
from tornpage.impl.message.message import PutStatus
from tornpage.impl.put.time_outs import Request

__all__ = ["GroupCommit"]

_PUT_OK, _DISK_TOO_LATE = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT  # a lookup of a member costs as much as a call


class GroupCommit:
    """The waiting puts of a synchronous store.

    `flush` flushes the whole log and returns the flushed offset. `guard` creates the lock of the list of requests.

    RocketMQ tries a request twice and flushes one file each time, so a request for a later file times out at once. Here
    one flush covers all files.
    """

    name = "group-commit"

    def __init__(self, flush: Callable[[], int], *, guard: MakeGuard = threading.Lock) -> None:
        self._flush = flush
        self._guard = guard()
        self._waiting: list[Request] = []
        self._finished = False

    def submit(self, request: Request) -> None:
        """Let a flush that begins after this call answer a request."""
        with self._guard:
            self._waiting.append(request)
            finished = self._finished
        if finished:
            self._serve()

    def step(self, _now_ms: int) -> None:
        """Flush once and answer all requests submitted before.

        Puts that do not wait are flushed too.
        """
        self._serve()

    def _serve(self) -> None:
        with self._guard:
            served, self._waiting = self._waiting, []
        flushed_offset = 0
        try:
            flushed_offset = self._flush()
        finally:  # each request is answered even if the flush fails
            for request in served:
                # an earlier flush may have made its records durable
                request.answer(_PUT_OK if flushed_offset >= request.end_offset else _DISK_TOO_LATE)

    def finish(self) -> None:
        """Answer all waiting requests; a later request gets a flush of its own."""
        with self._guard:
            self._finished = True
        self._serve()
