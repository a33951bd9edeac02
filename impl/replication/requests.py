"""Puts that wait for replicas, and what the connected replicas have confirmed.

A request ends when enough replicas have confirmed its offset, at its deadline, or at the close of the store. A replica
counts once, however many links it has, and only while it is connected. RocketMQ keeps one offset for all peers of all
times, and lets requests wait one after the other (R18, R19 and R22).
Source: `GroupTransferService`.
"""

import threading
from bisect import insort
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from tornpage.impl.put.put_answers import LightFuture

__all__ = ["ReplicaRequests"]


class _Request(NamedTuple):
    offset: int
    number: int
    deadline_ms: int
    answer: "Future[bool]"


class ReplicaRequests:
    """Implements `impl.put.replication.Replicas`.

    `now_ms` is the monotonic time in milliseconds, `timeout_ms` the longest time a request waits, and
    `in_sync_replicas` the number of replicas that have to confirm it. `wake` is called after each new request, so that
    its bytes are sent at once. The methods may be called from several threads.
    """

    def __init__(self, now_ms: Callable[[], int], *, timeout_ms: int, in_sync_replicas: int) -> None:
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._in_sync_replicas = in_sync_replicas
        self._acknowledged: int | None = None
        self._confirmed: dict[bytes, int] = {}
        self._by_offset: deque[_Request] = deque()
        self._by_deadline: deque[_Request] = deque()
        self._count = 0
        self._closed = False
        self._guard = threading.Lock()
        self.wake: Callable[[], None] = lambda: None

    @property
    def acknowledged_offset(self) -> int | None:
        """The offset that enough connected replicas have confirmed; None if too few are connected."""
        return self._acknowledged

    @property
    def waiting(self) -> int:
        """The number of requests without an answer."""
        return sum(not each.answer.done() for each in self._by_deadline)

    def request(self, next_offset: int) -> "Future[bool]":
        """Return a future: True once enough replicas have everything below an offset."""
        answer: LightFuture[bool] = LightFuture()
        with self._guard:
            if not self._closed:
                self._count += 1
                request = _Request(next_offset, self._count, self._now_ms() + self._timeout_ms, answer)
                if self._by_offset and next_offset < self._by_offset[-1].offset:
                    insort(self._by_offset, request)  # another thread was faster after a later append
                else:
                    self._by_offset.append(request)
                self._by_deadline.append(request)
            acknowledged = self._acknowledged
        if self._closed:
            _end(answer, False)
        if acknowledged is not None and next_offset <= acknowledged:
            self._confirm()
        self.wake()
        return answer

    def note(self, replica: bytes, offset: int) -> None:
        """Note that a connected replica has confirmed everything below an offset."""
        with self._guard:
            self._confirmed[replica] = offset
            self._count_again()
        self._confirm()

    def forget(self, replica: bytes) -> None:
        """Note that a replica is not connected any more."""
        with self._guard:
            self._confirmed.pop(replica, None)
            self._count_again()

    def _count_again(self) -> None:
        offsets = sorted(self._confirmed.values(), reverse=True)
        is_enough = len(offsets) >= self._in_sync_replicas
        self._acknowledged = offsets[self._in_sync_replicas - 1] if is_enough else None

    def _confirm(self) -> None:
        done = []
        with self._guard:
            acknowledged = self._acknowledged
            while acknowledged is not None and self._by_offset and self._by_offset[0].offset <= acknowledged:
                done.append(self._by_offset.popleft().answer)
        for answer in done:
            _end(answer, True)

    def step(self, now_ms: int) -> int | None:
        """End each request whose deadline has passed; return the next deadline, or None."""
        late = []
        with self._guard:
            requests = self._by_deadline
            while requests and (requests[0].answer.done() or requests[0].deadline_ms <= now_ms):
                late.append(requests.popleft().answer)
            if late:
                self._by_offset = deque(each for each in self._by_offset if each.deadline_ms > now_ms)
            due_ms = requests[0].deadline_ms if requests else None
        for answer in late:
            _end(answer, False)
        return due_ms

    def forgo(self, offset: int) -> None:
        """End each request for an offset up to which the log was removed."""
        removed = []
        with self._guard:
            while self._by_offset and self._by_offset[0].offset <= offset:
                removed.append(self._by_offset.popleft().answer)
        for answer in removed:
            _end(answer, False)

    def close(self) -> None:
        """End all requests; a later one ends at once."""
        with self._guard:
            self._closed = True
            left = [each.answer for each in self._by_deadline]
            self._by_deadline.clear()
            self._by_offset.clear()
        for answer in left:
            _end(answer, False)


def _end(answer: "Future[bool]", value: bool) -> None:
    if not answer.done():
        answer.set_result(value)
