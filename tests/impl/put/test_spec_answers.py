"""Test answers against RocketMQ 4.9.3: their order, fields of a refusal, and used-up time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, ScriptedReplicas, config_of, open_store
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_path import PutEntry
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.put.time_outs import Request
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags

DECLARED = (
    "PUT_OK",
    "FLUSH_DISK_TIMEOUT",
    "FLUSH_SLAVE_TIMEOUT",
    "SLAVE_NOT_AVAILABLE",
    "SERVICE_NOT_AVAILABLE",
    "CREATE_MAPEDFILE_FAILED",
    "MESSAGE_ILLEGAL",
    "PROPERTIES_SIZE_EXCEEDED",
    "OS_PAGECACHE_BUSY",
    "UNKNOWN_ERROR",
    "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
)
"""`PutMessageStatus`."""
NO_SERVICE, BUSY = PutStatus.SERVICE_NOT_AVAILABLE, PutStatus.OS_PAGECACHE_BUSY
REPLICATED = replace(config_of(sync=True), broker_role=BrokerRole.SYNC_MASTER, slave_timeout=0)


def test_statuses_are_declared_in_the_order_of_rocketmq() -> None:
    of_raft = ("NOT_LEADER", "OUTCOME_UNKNOWN")
    assert tuple(status.value for status in PutStatus) == DECLARED + of_raft
    assert tuple(status.name for status in PutStatus) == DECLARED + of_raft


@pytest.mark.parametrize("status", list(PutStatus)[4:], ids=lambda status: status.name)
def test_a_refusal_has_no_numbers(status: PutStatus) -> None:
    refused = PutResult(status)
    assert not refused.stored
    assert (refused.offset, refused.size_bytes, refused.queue_offset, refused.store_timestamp) == (-1, -1, -1, -1)
    assert (refused.message_count, refused.record_offsets, refused.message_id) == (0, (), "")


@pytest.mark.parametrize(
    ("held_ms", "role", "bits", "status"),
    [
        (None, BrokerRole.ASYNC_MASTER, 0, None),
        (0, BrokerRole.ASYNC_MASTER, 0, None),
        (1_000, BrokerRole.SYNC_MASTER, 0, None),
        (1_001, BrokerRole.SYNC_MASTER, 0, BUSY),
        (9_999_999, BrokerRole.ASYNC_MASTER, 0, BUSY),
        (10_000_000, BrokerRole.ASYNC_MASTER, 0, BUSY),
        (10_000_001, BrokerRole.ASYNC_MASTER, 0, BUSY),
        (-5_000, BrokerRole.ASYNC_MASTER, 0, None),
        (1_001, BrokerRole.SLAVE, 0, NO_SERVICE),
        (1_001, BrokerRole.ASYNC_MASTER, 16, NO_SERVICE),
        (1_001, BrokerRole.ASYNC_MASTER, 1, BUSY),
    ],
)
def test_lock_time_decides_last(held_ms: int | None, role: BrokerRole, bits: int, status: PutStatus | None) -> None:
    """A lock held for more than 10,000 s is busy here and free in RocketMQ."""
    flags = RunningFlags()
    flags.set(RunningFlag(bits))
    entry = PutEntry(role=role, flags=flags, busy_after_ms=1_000)
    begin_time_in_lock = 0 if held_ms is None else 1_700_000_000_000
    assert entry.refusal(now_ms=1_700_000_000_000 + (held_ms or 0), begin_time_in_lock=begin_time_in_lock) is status


@pytest.mark.parametrize(
    ("acknowledged", "confirms", "status"),
    [
        (0, True, PutStatus.PUT_OK),
        (0, False, PutStatus.FLUSH_SLAVE_TIMEOUT),
        (None, True, PutStatus.SLAVE_NOT_AVAILABLE),
    ],
)
def test_queue_offset_is_used_up_whatever_the_replica_answers(
    acknowledged: int | None, confirms: bool, status: PutStatus, tmp_path: Path
) -> None:
    replicas = ScriptedReplicas(acknowledged_offset=acknowledged, confirms=confirms)
    with open_store(tmp_path, config=REPLICATED, parts=Parts({make_replicas: lambda: replicas})) as store:
        results = [store.put(MESSAGE) for _ in range(3)]
        assert {result.status for result in results} == {status}
        assert [result.queue_offset for result in results] == [0, 1, 2]


def test_replica_is_asked_before_the_disk_is_waited_for(tmp_path: Path) -> None:
    """Both waits have begun before the first of them ends."""
    happened: list[str] = []

    class Noting(ScriptedReplicas):
        def request(self, request: Request) -> None:
            happened.append("replica")
            super().request(request)

    class NotingFiles(FaultyFiles):
        def _call(self, verb: str, path: str) -> None:
            super()._call(verb, path)
            if verb == "sync" and "commitlog" in path:
                happened.append("sync")

    replicas: Callable[[], ScriptedReplicas] = Noting
    with open_store(tmp_path, config=REPLICATED, files=NotingFiles(), parts=Parts({make_replicas: replicas})) as store:
        store.put(MESSAGE)
        happened.clear()
        assert store.put(MESSAGE).status is PutStatus.PUT_OK
        assert happened == ["replica", "sync"]
