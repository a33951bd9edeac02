"""How a put waits for a replica. The network is hidden by `Replicas`."""

from concurrent.futures import Future
from typing import Protocol

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import PutStatus

__all__ = ["NoReplicas", "ReplicaGate", "Replicas", "make_replicas", "replica_status"]


_PUT_OK = PutStatus.PUT_OK  # a lookup of a member costs as much as a call


class Replicas(Protocol):
    """The connected replicas of this log. Source: `HAService`, `GroupTransferService`."""

    @property
    def acknowledged_offset(self) -> int | None:
        """The highest physical offset that any replica has confirmed.

        It is None while none is connected.
        """

    def request(self, next_offset: int) -> Future[bool]:
        """Return a future that becomes True once a replica has everything below an offset.

        It becomes False on a time-out. Each request ends after the time-out of the replicas (`slaveTimeout`) or at
        shutdown. RocketMQ leaves requests unanswered at shutdown if it has not begun with them.
        """


class NoReplicas:
    """A store without replicas: every request fails at once."""

    @property
    def acknowledged_offset(self) -> int | None:
        """None, since no replica is connected."""
        return None

    def request(self, next_offset: int) -> Future[bool]:
        """Return a future that is False."""
        given_up: Future[bool] = Future()
        given_up.set_result(False)
        return given_up


def make_replicas() -> Replicas:
    """Return the replicas of a store: none, unless `Parts` replaces this function."""
    return NoReplicas()


def replica_status(confirmed: bool) -> PutStatus:
    """Return the status of a confirmed or failed request."""
    return PutStatus.PUT_OK if confirmed else PutStatus.FLUSH_SLAVE_TIMEOUT


class ReplicaGate:
    """Decides whether a put waits for a replica.

    Source: `CommitLog.submitReplicaRequest`, `HAService.isSlaveOK`. `fallbehind_max` (`haSlaveFallbehindMax`) is in
    bytes: if the best replica lags by that much or more, no put waits.
    """

    __slots__ = ("_fallbehind_max", "_replicas", "_synchronous")

    def __init__(self, role: BrokerRole, replicas: Replicas, *, fallbehind_max: int) -> None:
        self._synchronous = role is BrokerRole.SYNC_MASTER
        self._replicas = replicas
        self._fallbehind_max = fallbehind_max

    def request(self, next_offset: int, *, waits: bool) -> PutStatus | Future[bool]:
        """Return the status if it is known at once, else a future of it (see `replica_status`).

        `next_offset` is the end of the record in the log; `waits` is the producer's WAIT.
        """
        if not (waits and self._synchronous):
            return _PUT_OK
        acknowledged = self._replicas.acknowledged_offset
        if acknowledged is None or next_offset - acknowledged >= self._fallbehind_max:
            return PutStatus.SLAVE_NOT_AVAILABLE
        return self._replicas.request(next_offset)
