"""Test the need of a replica's answer: the table of roles, and a replica too far back."""

from concurrent.futures import Future

import pytest

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import PutStatus
from tornpage.impl.put.replication import NoReplicas, ReplicaGate, replica_status

BEHIND_MAX = 1_000


class FakeReplicas:
    """Replicas with a set acknowledged offset; they record each request."""

    def __init__(self, acknowledged_offset: int | None) -> None:
        self.acknowledged_offset = acknowledged_offset
        self.requests: list[int] = []
        self.future: Future[bool] = Future()

    def request(self, next_offset: int) -> Future[bool]:
        """Record it."""
        self.requests.append(next_offset)
        return self.future


@pytest.mark.parametrize("acknowledged", [None, 0, 5_000])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("role", list(BrokerRole))
def test_only_a_synchronous_master_asks_and_only_for_those_who_wait(
    role: BrokerRole, waits: bool, acknowledged: int | None
) -> None:
    replicas = FakeReplicas(acknowledged)
    answer = ReplicaGate(role, replicas, fallbehind_max=BEHIND_MAX).request(5_000, waits=waits)
    if role is not BrokerRole.SYNC_MASTER or not waits:
        assert answer is PutStatus.PUT_OK
    elif acknowledged != 5_000:
        assert answer is PutStatus.SLAVE_NOT_AVAILABLE
    else:
        assert answer is replicas.future
    assert replicas.requests == ([5_000] if isinstance(answer, Future) else [])


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
    answer = gate.request(next_offset, waits=True)
    assert answer is (replicas.future if asks else PutStatus.SLAVE_NOT_AVAILABLE)


def test_the_gate_looks_at_each_put() -> None:
    replicas = FakeReplicas(None)
    gate = ReplicaGate(BrokerRole.SYNC_MASTER, replicas, fallbehind_max=BEHIND_MAX)
    assert gate.request(10, waits=True) is PutStatus.SLAVE_NOT_AVAILABLE
    replicas.acknowledged_offset = 0
    assert gate.request(10, waits=True) is replicas.future
    replicas.acknowledged_offset = None
    assert gate.request(20, waits=True) is PutStatus.SLAVE_NOT_AVAILABLE


def test_without_replicas_there_is_none_and_a_request_is_given_up() -> None:
    none = NoReplicas()
    assert none.acknowledged_offset is None
    assert none.request(10).result(0) is False
    gate = ReplicaGate(BrokerRole.SYNC_MASTER, none, fallbehind_max=BEHIND_MAX)
    assert gate.request(10, waits=True) is PutStatus.SLAVE_NOT_AVAILABLE
    assert gate.request(10, waits=False) is PutStatus.PUT_OK


def test_what_the_end_of_a_request_is_answered_with() -> None:
    assert replica_status(True) is PutStatus.PUT_OK
    assert replica_status(False) is PutStatus.FLUSH_SLAVE_TIMEOUT
