"""A network in memory between members and the broker, with faults chosen by the case.

A request waits until the case lets it arrive, and so does its answer. The lab lets a request of any age arrive, loses
requests and answers, and lets a one-way request arrive several times. A request with an answer arrives at most once, as
over TCP. While the broker is down, a request that arrives ends as unreachable. A partition loses everything.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from tornpage.impl.consumer.connection import Call, CallError
from tornpage.impl.consumer.requests import Answer, MembersChanged, Pull, Refused, Request, UpdateOffset

__all__ = ["Handler", "RecordedConnection", "Sent"]

_SECOND_MS = 1_000


@dataclass(slots=True, eq=False)
class Sent:
    """One request under way, and its answer once the broker has given one.

    `call` is None for a one-way request. `sent_ms` is when it was sent, `handled_ms` when the broker handled it.
    """

    request: Request
    call: Call | None
    sent_ms: int
    answer: Answer | None = None
    handled_ms: int = 0
    is_parked: bool = False


Handler = Callable[["RecordedConnection", Sent], "Answer | Future[Answer] | None"]
"""Has the broker handle a request of a life. None means that the broker is down."""


@dataclass(slots=True, eq=False)
class RecordedConnection:
    """The connection of one life of a member.

    `requests` and `answers` wait to arrive, the oldest first. `held` are requests that the broker has not answered yet.
    `on_close` is called when the member ends the connection.
    """

    life: int
    client_id: str
    handle: Handler
    arrived: Callable[["RecordedConnection", Sent], None]
    read_notices: Callable[[str], Sequence[MembersChanged]]
    on_close: Callable[["RecordedConnection"], None]
    now_ms: Callable[[], int]
    requests: list[Sent] = field(default_factory=list)
    answers: list[Sent] = field(default_factory=list)
    held: list[tuple[Sent, Future[Answer]]] = field(default_factory=list)
    sent: dict[str, deque[int]] = field(default_factory=dict)
    """The times of requests within a second, by kind and queue."""
    refused: dict[Request, int] = field(default_factory=dict)
    """When a refusal of an update of progress arrived."""
    hasty: list[str] = field(default_factory=list)
    """Those that were repeated within a second after their refusal."""
    is_partitioned: bool = False
    is_closed: bool = False

    # ---- what a member sees --------------------------------------------------------------------------------------

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Send a request; its answer arrives in the returned call."""
        call = Call(request, deadline_ms=now_ms + timeout_ms)
        self._note(request, now_ms)
        self._note_repetition(request, now_ms)
        if self.is_closed:
            call.fail(CallError.UNREACHABLE)
        else:
            self.requests.append(Sent(request, call, now_ms))
        return call

    def notify(self, request: Request, *, now_ms: int) -> None:
        """Send a request without an answer."""
        self._note(request, now_ms)
        if not self.is_closed:
            self.requests.append(Sent(request, None, now_ms))

    def _note(self, request: Request, now_ms: int) -> None:
        """Note the time of a request that is no pull, by its kind and its queue or topic."""
        if isinstance(request, Pull):
            return
        about = getattr(request, "queue", None) or getattr(request, "topic", "")
        times = self.sent.setdefault(f"{type(request).__name__} {about}", deque())
        times.append(now_ms)
        while times[0] <= now_ms - _SECOND_MS:
            times.popleft()

    def _note_repetition(self, request: Request, now_ms: int) -> None:
        """Note a request that repeats an equal one too soon after its refusal."""
        if isinstance(request, UpdateOffset) and now_ms < self.refused.get(request, -_SECOND_MS) + _SECOND_MS:
            self.hasty.append(str(request))

    def notices(self) -> Sequence[MembersChanged]:
        """Return the notices that have arrived. A partition loses them."""
        found = () if self.is_closed else self.read_notices(self.client_id)
        return () if self.is_partitioned else found

    def watch(self, wake: Callable[[], None]) -> None:
        """Ignore it: the lab steps every member."""

    def close(self) -> None:
        """End the connection: everything sent before still arrives."""
        if not self.is_closed:
            self.is_closed = True
            self.on_close(self)

    # ---- what a case does ----------------------------------------------------------------------------------------

    def deliver_request(self, number: int, *, keeps: bool = False) -> bool:
        """Let one request arrive.

        A kept one-way request stays under way; return whether there was one.
        """
        if not self.requests:
            return False
        sent = self.requests[number % len(self.requests)]
        if not (keeps and sent.call is None):
            del self.requests[number % len(self.requests)]
        if self.is_partitioned:
            return True
        answer = self.handle(self, sent)
        sent.handled_ms = self.now_ms()
        if sent.call is None:
            return True
        if answer is None:
            sent.call.fail(CallError.UNREACHABLE)
        elif isinstance(answer, Future):
            self.held.append((sent, answer))
        else:
            sent.answer = answer
            self.answers.append(sent)
        return True

    def collect(self) -> None:
        """Move held requests that the broker has answered to the answers under way."""
        if not self.held:
            return
        for sent, answer in tuple(self.held):
            if answer.done():
                self.held.remove((sent, answer))
                if not answer.cancelled():
                    sent.answer, sent.handled_ms = answer.result(), self.now_ms()
                    self.answers.append(sent)

    def deliver_answer(self, number: int) -> bool:
        """Let one answer arrive; return whether there was one."""
        if not self.answers:
            return False
        sent = self.answers.pop(number % len(self.answers))
        if self.is_partitioned or self.is_closed:
            return True
        assert sent.call is not None
        assert sent.answer is not None
        if sent.call.outcome(self.now_ms()) is None:
            sent.call.settle(sent.answer)
            if isinstance(sent.answer, Refused) and isinstance(sent.request, UpdateOffset):
                self.refused[sent.request] = self.now_ms()
            self.arrived(self, sent)
        return True

    def lose_request(self, number: int) -> bool:
        """Lose one request; return whether there was one."""
        if self.requests:
            del self.requests[number % len(self.requests)]
            return True
        return False

    def lose_answer(self, number: int) -> bool:
        """Lose one answer; return whether there was one."""
        if self.answers:
            del self.answers[number % len(self.answers)]
            return True
        return False

    def park(self) -> bool:
        """Keep the one-way requests that are under way; return whether there is one."""
        for sent in self.requests:
            sent.is_parked = sent.is_parked or sent.call is None
        return any(sent.is_parked for sent in self.requests)

    def release(self) -> None:
        """End the partition, and let parked requests go on."""
        self.is_partitioned = False
        for sent in self.requests:
            sent.is_parked = False

    def deliver_all(self) -> bool:
        """Let every request and answer arrive that is under way and not parked.

        Return whether a call of the member was settled or has failed.
        """
        is_settled, place = False, 0
        while place < len(self.requests):
            sent = self.requests[place]
            if sent.is_parked:
                place += 1
                continue
            self.deliver_request(place)
            is_settled = is_settled or (sent.call is not None and sent.call.error is not None)
        self.collect()
        while self.answers:
            self.deliver_answer(0)
            is_settled = True
        return is_settled

    def drop(self) -> None:
        """Lose what is under way: the connection has ended. The broker gives held pulls up."""
        for _, answer in self.held:
            answer.cancel()
        self.broker_is_lost()

    def broker_is_lost(self) -> None:
        """Lose what is under way: the broker has died.

        Calls end as unreachable, one-way requests vanish.
        """
        for sent in (*self.requests, *self.answers, *(sent for sent, _ in self.held)):
            if sent.call is not None:
                sent.call.fail(CallError.UNREACHABLE)
        self.requests.clear()
        self.answers.clear()
        self.held.clear()
