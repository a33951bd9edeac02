"""Replicate with the Java store of RocketMQ 4.9.3 in both directions.

The logs have to be equal byte for byte. The tests are skipped if no release is installed (`tornpage peer install`) or
Java is missing.
"""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.nodes import FILE_BYTES, free_address, open_node, step_until
from tests.support.impl.stores import caught_up
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.peers.rocketmq.installing import Release

SOURCE = Path(__file__).resolve().parent.parent / "support" / "peers" / "ReplicaNode.java"
OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref")
CLASSIC: dict[str, Any] = {"protocol": "4.9.3"}


class JavaNode:
    """A Java store in a process of its own."""

    def __init__(self, release: Release, directory: Path, role: str, port: int, master: str = "") -> None:
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        arguments = [str(directory), role, str(FILE_BYTES), str(port), *([master] if master else [])]
        home = directory.parent / "home"
        home.mkdir(exist_ok=True)
        program = ["-Xmx256m", *opened, f"-Duser.home={home}", "-cp", release.classpath, str(SOURCE), *arguments]
        with (directory.parent / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                [release.java, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        try:
            self._line("ready")
        except BaseException:
            self.kill()
            raise

    def ask(self, line: str) -> str:
        """Send a line and return its answer."""
        self.tell(line)
        return self.answer(line)

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self, line: str) -> str:
        return self._line(line.split()[0])

    def _line(self, word: str) -> str:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise AssertionError(f"the Java store ended before {word!r}")

    @property
    def end(self) -> int:
        return int(self.ask("state").split()[0])

    def close(self) -> None:
        self.tell("close")
        self._line("closed")
        self._process.wait(30)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=30)


@contextmanager
def java(release: Release, directory: Path, role: str, address: str, master: str = "") -> Iterator[JavaNode]:
    node = JavaNode(release, directory, role, int(address.rpartition(":")[2]), master)
    try:
        yield node
    finally:
        node.kill()


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
