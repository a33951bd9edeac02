"""Requests of waiting puts, and their time-outs.

Source: `CommitLog.GroupCommitRequest`, `FlushDiskWatcher`.
"""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Protocol

from tornpage.impl.message.message import PutStatus

__all__ = ["Awaited", "Request", "TimeOuts"]

_LOG = logging.getLogger("tornpage.store")


class Request(Protocol):
    """A request for one status. The first answer counts; later ones are ignored."""

    @property
    def end_offset(self) -> int:
        """The physical offset up to which the log must be durable, or replicated."""

    @property
    def deadline_ms(self) -> int:
        """When the request times out, in milliseconds of the runner's clock."""

    @property
    def timeout_status(self) -> PutStatus:
        """The status after a time-out."""

    @property
    def is_answered(self) -> bool:
        """Whether the request has its status."""

    def answer(self, status: PutStatus) -> None:
        """Set the status, unless it is set. Raises nothing."""


class Awaited:
    """A request that passes its status to `say`."""

    __slots__ = ("_say", "deadline_ms", "end_offset", "timeout_status")

    def __init__(
        self, say: Callable[[PutStatus], None], *, end_offset: int, deadline_ms: int, timeout_status: PutStatus
    ) -> None:
        self._say = [say]
        self.end_offset = end_offset
        self.deadline_ms = deadline_ms
        self.timeout_status = timeout_status

    @property
    def is_answered(self) -> bool:
        """Whether the status was passed on."""
        return not self._say

    def answer(self, status: PutStatus) -> None:
        """Pass the status on, unless that was done.

        An exception of the callback is logged, since other requests wait.
        """
        try:
            say = self._say.pop()  # only one thread gets it
        except IndexError:
            return
        try:
            say(status)
        except BaseException:
            _LOG.exception("callback_failed")


class TimeOuts:
    """Answers requests whose deadline has passed."""

    name = "time-outs"

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._watched: defaultdict[int, deque[Request]] = defaultdict(deque)
        self._due_ms: int | None = None
        self._finished = False

    def watch(self, request: Request, timeout_ms: int) -> bool:
        """Watch a request; return whether the service has to be woken for it.

        Requests with the same time-out arrive in the order of their deadlines, so they share a queue.
        """
        with self._guard:
            watched = self._watched[timeout_ms]
            while watched and watched[0].is_answered:
                watched.popleft()
            if not self._finished:
                watched.append(request)
                due_ms, deadline_ms = self._due_ms, request.deadline_ms
                if due_ms is not None and due_ms <= deadline_ms:
                    return False
                self._due_ms = deadline_ms
                return True
        request.answer(request.timeout_status)
        return False

    def step(self, now_ms: int) -> int | None:
        """Answer every request whose deadline has passed.

        Return the next deadline in milliseconds.
        """
        late: list[Request] = []
        with self._guard:
            for watched in self._watched.values():
                while watched and (watched[0].is_answered or watched[0].deadline_ms <= now_ms):
                    late.append(watched.popleft())
            self._due_ms = min((watched[0].deadline_ms for watched in self._watched.values() if watched), default=None)
        for request in late:
            request.answer(request.timeout_status)
        return self._due_ms

    def finish(self) -> None:
        """Answer every watched request.

        Later requests are answered at once, since no step runs any more.
        """
        with self._guard:
            self._finished = True
            watched = [request for kind in self._watched.values() for request in kind]
            self._watched.clear()
        for request in watched:
            request.answer(request.timeout_status)
