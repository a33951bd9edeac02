"""Replicate with the Java store of RocketMQ 4.9.3 in both directions.

The logs have to be equal byte for byte. The tests are skipped if no release is installed (`tornpage peer install`) or
Java is missing.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.nodes import FILE_BYTES, free_address, open_node, step_until
from tests.support.impl.stores import caught_up
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.replica import java_node

CLASSIC: dict[str, Any] = {"protocol": "4.9.3"}
java = partial(java_node, file_bytes=FILE_BYTES)


def log_of(directory: Path, end: int) -> bytes:
    files = sorted((directory / "commitlog").iterdir())
    return b"".join(path.read_bytes() for path in files)[:end]


def stepped(node: ReplicatedStore, holds: Callable[[], bool], *, every_s: float = 0.2) -> None:
    """Step a node until a condition holds that is asked for from time to time."""
    asked = [0.0]

    def seldom() -> bool:
        if time.monotonic() - asked[0] < every_s:
            return False
        asked[0] = time.monotonic()
        return holds()

    step_until(seldom, node)


@pytest.mark.deep
def test_java_slave_has_the_bytes_of_our_master(release: Release, tmp_path: Path) -> None:
    address, own = free_address(), free_address()
    master = open_node(tmp_path / "ours", BrokerRole.SYNC_MASTER, address, **CLASSIC)
    try:
        for _ in range(60):
            master.store.put(Message("T", bytes(700), queue_id=0))
        with java(release, tmp_path / "java", "SLAVE", own, master=address) as slave:
            stepped(master, lambda: slave.end == master.store.max_offset)
            answers = [master.store.put_async(Message("T", bytes(300), queue_id=0)) for _ in range(40)]
            step_until(lambda: all(answer.done() for answer in answers), master)
            assert {answer.result().status for answer in answers} == {PutStatus.PUT_OK}
            stepped(master, lambda: slave.ask("state").split()[1:] == ["100", "0"])
            slave.close()
        with java(release, tmp_path / "java", "SLAVE", own, master=address) as slave:
            master.store.put(Message("T", b"after the restart", queue_id=0))
            stepped(master, lambda: slave.end == master.store.max_offset)
            slave.close()
        end = master.store.max_offset
    finally:
        master.close()
    assert log_of(tmp_path / "java", end) == log_of(tmp_path / "ours", end)
    assert end > 3 * FILE_BYTES


@pytest.mark.deep
def test_our_slave_has_the_bytes_of_a_java_master(release: Release, tmp_path: Path) -> None:
    address = free_address()
    with java(release, tmp_path / "java", "SYNC_MASTER", address) as master:
        slave = open_node(tmp_path / "ours", BrokerRole.SLAVE, address, **CLASSIC)
        try:
            step_until(lambda: slave.status()["joined"], slave)
            for _ in range(200):
                slave.step(time.monotonic_ns() // 1_000_000)
            slave.start()
            statuses = master.ask("put 100 700")
            assert "PUT_OK" in statuses, statuses
            end = master.end
            assert caught_up(slave.store).max_offset >= 0
            slave.close()
            slave = open_node(tmp_path / "ours", BrokerRole.SLAVE, address, **CLASSIC)
            stepped(slave, lambda: slave.store.max_offset == end)
            assert caught_up(slave.store).max_offset_in_queue("T", 0) == 100
        finally:
            slave.close()
    assert log_of(tmp_path / "ours", end) == log_of(tmp_path / "java", end)
    assert end > 4 * FILE_BYTES
