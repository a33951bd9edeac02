"""Keep the puts of a leader until their outcomes are known, or cannot be known any more.

A put is decided once its entries are committed, or once its leader loses its role.
"""

from collections import deque

from tornpage.impl.message.message import PutStatus
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.put.time_outs import Request

__all__ = ["AppendedPut", "AppendedPuts", "Decided"]


class AppendedPut:
    """One put whose entries are in the log of the leader, up to the physical offset `end`.

    It has reserved the numbers from `number` on in a queue; `key` is None for a message that no queue takes. `status`
    is known at the latest when the leader loses its role.
    """

    __slots__ = ("end", "key", "number", "request", "status")

    def __init__(self, end: int, key: QueueKey | None, number: int) -> None:
        self.end = end
        self.key = key
        self.number = number
        self.status: PutStatus | None = None
        self.request: Request | None = None


Decided = list[tuple[Request, PutStatus]]
"""Requests and their answers. Give them without the lock, since callbacks run then."""


class AppendedPuts:
    """The undecided puts of one leadership, in log order. The lock of the member guards it."""

    def __init__(self) -> None:
        self._undecided: deque[AppendedPut] = deque()

    def add(self, put: AppendedPut) -> None:
        """Add a put whose entries were appended."""
        self._undecided.append(put)

    def attach(self, put: AppendedPut, request: Request) -> PutStatus | None:
        """Let a request wait for a put; return the status if it is known already."""
        put.request = request
        return put.status

    def committed(self, end: int) -> Decided:
        """Decide the puts whose entries are committed and durable up to a physical offset."""
        decided = []
        while self._undecided and self._undecided[0].end <= end:
            decided.append(self._undecided.popleft())
        return self._decided(decided, PutStatus.PUT_OK)

    def give_up(self) -> Decided:
        """Decide all puts as unknown: the next leader keeps their entries or cuts them."""
        decided = list(self._undecided)
        self._undecided.clear()
        return self._decided(decided, PutStatus.OUTCOME_UNKNOWN)

    @staticmethod
    def _decided(puts: list[AppendedPut], status: PutStatus) -> Decided:
        for put in puts:
            put.status = status
        return [(put.request, status) for put in puts if put.request is not None]
