"""Test the need of a replica's answer: the table of roles, and a replica too far back."""

import pytest

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import PutStatus
from tornpage.impl.put.replication import NoReplicas, ReplicaGate
from tornpage.impl.put.time_outs import Awaited, Request

BEHIND_MAX = 1_000


def awaited(answers: list[PutStatus]) -> Awaited:
    """Return a request of a put whose record ends at 10."""
    return Awaited(answers.append, end_offset=10, deadline_ms=0, timeout_status=PutStatus.FLUSH_SLAVE_TIMEOUT)


class FakeReplicas:
    """Replicas with a set acknowledged offset; they record each request."""

    def __init__(self, acknowledged_offset: int | None) -> None:
        self.acknowledged_offset = acknowledged_offset
        self.requests: list[Request] = []

    def request(self, request: Request) -> None:
        """Record it."""
        self.requests.append(request)


@pytest.mark.parametrize("acknowledged", [None, 0, 5_000])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("role", list(BrokerRole))
def test_only_a_synchronous_master_asks_and_only_for_those_who_wait(
    role: BrokerRole, waits: bool, acknowledged: int | None
) -> None:
    replicas = FakeReplicas(acknowledged)
    answer = ReplicaGate(role, replicas, fallbehind_max=BEHIND_MAX).status(5_000, waits=waits)
    if role is not BrokerRole.SYNC_MASTER or not waits:
        assert answer is PutStatus.PUT_OK
    elif acknowledged != 5_000:
        assert answer is PutStatus.SLAVE_NOT_AVAILABLE
    else:
        assert answer is None


@pytest.mark.parametrize(
    ("next_offset", "acknowledged", "asks"),
    [
        (5_000, 3_999, False),
        (5_000, 4_000, False),
        (5_000, 4_001, True),
        (5_000, 5_000, True),
        (5_000, 5_001, True),
        (999, 0, True),
        (1_000, 0, False),
    ],
)
def test_a_replica_so_far_behind_is_none(next_offset: int, acknowledged: int, asks: bool) -> None:
    replicas = FakeReplicas(acknowledged)
    gate = ReplicaGate(BrokerRole.SYNC_MASTER, replicas, fallbehind_max=BEHIND_MAX)
    answer = gate.status(next_offset, waits=True)
    assert answer is (None if asks else PutStatus.SLAVE_NOT_AVAILABLE)


def test_the_gate_looks_at_each_put() -> None:
    replicas = FakeReplicas(None)
    gate = ReplicaGate(BrokerRole.SYNC_MASTER, replicas, fallbehind_max=BEHIND_MAX)
    assert gate.status(10, waits=True) is PutStatus.SLAVE_NOT_AVAILABLE
    replicas.acknowledged_offset = 0
    assert gate.status(10, waits=True) is None
    replicas.acknowledged_offset = None
    assert gate.status(20, waits=True) is PutStatus.SLAVE_NOT_AVAILABLE


def test_the_gate_passes_a_request_on() -> None:
    replicas, request = FakeReplicas(0), awaited([])
    ReplicaGate(BrokerRole.SYNC_MASTER, replicas, fallbehind_max=BEHIND_MAX).request(request)
    assert replicas.requests == [request]


def test_without_replicas_there_is_none_and_a_request_is_given_up() -> None:
    none = NoReplicas()
    assert none.acknowledged_offset is None
    answers: list[PutStatus] = []
    none.request(awaited(answers))
    assert answers == [PutStatus.FLUSH_SLAVE_TIMEOUT]
    gate = ReplicaGate(BrokerRole.SYNC_MASTER, none, fallbehind_max=BEHIND_MAX)
    assert gate.status(10, waits=True) is PutStatus.SLAVE_NOT_AVAILABLE
    assert gate.status(10, waits=False) is PutStatus.PUT_OK
