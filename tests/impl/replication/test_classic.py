"""Test the protocol of RocketMQ 4.9.3 byte by byte, with a scripted peer."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.impl.nodes import FILE_BYTES, open_node
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.properties.cluster.network import LinkEnd, RecordedListener, RecordedNetwork

MESSAGE = Message("T", bytes(3_000), queue_id=0, born_host=("127.0.0.1", 1), born_timestamp=1)


def offset(value: int) -> bytes:
    return struct.pack(">q", value)


def frame(at: int, data: bytes = b"") -> bytes:
    return struct.pack(">qi", at, len(data)) + data


class Master:
    """Our master, and a scripted slave."""

    def __init__(self, directory: Path) -> None:
        self.network = RecordedNetwork()
        self.node = open_node(
            directory, BrokerRole.SYNC_MASTER, "here", network=self.network.of(0), protocol="4.9.3",
            ha_transfer_batch_size=1_000,
        )  # fmt: skip
        self.now_ms = 0
        self.slave = self.connect()

    def connect(self) -> LinkEnd:
        link = self.network.connect(1, "here")
        assert link is not None
        return link

    def step(self, advance_ms: int = 1) -> bytes | None:
        """Step the master, and return what the slave receives."""
        self.now_ms += advance_ms
        self.node.step(self.now_ms)
        return self.slave.receive(1 << 20)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    made = Master(tmp_path)
    yield made
    made.node.close()


def frames(sent: bytes | None) -> list[tuple[int, bytes]]:
    found, at = [], 0
    assert sent is not None
    while at < len(sent):
        position, size = struct.unpack_from(">qi", sent, at)
        found.append((position, sent[at + 12 : at + 12 + size]))
        at += 12 + size
    return found


def test_a_master_is_silent_before_the_request(master: Master) -> None:
    master.node.store.put(MESSAGE)
    assert master.step(6_000) == b""
    assert master.node.status()["acknowledged_offset"] is None


def test_a_request_of_zero_gets_the_whole_log_in_frames(master: Master) -> None:
    for _ in range(7):
        master.node.store.put(MESSAGE)
    master.slave.send(offset(0))
    found = frames(master.step())
    assert [at for at, _ in found[:3]] == [0, 1_000, 2_000]
    assert all(len(data) <= 1_000 for _, data in found)
    assert FILE_BYTES in [at for at, _ in found], "no frame crosses the end of a file"
    assert sum(len(data) for _, data in found) == master.node.store.max_offset
    assert found[0][1][4:8] == bytes.fromhex("daa320a7")


def test_a_request_inside_the_log_is_followed_and_acknowledgements_answer_puts(master: Master) -> None:
    master.node.store.put(MESSAGE)
    end = master.node.store.max_offset
    master.slave.send(offset(end))
    assert master.step() == b""
    answer = master.node.store.put_async(MESSAGE)
    found = frames(master.step())
    assert found[0][0] == end
    master.slave.send(offset(end + 10))
    master.step()
    assert not answer.done()
    master.slave.send(offset(2 * end)[:3])
    master.step()
    master.slave.send(offset(2 * end)[3:])
    master.step()
    assert answer.result(0).status is PutStatus.PUT_OK


def test_a_heartbeat_has_the_next_offset_and_no_body(master: Master) -> None:
    master.node.store.put(MESSAGE)
    end = master.node.store.max_offset
    master.slave.send(offset(end))
    master.step()
    master.slave.send(offset(end))
    assert master.step(5_001) == frame(end)


def test_an_empty_slave_gets_no_heartbeat_before_its_first_bytes(master: Master) -> None:
    master.slave.send(offset(0))
    assert master.step() == b""
    for _ in range(3):
        master.slave.send(offset(0))
        assert master.step(6_000) == b""
    assert master.node.status()["findings"] == []


@pytest.mark.parametrize("request_at", [10**9, -1])
def test_a_false_first_report_ends_the_link(request_at: int, master: Master) -> None:
    master.node.store.put(MESSAGE)
    master.slave.send(offset(request_at))
    assert master.step() is None
    assert master.node.status()["acknowledged_offset"] is None
    assert "this one ends at" in master.node.status()["findings"][0]


def test_a_false_acknowledgement_ends_the_link(master: Master) -> None:
    master.node.store.put(MESSAGE)
    master.slave.send(offset(0))
    master.step()
    master.slave.send(offset(10**9))
    assert master.step() is None
    assert master.node.status()["acknowledged_offset"] is None


def test_a_silent_slave_is_disconnected(master: Master) -> None:
    master.step()
    assert master.step(20_001) is None


# ---- our slave -------------------------------------------------------------------------------------------------------


class Slave:
    """Our slave, and a scripted master with a real log."""

    def __init__(self, directory: Path) -> None:
        self.network = RecordedNetwork()
        self.listener: RecordedListener = self.network.listen(0, "here")
        self.node: ReplicatedStore = open_node(
            directory / "slave", BrokerRole.SLAVE, "here", network=self.network.of(1), protocol="4.9.3"
        )
        self.now_ms = 0
        self.step()
        self.master = self.accept()

    def accept(self) -> LinkEnd:
        link = self.listener.accept()
        assert link is not None
        return link

    def step(self, advance_ms: int = 1) -> None:
        self.now_ms += advance_ms
        self.node.step(self.now_ms)


@pytest.fixture
def slave(tmp_path: Path) -> Iterator[Slave]:
    made = Slave(tmp_path)
    yield made
    made.node.close()


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    source = open_node(tmp_path / "source", BrokerRole.ASYNC_MASTER, "s", network=RecordedNetwork().of(0))
    for _ in range(3):
        source.store.put(MESSAGE)
    end = source.store.max_offset
    source.close()
    return (tmp_path / "source" / "commitlog" / f"{0:020d}").read_bytes()[:end]


def test_a_slave_greets_at_once_and_acknowledges_whole_records(slave: Slave, log: bytes) -> None:
    size = len(log) // 3
    assert slave.master.receive(100) == offset(0)
    slave.master.send(frame(0) + frame(0, log[: size + 5]))
    slave.step()
    assert slave.master.receive(100) == offset(size)
    rest = frame(size + 5, log[size + 5 :])
    for at in range(0, len(rest), 1_000):
        slave.master.send(rest[at : at + 1_000])
        slave.step()
    assert slave.node.store.max_offset == len(log)
    assert (slave.master.receive(100) or b"").endswith(offset(len(log)))


@pytest.mark.parametrize(
    "bad",
    [frame(1), struct.pack(">qi", 0, -20), struct.pack(">qi", 0, 5 << 20), frame(0, b"\1" * 100), frame(100, b"x")],
)
def test_a_bad_frame_ends_the_link_before_any_effect(bad: bytes, slave: Slave) -> None:
    slave.master.receive(100)
    slave.master.send(bad)
    slave.step()
    assert slave.node.store.max_offset == 0
    assert slave.master.receive(100) is None
    assert slave.node.status()["finding"]
    slave.step(1_000)
    assert slave.accept().receive(100) == offset(0)


def test_a_new_link_begins_with_empty_buffers(slave: Slave, log: bytes) -> None:
    slave.master.send(frame(0, log)[:500])
    slave.step()
    slave.master.close()
    slave.step()
    slave.step(1_000)
    again = slave.accept()
    assert again.receive(100) == offset(0)
    again.send(frame(0, log))
    slave.step()
    assert slave.node.store.max_offset == len(log)


def test_durable_acknowledgements_need_the_other_protocol() -> None:
    with pytest.raises(BadConfig, match="acknowledge"):
        ReplicationSettings(protocol="4.9.3", acknowledge="durable")
    with pytest.raises(BadConfig, match="protocol"):
        ReplicationSettings(protocol="5.0")
