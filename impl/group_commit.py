"""Group commit: one flush answers every put that waits for the disk.

A put that waits in its own thread needs no request: it flushes, and the flush of another that covered its record makes
its own a matter of one comparison. Puts that were handed a future wait here. Source: `CommitLog.GroupCommitService`.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

__all__ = ["GroupCommit"]

_LOG = logging.getLogger("tornpage.store")


class GroupCommit:
    """The requests of `put_async` on a synchronous store; `flush` returns the offset up to which the log is durable."""

    def __init__(self, flush: Callable[[], int]) -> None:
        self._flush = flush
        self._guard = threading.Lock()
        self._waiting: list[Future[int]] = []
        self._finished = False

    def submit(self) -> Future[int]:
        """Return what a later step answers: how far the log is durable after a flush that began after this call."""
        request: Future[int] = Future()
        with self._guard:
            finished = self._finished
            if not finished:
                self._waiting.append(request)
        if finished:
            request.set_result(self._flush())
        return request

    def finish(self) -> None:
        """Answer all that wait; a request that comes later is answered by a flush of its own."""
        with self._guard:
            self._finished = True
        self.step()

    def step(self) -> None:
        """Flush once and answer all that wait by then; each request ends, whatever the flush does."""
        with self._guard:
            served, self._waiting = self._waiting, []
        if not served:
            return
        flushed_offset = 0
        try:
            flushed_offset = self._flush()
        finally:
            for request in served:
                _answer(request, flushed_offset)


def _answer(request: Future[int], flushed_offset: int) -> None:
    """Answer one request; what its callbacks raise must not keep the others waiting."""
    try:
        request.set_result(flushed_offset)
    except BaseException:
        _LOG.exception("callback_failed")
