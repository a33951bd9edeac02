"""The broker's part of consumption, over one store."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from tornpage.impl.consumer.requests import Answer, MembersChanged, Request
from tornpage.impl.consumer.settings import BrokerSettings
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore

__all__ = ["ConsumerBroker"]


class ConsumerBroker:
    """Answers the requests of consumers. Usable from several threads.

    `now_ms` is the time of its start. The store belongs to the caller.
    """

    def __init__(
        self,
        store: MessageStore,
        settings: BrokerSettings | None = None,
        *,
        now_ms: int,
        parts: Parts | None = None,
    ) -> None:
        raise NotImplementedError

    def handle(self, request: Request, client_id: str, now_ms: int) -> Answer | Future[Answer]:
        """Carry out a request of a client and return its answer, a future for a held pull.

        Never raises for a request; `Refused` says why it was not carried out.
        """
        raise NotImplementedError

    def step(self, now_ms: int) -> int:
        """Remove clients whose heartbeat is too old; return when the next step is due."""
        raise NotImplementedError

    def notices(self, client_id: str) -> Sequence[MembersChanged]:
        """Return the notices for a client since the last call."""
        raise NotImplementedError

    def watch(self, client_id: str, wake: Callable[[], None]) -> None:
        """Have `wake` called after a notice for a client."""
        raise NotImplementedError

    def disconnect(self, client_id: str) -> None:
        """Remove a client from its groups, as its channel has closed. Its leases live on until they expire."""
        raise NotImplementedError
