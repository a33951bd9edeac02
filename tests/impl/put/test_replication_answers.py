"""Test answers of a synchronous master: disk and replica together, waiting or not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, ScriptedReplicas, config_of, open_store, put
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

OK, DISK = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT
SLAVE, MISSING = PutStatus.FLUSH_SLAVE_TIMEOUT, PutStatus.SLAVE_NOT_AVAILABLE
REPLICAS: dict[str, tuple[int | None, bool, PutStatus]] = {
    "confirms": (0, True, OK),
    "refuses": (0, False, SLAVE),
    "missing": (None, True, MISSING),
}
"""Acknowledged offset, confirmation, and the status of these alone."""


def opened(
    directory: Path, replicas: ScriptedReplicas, *, sync: bool, role: BrokerRole, files: FaultyFiles | None = None
) -> tuple[MessageStore, HandRunner]:
    runner = HandRunner()
    config = replace(config_of(sync=sync), broker_role=role, slave_timeout=0)
    parts = Parts({make_replicas: lambda: replicas, ThreadRunner: runner})
    return open_store(directory, config=config, files=files, parts=parts), runner


def answered(store: MessageStore, runner: HandRunner, message: Message | MessageBatch, *, later: bool) -> PutResult:
    if not later:
        return put(store, message)
    answer = store.put_async(message)
    if runner["group-commit"].wakes:
        runner.step()
    return answer.result(timeout=0)


@pytest.mark.parametrize("later", [False, True], ids=["put", "put_async"])
@pytest.mark.parametrize("message", [MESSAGE, batch_of(b"one", b"two")], ids=["message", "batch"])
@pytest.mark.parametrize("replica", REPLICAS)
@pytest.mark.parametrize(("sync", "fails"), [(False, False), (True, False), (True, True)])
def test_disk_and_replica_are_answered_together(
    sync: bool, fails: bool, replica: str, message: Message | MessageBatch, later: bool, tmp_path: Path
) -> None:
    acknowledged, confirms, alone = REPLICAS[replica]
    replicas = ScriptedReplicas(acknowledged_offset=acknowledged, confirms=confirms)
    files = FaultyFiles()
    store, runner = opened(tmp_path, replicas, sync=sync, role=BrokerRole.SYNC_MASTER, files=files)
    with store:
        if fails:
            files.fail("sync", part="commitlog", skip=1)
        result = answered(store, runner, message, later=later)
        assert result.status is (alone if alone is not OK else DISK if fails else OK)
        assert result.stored
        assert (store.read_only_reason is not None) is fails
        assert store.flushed_offset == (result.size_bytes if sync and not fails else 0)
        asked = [] if acknowledged is None else [result.size_bytes]
        assert [request.end_offset for request in replicas.requests] == asked


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("replica", REPLICAS)
def test_who_does_not_wait_hears_neither(replica: str, sync: bool, later: bool, tmp_path: Path) -> None:
    acknowledged, confirms, _ = REPLICAS[replica]
    replicas = ScriptedReplicas(acknowledged_offset=acknowledged, confirms=confirms)
    store, _runner = opened(tmp_path, replicas, sync=sync, role=BrokerRole.SYNC_MASTER)
    with store:
        message = replace(MESSAGE, properties="WAIT\x01false")
        result = store.put_async(message).result(timeout=0) if later else store.put(message)
        assert result.status is OK
        assert store.flushed_offset == 0
        assert replicas.requests == []


@pytest.mark.parametrize("sync", [False, True])
def test_asynchronous_master_asks_no_replica(sync: bool, tmp_path: Path) -> None:
    replicas = ScriptedReplicas(acknowledged_offset=None)
    store, _ = opened(tmp_path, replicas, sync=sync, role=BrokerRole.ASYNC_MASTER)
    with store:
        assert store.put(MESSAGE).status is OK
        assert replicas.requests == []


@pytest.mark.parametrize(("confirms", "status"), [(True, OK), (False, SLAVE)])
@pytest.mark.parametrize("disk_first", [True, False])
def test_future_waits_for_both(confirms: bool, status: PutStatus, disk_first: bool, tmp_path: Path) -> None:
    replicas = ScriptedReplicas(confirms=None)
    store, runner = opened(tmp_path, replicas, sync=True, role=BrokerRole.SYNC_MASTER)
    with store:
        answer = store.put_async(MESSAGE)
        steps: list[Callable[[], object]] = [runner.step, lambda: replicas.answer(confirms=confirms)]
        for step in steps if disk_first else reversed(steps):
            assert not answer.done()
            step()
        assert answer.result(timeout=0).status is status


@pytest.mark.parametrize("sync", [False, True])
def test_the_first_answer_of_a_replica_counts(sync: bool, tmp_path: Path) -> None:
    replicas = ScriptedReplicas(confirms=None)
    store, runner = opened(tmp_path, replicas, sync=sync, role=BrokerRole.SYNC_MASTER)
    with store:
        answer = store.put_async(MESSAGE)
        replicas.answer(confirms=False)
        replicas.answer(confirms=True)
        if sync:
            assert not answer.done()
            runner.step()
        assert answer.result(timeout=0).status is SLAVE


def test_a_master_on_its_own_has_no_replica(tmp_path: Path) -> None:
    config = replace(config_of(), broker_role=BrokerRole.SYNC_MASTER)
    with open_store(tmp_path, config=config) as store:
        assert store.put(MESSAGE).status is MISSING
