"""Test a master against a thousand hostile connections.

Each ends with a finding, memory is bounded, and a replica is not disturbed.
"""

import gc
import socket
import struct
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.nodes import PATIENCE_S, free_address, open_node
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.replication.frames import Kind, ack_frame, frame_of
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.server import CONNECTION_BYTES_MAX

AT_ONCE = 50
OVERHEAD_BYTES = 16 << 10
"""Python objects of a connection, beside its bytes."""

# ---- what hostile peers send, and the finding that names it ----------------------------------------------------------

_TORNPAGE = {
    "a negative size": (struct.pack(">BxxxiII", 1, -1, 0, 0), "checksum of a frame"),
    "a huge size": (frame_of(Kind.HELLO, b"x" * 20_000), "a frame states 20000 bytes"),
    "garbage": (bytes(range(256)) * 4, "checksum of a frame"),
    "an acknowledgement first": (ack_frame(1 << 40, 0), "a frame of kind ACK may not come here"),
    "a short greeting": (frame_of(Kind.HELLO, b"x"), "a greeting is too short"),
    "half a frame": (frame_of(Kind.HELLO, b"x" * 8_200)[:8_000], "nothing was received for"),
    "silence": (b"", "nothing was received for"),
}
_CLASSIC = {
    "a negative offset": (struct.pack(">q", -1), "the replica has a log up to -1"),
    "a huge offset": (struct.pack(">q", 1 << 62), "the replica has a log up to 4611686018427387904"),
    "garbage": (b"\xa5" * 1_000, "the replica has a log up to -"),
    "half a report": (b"\0" * 7, "nothing was received for"),
    "silence": (b"", "nothing was received for"),
}


@contextmanager
def connected(address: str, data: bytes, count: int) -> Iterator[None]:
    host, _, port = address.rpartition(":")
    opened = [socket.create_connection((host, int(port))) for _ in range(count)]
    try:
        for each in opened:
            each.sendall(data)
        yield
    finally:
        for each in opened:
            each.close()


@dataclass
class Steps:
    """Steps nodes.

    Each round takes a millisecond of their time, so that no load of the machine ends a link.
    """

    now_ms: int = 0

    def until(self, holds: Callable[[], bool], *nodes: ReplicatedStore) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < limit
            self.now_ms += 1
            for node in nodes:
                node.step(self.now_ms)


def findings_until(steps: Steps, master: ReplicatedStore, count: int, *others: ReplicatedStore) -> Counter[str]:
    """Step until some connections have ended; return their findings without the addresses."""
    seen: list[str] = []

    def more() -> bool:
        newest = master.status()["findings"]
        seen[:] = newest[-count:]
        return len(newest) >= count

    steps.until(more, *others, master)
    return Counter(each.partition(": ")[2] for each in seen)


@pytest.mark.parametrize(
    ("protocol", "hostile"),
    [(protocol, each) for protocol, kinds in (("tornpage", _TORNPAGE), ("4.9.3", _CLASSIC)) for each in kinds.items()],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_each_kind_ends_with_its_finding(protocol: str, hostile: tuple[str, tuple[bytes, str]], tmp_path: Path) -> None:
    data, sentence = hostile[1]
    master = open_node(
        tmp_path / "master",
        BrokerRole.ASYNC_MASTER,
        address := free_address(),
        protocol=protocol,
        ha_send_heartbeat_interval=10,
        ha_housekeeping_interval=100,
    )
    try:
        master.store.put(Message("T", b"x", queue_id=0))
        with connected(address, data, 1):
            findings = findings_until(Steps(), master, 1)
        assert all(sentence in each for each in findings), findings
    finally:
        master.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "connections", [len(_TORNPAGE) * AT_ONCE, pytest.param(1_000, marks=pytest.mark.deep)], ids=["each kind", "1,000"]
)
def test_many_hostile_connections_are_bounded_and_disturb_no_replica(connections: int, tmp_path: Path) -> None:
    """A connection holds at most `CONNECTION_BYTES_MAX`, whatever its peer sends."""
    address = free_address()
    times: dict[str, Any] = {"ha_send_heartbeat_interval": 20, "ha_housekeeping_interval": 400}
    master = open_node(tmp_path / "master", BrokerRole.SYNC_MASTER, address, **times)
    slave = open_node(tmp_path / "slave", BrokerRole.SLAVE, address, **times)
    steps = Steps()
    kinds = list(_TORNPAGE.values())
    ended, most_bytes = 0, 0
    try:
        steps.until(lambda: master.status()["acknowledged_offset"] is not None, slave, master)
        while ended < connections:
            data, sentence = kinds[ended // AT_ONCE % len(kinds)]
            master._server.findings.clear()  # type: ignore[union-attr]
            gc.collect()
            tracemalloc.start()
            with connected(address, data, AT_ONCE):
                steps.until(
                    lambda: len(master.status()["replicas"]) + len(master.status()["findings"]) > AT_ONCE,
                    slave,
                    master,
                )
                most_bytes = max(most_bytes, tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
                answer = master.store.put_async(Message("T", b"x", queue_id=0))
                steps.until(answer.done, slave, master)
                assert answer.result().status is PutStatus.PUT_OK
                findings = findings_until(steps, master, AT_ONCE, slave)
            assert all(sentence in each for each in findings), findings
            ended += AT_ONCE
        assert [each["counts"] for each in master.status()["replicas"]] == [True]
        print(f"most bytes of a connection: {most_bytes // AT_ONCE}")
        assert most_bytes < AT_ONCE * (CONNECTION_BYTES_MAX + OVERHEAD_BYTES)
    finally:
        tracemalloc.stop()
        slave.close()
        master.close()
