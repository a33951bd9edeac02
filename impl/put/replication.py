"""How a put waits for a replica. The network is hidden by `Replicas`."""

from typing import Protocol

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import PutStatus
from tornpage.impl.put.time_outs import Request

__all__ = ["NoReplicas", "ReplicaGate", "Replicas", "make_replicas"]


_PUT_OK = PutStatus.PUT_OK  # a lookup of a member costs as much as a call


class Replicas(Protocol):
    """The connected replicas of this log. Source: `HAService`, `GroupTransferService`."""

    @property
    def acknowledged_offset(self) -> int | None:
        """The highest physical offset that any replica has confirmed.

        It is None while none is connected.
        """

    def request(self, request: Request) -> None:
        """Answer a request with PUT_OK once a replica has everything below its `end_offset`.

        The answer may come during this call or in another thread. It is the status of a time-out of the request after
        the time-out of the replicas (`slaveTimeout`) and at shutdown. RocketMQ leaves requests unanswered at shutdown
        if it has not begun with them.
        """


class NoReplicas:
    """A store without replicas: every request fails at once."""

    @property
    def acknowledged_offset(self) -> int | None:
        """None, since no replica is connected."""
        return None

    def request(self, request: Request) -> None:
        """Answer with a time-out."""
        request.answer(request.timeout_status)


def make_replicas() -> Replicas:
    """Return the replicas of a store: none, unless `Parts` replaces this function."""
    return NoReplicas()


class ReplicaGate:
    """Decides whether a put waits for a replica.

    Source: `CommitLog.submitReplicaRequest`, `HAService.isSlaveOK`. `fallbehind_max` (`haSlaveFallbehindMax`) is in
    bytes: if the best replica lags by that much or more, no put waits. `request` is that of the replicas.
    """

    __slots__ = ("_fallbehind_max", "_replicas", "_synchronous", "request")

    def __init__(self, role: BrokerRole, replicas: Replicas, *, fallbehind_max: int) -> None:
        self._synchronous = role is BrokerRole.SYNC_MASTER
        self._replicas = replicas
        self._fallbehind_max = fallbehind_max
        self.request = replicas.request

    def status(self, end_offset: int, *, waits: bool) -> PutStatus | None:
        """Return the status of a put that waits for no replica, or None.

        None means that the put has to `request` a confirmation. `end_offset` is the end of the record in the log;
        `waits` is the producer's WAIT.
        """
        if not (waits and self._synchronous):
            return _PUT_OK
        acknowledged = self._replicas.acknowledged_offset
        if acknowledged is None or end_offset - acknowledged >= self._fallbehind_max:
            return PutStatus.SLAVE_NOT_AVAILABLE
        return None
