"""Test a replica that stops reading while retention removes the file of its frame (R28)."""

from pathlib import Path

from tests.support.impl.nodes import FILE_BYTES, open_node
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import Message
from tornpage.impl.replication.frames import FrameReader, Greeting, Kind, hello_frame, read_data
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.replication.server import ReplicaConnection
from tornpage.impl.replication.settings import ReplicationSettings


class StalledLink:
    """A link that takes `room` bytes in all."""

    peer = "127.0.0.1:1"

    def __init__(self, arrived: bytes) -> None:
        self.room = 0
        self.sent = b""
        self._arrived = arrived

    def send(self, data: bytes) -> int:
        taken = data[: self.room - len(self.sent)]
        self.sent += taken
        return len(taken)

    def receive(self, size_bytes_max: int) -> bytes:
        arrived, self._arrived = self._arrived, b""
        return arrived

    def close(self) -> None:
        """Keep what was sent."""


def test_a_frame_that_waits_keeps_its_bytes_and_holds_no_file(tmp_path: Path) -> None:
    node = open_node(tmp_path, BrokerRole.ASYNC_MASTER, "127.0.0.1:0")
    try:
        store = node.store
        while store.max_offset < 3 * FILE_BYTES:
            store.put(Message("T", b"x" * 3_000, queue_id=0))
        first_file = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()
        link = StalledLink(hello_frame(Greeting(b"r" * 16, FILE_BYTES, False, 0, 0, 0, ())))
        connection = ReplicaConnection(
            link,
            store,
            ReplicaRequests(lambda: 0, timeout_ms=1_000, in_sync_replicas=1),
            node=b"m" * 16,
            generations=(),
            file_bytes=FILE_BYTES,
            settings=ReplicationSettings(),
            now_ms=0,
        )
        link.room = 1_000
        connection.step(0)
        assert connection.sent == FILE_BYTES
        file = store._log.drop_first()
        store._log.remove(file)
        assert not (tmp_path / "commitlog" / f"{0:020d}").exists()
        assert file.is_unreferenced
        link.room = 1 << 20
        connection.step(1)
        frames = [read_data(each.body) for each in FrameReader(1 << 20).feed(link.sent) if each.kind is Kind.DATA]
        assert [(offset, len(data)) for offset, data in frames[:2]] == [(0, FILE_BYTES), (FILE_BYTES, FILE_BYTES)]
        assert bytes(frames[0][1]) == first_file
    finally:
        node.close()
