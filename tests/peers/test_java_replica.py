"""Replicate with the Java store of RocketMQ 4.9.3 in both directions.

The logs have to be equal byte for byte. The tests are skipped if no release is installed (`tornpage peer install`) or
Java is missing.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.nodes import FILE_BYTES, PATIENCE_S, free_address, open_node, step_until
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


ROUNDS, ROUND = 10, 1_000
"""10,000 messages in each direction. Between two rounds one of the nodes is restarted, killed or connected again."""


def is_followed(master: ReplicatedStore) -> bool:
    return any(each["counts"] for each in master.status()["replicas"])


def put_round(master: ReplicatedStore, number: int) -> None:
    """Put the messages of a round and step the master until each is answered PUT_OK."""
    answers = [
        master.store.put_async(Message("T", bytes([number]) * (each * 7 % 1_200), queue_id=0)) for each in range(ROUND)
    ]
    step_until(lambda: all(answer.done() for answer in answers), master)
    assert {answer.result().status for answer in answers} == {PutStatus.PUT_OK}


@pytest.mark.deep
def test_java_slave_has_the_bytes_of_our_master(release: Release, tmp_path: Path) -> None:
    address, own = free_address(), free_address()
    start = partial(java, release, tmp_path / "java", "SLAVE", own, master=address)
    master = open_node(tmp_path / "ours", BrokerRole.SYNC_MASTER, address, **CLASSIC)
    with ExitStack() as stack:
        stack.callback(lambda: master.close())
        slave = stack.enter_context(start())
        for number in range(ROUNDS):
            stepped(master, lambda: is_followed(master))  # noqa: B023
            put_round(master, number)
            stepped(master, lambda: slave.end == master.store.max_offset)  # noqa: B023
            if number % 4 == 1:  # a restart of the slave
                slave.close()
                step_until(lambda: not is_followed(master), master)  # noqa: B023
                slave = stack.enter_context(start())
            elif number % 4 == 2:  # a kill of the slave
                slave.kill()
                step_until(lambda: not is_followed(master), master)  # noqa: B023
                slave = stack.enter_context(start())
            elif number % 4 == 3:  # a restart of the master, so that the slave connects again
                master.close()
                master = open_node(tmp_path / "ours", BrokerRole.SYNC_MASTER, address, **CLASSIC)
        stepped(master, lambda: slave.ask("state").split()[1:] == [str(ROUNDS * ROUND), "0"])
        slave.close()
        end = master.store.max_offset
    assert log_of(tmp_path / "java", end) == log_of(tmp_path / "ours", end)
    assert end > 300 * FILE_BYTES


@pytest.mark.deep
def test_our_slave_has_the_bytes_of_a_java_master(release: Release, tmp_path: Path) -> None:
    address = free_address()
    slave = open_node(tmp_path / "ours", BrokerRole.SLAVE, address, **CLASSIC)
    start = partial(java, release, tmp_path / "java", "SYNC_MASTER", address)
    with ExitStack() as stack:
        stack.callback(lambda: slave.close())
        master = stack.enter_context(start())
        for number in range(ROUNDS):
            slave.start()
            limit = time.monotonic() + PATIENCE_S
            while "PUT_OK" not in master.ask(f"put 1 {number}"):  # the slave has connected
                assert time.monotonic() < limit
            statuses = master.ask(f"put {ROUND} {100 + 70 * number}")
            assert statuses == f"{{PUT_OK={ROUND}}}"
            end = master.end
            limit = time.monotonic() + PATIENCE_S
            while slave.store.max_offset < end:
                assert time.monotonic() < limit
            if number % 3 == 0:  # a restart of the slave
                slave.close()
                slave = open_node(tmp_path / "ours", BrokerRole.SLAVE, address, **CLASSIC)
            elif number % 3 == 1:  # another link
                slave.follow(address)
            else:  # a restart of the master
                master.close()
                master = stack.enter_context(start())
        assert caught_up(slave.store).max_offset_in_queue("T", 0) >= ROUNDS * ROUND
        assert slave.store.max_offset == master.end == end
        master.close()
    assert log_of(tmp_path / "ours", end) == log_of(tmp_path / "java", end)
    assert end > 300 * FILE_BYTES
