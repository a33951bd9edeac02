"""Puts that wait for replicas, and what the connected replicas have confirmed.

A request ends when enough replicas have confirmed its offset, at its deadline, or at the close of the store. A replica
counts once, however many links it has, and only while it is connected. RocketMQ keeps one offset for all peers of all
times, and lets requests wait one after the other (R18, R19 and R22).
Source: `GroupTransferService`.
"""

import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter

from tornpage.impl.message.message import PutStatus
from tornpage.impl.put.time_outs import Request

__all__ = ["ReplicaRequests"]

_PUT_OK = PutStatus.PUT_OK  # a lookup of a member costs as much as a call
_OFFSET_OF = itemgetter(0)


class ReplicaRequests:
    """Implements `impl.put.replication.Replicas`.

    `now_ms` is the monotonic time in milliseconds, `timeout_ms` the longest time a request waits, and
    `in_sync_replicas` the number of replicas that have to confirm it. `wake` is called after each new request that ends
    at or past `wake_offset`, so that its bytes are sent at once. A step that lowers `wake_offset` then looks at the log
    again, so that no put is missed. The methods may be called from several threads.
    """

    def __init__(self, now_ms: Callable[[], int], *, timeout_ms: int, in_sync_replicas: int) -> None:
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._in_sync_replicas = in_sync_replicas
        self._acknowledged: int | None = None
        self._confirmed: dict[bytes, int] = {}
        self._waiting: deque[tuple[int, int, Request]] = deque()  # offset, deadline and request, in order of offsets
        self._due_ms: int | None = None  # no deadline is earlier
        self._closed = False
        self._guard = threading.Lock()
        self.wake: Callable[[], None] = lambda: None
        self.wake_offset = 0

    @property
    def acknowledged_offset(self) -> int | None:
        """The offset that enough connected replicas have confirmed; None if too few are connected."""
        return self._acknowledged

    @property
    def waiting(self) -> int:
        """The number of requests without an answer."""
        with self._guard:
            return sum(not request.is_answered for _, _, request in self._waiting)

    def end_from(self, offset: int) -> int | None:
        """Return the end of the first request at or past an offset, None without one."""
        with self._guard:
            at = bisect_left(self._waiting, offset, key=_OFFSET_OF)
            return self._waiting[at][0] if at < len(self._waiting) else None

    def request(self, request: Request) -> None:
        """Answer a request once enough replicas have everything below its end."""
        end_offset, deadline_ms = request.end_offset, self._now_ms() + self._timeout_ms
        with self._guard:
            closed, waiting = self._closed, self._waiting
            if not closed:
                if waiting and end_offset < waiting[-1][0]:  # another thread was faster after a later append
                    insort(waiting, (end_offset, deadline_ms, request), key=_OFFSET_OF)
                else:
                    waiting.append((end_offset, deadline_ms, request))
                if self._due_ms is None:
                    self._due_ms = deadline_ms
            confirmed = () if closed else self._take_confirmed(end_offset)
        if closed:
            request.answer(request.timeout_status)
        _confirm(confirmed)
        if end_offset >= self.wake_offset:
            self.wake()

    def note(self, replica: bytes, offset: int) -> None:
        """Note that a connected replica has confirmed everything below an offset."""
        with self._guard:
            self._confirmed[replica] = offset
            self._count_again()
            confirmed = self._take_confirmed()
        _confirm(confirmed)

    def forget(self, replica: bytes) -> None:
        """Note that a replica is not connected any more."""
        with self._guard:
            self._confirmed.pop(replica, None)
            self._count_again()

    def _count_again(self) -> None:
        offsets = sorted(self._confirmed.values(), reverse=True)
        is_enough = len(offsets) >= self._in_sync_replicas
        self._acknowledged = offsets[self._in_sync_replicas - 1] if is_enough else None

    def _take_confirmed(self, end_offset: int = 0) -> Sequence[Request]:
        """Remove and return the requests that enough replicas have confirmed.

        There are none if they have not confirmed `end_offset`. Needs the lock. A replica that another thread
        forgets afterwards has confirmed them all the same.
        """
        acknowledged = self._acknowledged
        return () if acknowledged is None or end_offset > acknowledged else self._taken_up_to(acknowledged)

    def _taken_up_to(self, offset: int) -> list[Request]:
        """Remove and return the requests up to an offset, in their order. Needs the lock."""
        taken, waiting = [], self._waiting
        while waiting and waiting[0][0] <= offset:
            taken.append(waiting.popleft()[2])
        return taken

    def step(self, now_ms: int) -> int | None:
        """End each request whose deadline has passed.

        Return a time before which no other deadline passes, None without a request.
        """
        due_ms = self._due_ms  # read once, since a close removes it
        if due_ms is None or now_ms < due_ms:
            return due_ms
        with self._guard:
            late = [request for _, deadline_ms, request in self._waiting if deadline_ms <= now_ms]
            self._waiting = deque(each for each in self._waiting if each[1] > now_ms)
            self._due_ms = min((deadline_ms for _, deadline_ms, _ in self._waiting), default=None)
        _end(late)
        return self._due_ms

    def forgo(self, offset: int) -> None:
        """End each request for an offset up to which the log was removed."""
        if self._waiting:
            with self._guard:
                removed = self._taken_up_to(offset)
            _end(removed)

    def close(self) -> None:
        """End all requests; a later one ends at once."""
        with self._guard:
            self._closed = True
            left = [request for _, _, request in self._waiting]
            self._waiting.clear()
            self._due_ms = None
        _end(left)


def _confirm(requests: Sequence[Request]) -> None:
    for request in requests:
        request.answer(_PUT_OK)


def _end(requests: list[Request]) -> None:
    for request in requests:
        request.answer(request.timeout_status)
