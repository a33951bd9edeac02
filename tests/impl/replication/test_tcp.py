"""Test two nodes over loopback: puts, restarts, threads, hostile connections."""

import socket
from pathlib import Path

import pytest

from tests.support.impl.nodes import free_address, open_node, step_until
from tests.support.impl.stores import caught_up
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.tcp import TcpNetwork

MASTER, SLAVE = BrokerRole.SYNC_MASTER, BrokerRole.SLAVE


def is_joined(master: ReplicatedStore) -> bool:
    return master.status()["acknowledged_offset"] is not None


def test_puts_are_confirmed_over_loopback_and_a_restarted_slave_catches_up(tmp_path: Path) -> None:
    address = free_address()
    master = open_node(tmp_path / "master", MASTER, address)
    slave = open_node(tmp_path / "slave", SLAVE, address)
    try:
        step_until(lambda: is_joined(master), slave, master)
        answers = [master.store.put_async(Message("T", bytes(700), queue_id=0)) for _ in range(60)]
        step_until(lambda: all(answer.done() for answer in answers), slave, master)
        assert {answer.result().status for answer in answers} == {PutStatus.PUT_OK}
        slave.close()
        step_until(lambda: not is_joined(master), master)
        assert master.store.put(Message("T", b"x", queue_id=0)).status is PutStatus.SLAVE_NOT_AVAILABLE
        slave = open_node(tmp_path / "slave", SLAVE, address)
        step_until(lambda: slave.store.max_offset == master.store.max_offset, slave, master)
        assert caught_up(slave.store).max_offset_in_queue("T", 0) == 61
    finally:
        slave.close()
        master.close()
    files = sorted((tmp_path / "master" / "commitlog").iterdir())
    assert len(files) == 3
    assert all(path.read_bytes() == (tmp_path / "slave" / "commitlog" / path.name).read_bytes() for path in files)


def test_threads_step_two_nodes(tmp_path: Path) -> None:
    address = free_address()
    master = open_node(tmp_path / "master", MASTER, address)
    slave = open_node(tmp_path / "slave", SLAVE, address)
    try:
        step_until(lambda: is_joined(master), slave, master)
        master.start()
        slave.start()
        assert {master.store.put(Message("T", b"x", queue_id=0)).status for _ in range(20)} == {PutStatus.PUT_OK}
    finally:
        slave.close()
        master.close()


def test_a_drained_change_of_roles_loses_nothing(tmp_path: Path) -> None:
    first, second = free_address(), free_address()
    old = open_node(tmp_path / "old", MASTER, first)
    new = open_node(tmp_path / "new", SLAVE, first)
    try:
        step_until(lambda: is_joined(old), new, old)
        old.store.put_async(Message("T", b"kept", queue_id=0))
        assert old.drain() > 0
        assert old.store.put(Message("T", b"late", queue_id=0)).status is PutStatus.SERVICE_NOT_AVAILABLE
        step_until(lambda: not old.drain(), new, old)
        old.become(SLAVE, master=second)
        new.close()
        new = open_node(tmp_path / "new", MASTER, second)
        step_until(lambda: is_joined(new), old, new)
        answer = new.store.put_async(Message("T", b"next", queue_id=0))
        step_until(answer.done, old, new)
        assert [message.body for message in old.store.messages()] == [b"kept", b"next"]
    finally:
        old.close()
        new.close()


def test_hostile_connections_end_and_do_not_disturb(tmp_path: Path) -> None:
    address = free_address()
    host, _, port = address.rpartition(":")
    master = open_node(tmp_path / "master", MASTER, address, connections_max=40)
    slave = open_node(tmp_path / "slave", SLAVE, address)
    hostile: list[socket.socket] = []
    try:
        step_until(lambda: is_joined(master), slave, master)
        for garbage in (b"\xff" * 64, b"\0" * 64, bytes(range(64)), b"GET / HTTP/1.1\r\n\r\n"):
            before = len(master.status()["findings"])
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(garbage)
                step_until(lambda: len(master.status()["findings"]) > before, slave, master)  # noqa: B023
        for _ in range(60):
            hostile.append(socket.create_connection((host, int(port))))
            master.step(0)
        step_until(lambda: len(master.status()["replicas"]) == 40, slave, master)
        answer = master.store.put_async(Message("T", b"x", queue_id=0))
        step_until(answer.done, slave, master)
        assert answer.result().status is PutStatus.PUT_OK
        assert any("connections already" in finding for finding in master.status()["findings"])
    finally:
        for connection in hostile:
            connection.close()
        slave.close()
        master.close()


def test_only_configured_peers_are_accepted(tmp_path: Path) -> None:
    address = free_address()
    master = open_node(tmp_path / "master", MASTER, address, peers=("10.1.2.3",))
    slave = open_node(tmp_path / "slave", SLAVE, address)
    try:
        step_until(lambda: any("not in `peers`" in each for each in master.status()["findings"]), slave, master)
        assert not is_joined(master)
    finally:
        slave.close()
        master.close()


def test_a_link_to_nobody_has_ended() -> None:
    link = TcpNetwork().connect(free_address())
    step_until(lambda: link is None or link.receive(10) is None)
    if link is not None:
        assert link.send(b"x") == 0
        link.close()


@pytest.mark.parametrize("address", ["", "nowhere", "127.0.0.1:x", "127.0.0.1:70000"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    assert TcpNetwork().connect(address) is None
    with pytest.raises(OSError, match="no port"):
        TcpNetwork().listen(address)
