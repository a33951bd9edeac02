"""The connection of a client to a broker: calls and their answers.

An answer may come late, twice or never. The library polls its calls in `step`, and forgets a call after its
deadline. The lab has a recorded network with this interface. `DirectConnection` reaches a broker in the same process.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from tornpage.impl.consumer.requests import Answer, MembersChanged, Request

if TYPE_CHECKING:
    from tornpage.impl.consumer.broker import ConsumerBroker

__all__ = ["Call", "CallError", "Connection", "DirectConnection"]


class CallError(Enum):
    """Why a call has no answer. The broker may have carried out the request."""

    TIMED_OUT = "TIMED_OUT"
    UNREACHABLE = "UNREACHABLE"


class Call:
    """One request and what is known of its answer.

    The first of `settle`, `fail` and the deadline counts; later ones change nothing. `settle` and `fail` may be called
    in any thread.
    """

    __slots__ = ("_outcome", "deadline_ms", "request")

    def __init__(self, request: Request, *, deadline_ms: int) -> None:
        self.request = request
        self.deadline_ms = deadline_ms
        self._outcome: Answer | CallError | None = None

    @property
    def answer(self) -> Answer | None:
        """The answer, None before it arrives and after an error."""
        return None if isinstance(self._outcome, CallError) else self._outcome

    @property
    def error(self) -> CallError | None:
        """The error, None without one."""
        return self._outcome if isinstance(self._outcome, CallError) else None

    def outcome(self, now_ms: int) -> Answer | CallError | None:
        """Return the answer or the error; None while the call waits.

        From the deadline on, a call without an answer has timed out.
        """
        if self._outcome is None and now_ms >= self.deadline_ms:
            self._outcome = CallError.TIMED_OUT
        return self._outcome

    def settle(self, answer: Answer) -> None:
        """Note the arrival of an answer."""
        if self._outcome is None:
            self._outcome = answer

    def fail(self, error: CallError) -> None:
        """Note that no answer will arrive."""
        if self._outcome is None:
            self._outcome = error


class Connection(Protocol):
    """The way from one client to one broker. Nothing here blocks or raises."""

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Send a request; its answer arrives in the returned call."""

    def notify(self, request: Request, *, now_ms: int) -> None:
        """Send a request without an answer.

        It may be lost, delayed, repeated, or overtaken by later ones.
        """

    def notices(self) -> Sequence[MembersChanged]:
        """Return the notices of the broker that have arrived since the last call of this method."""

    def watch(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, in any thread, after an answer or a notice has arrived.

        A caller that steps the client by itself does not need it.
        """

    def close(self) -> None:
        """End the connection; the broker removes the client from its groups. Idempotent."""


class DirectConnection:
    """A connection to a broker in the same process.

    Every answer but that of a held pull arrives at once.
    """

    def __init__(self, broker: "ConsumerBroker", client_id: str) -> None:
        self._broker = broker
        self._client_id = client_id
        self._wake: Callable[[], None] = _nothing
        self._held: set[Future[Answer]] = set()
        self._is_closed = False

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Have the broker handle a request."""
        call = Call(request, deadline_ms=now_ms + timeout_ms)
        if self._is_closed:
            call.fail(CallError.UNREACHABLE)
            return call
        answer = self._broker.handle(request, self._client_id, now_ms)
        if isinstance(answer, Future):
            self._hold(call, answer)
        else:
            call.settle(answer)
        return call

    def _hold(self, call: Call, held: Future[Answer]) -> None:
        self._held.add(held)

        def arrived(answer: Future[Answer]) -> None:
            self._held.discard(answer)
            if answer.cancelled():
                call.fail(CallError.UNREACHABLE)
            else:
                call.settle(answer.result())
            self._wake()

        held.add_done_callback(arrived)

    def notify(self, request: Request, *, now_ms: int) -> None:
        """Have the broker handle a request, and ignore the answer."""
        if not self._is_closed:
            self._broker.handle(request, self._client_id, now_ms)

    def notices(self) -> Sequence[MembersChanged]:
        """Return the notices of the broker."""
        return () if self._is_closed else self._broker.notices(self._client_id)

    def watch(self, wake: Callable[[], None]) -> None:
        """Have `wake` called after the answer of a held pull, and after a notice."""
        self._wake = wake
        self._broker.watch(self._client_id, wake)

    def close(self) -> None:
        """End the connection and its held pulls."""
        if not self._is_closed:
            self._is_closed = True
            for held in tuple(self._held):
                held.cancel()
            self._broker.disconnect(self._client_id)


def _nothing() -> None:
    """Wake no thread: the caller steps the client."""
