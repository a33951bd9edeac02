"""What a put waits for, and the end of its patience. Source: `CommitLog.GroupCommitRequest`, `FlushDiskWatcher`."""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Protocol

from tornpage.impl.message.message import PutStatus

__all__ = ["Awaited", "Request", "TimeOuts"]

_LOG = logging.getLogger("tornpage.store")


class Request(Protocol):
    """A status that somebody will say, once: whoever comes second is not heard."""

    @property
    def end_offset(self) -> int:
        """Up to where the log has to be durable, or replicated, for a good status."""

    @property
    def deadline_ms(self) -> int:
        """When `too_late` is the status, in the time of the runner."""

    @property
    def too_late(self) -> PutStatus:
        """The status after the deadline."""

    @property
    def is_answered(self) -> bool:
        """Whether the status has been said."""

    def answer(self, status: PutStatus) -> None:
        """Say the status, unless it was said; nothing is raised."""


class Awaited:
    """A request that hands its status on to `say`."""

    __slots__ = ("_say", "deadline_ms", "end_offset", "too_late")

    def __init__(
        self, say: Callable[[PutStatus], None], *, end_offset: int, deadline_ms: int, too_late: PutStatus
    ) -> None:
        self._say = [say]
        self.end_offset = end_offset
        self.deadline_ms = deadline_ms
        self.too_late = too_late

    @property
    def is_answered(self) -> bool:
        """Whether it has been handed on."""
        return not self._say

    def answer(self, status: PutStatus) -> None:
        """Say the status, unless it was said; what a callback raises must not keep others waiting."""
        try:
            say = self._say.pop()  # one of several threads gets it
        except IndexError:
            return
        try:
            say(status)
        except BaseException:
            _LOG.exception("callback_failed")


class TimeOuts:
    """Answers what has waited for too long."""

    name = "time-outs"

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._watched: defaultdict[int, deque[Request]] = defaultdict(deque)
        self._due_ms: int | None = None
        self._finished = False

    def watch(self, request: Request, timeout_ms: int) -> bool:
        """Keep an eye on it; return whether the service has to be woken to know.

        Those with one length of time come in the order of their deadlines, and are kept together.
        """
        with self._guard:
            watched = self._watched[timeout_ms]
            while watched and watched[0].is_answered:
                watched.popleft()
            if not self._finished:
                watched.append(request)
                is_earliest = self._due_ms is None or request.deadline_ms < self._due_ms
                if is_earliest:
                    self._due_ms = request.deadline_ms
                return is_earliest
        request.answer(request.too_late)
        return False

    def step(self, now_ms: int) -> int | None:
        """Answer everything whose deadline has come; return the next deadline."""
        late: list[Request] = []
        with self._guard:
            for watched in self._watched.values():
                while watched and (watched[0].is_answered or watched[0].deadline_ms <= now_ms):
                    late.append(watched.popleft())
            self._due_ms = min((watched[0].deadline_ms for watched in self._watched.values() if watched), default=None)
        for request in late:
            request.answer(request.too_late)
        return self._due_ms

    def finish(self) -> None:
        """Answer everything that is watched still, and at once what is watched later: nobody comes to do it."""
        with self._guard:
            self._finished = True
            watched = [request for kind in self._watched.values() for request in kind]
            self._watched.clear()
        for request in watched:
            request.answer(request.too_late)
