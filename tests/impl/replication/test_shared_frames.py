"""Test which bytes of the log a master sends at once, and which share a later frame."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.put.time_outs import Awaited
from tornpage.impl.replication.frames import FrameReader, Greeting, Kind, ack_frame, hello_frame, read_data
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.replication.server import ReplicaConnection
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.store import MessageStore

FILE_BYTES = 1 << 20
POLL_MS = 5


class OpenLink:
    """A link that takes everything."""

    peer = "127.0.0.1:1"

    def __init__(self) -> None:
        self.arriving = hello_frame(Greeting(b"r" * 16, FILE_BYTES, False, 0, 0, 0, ()))
        self._reader = FrameReader(1 << 20)
        self._sent = b""

    def send(self, data: bytes) -> int:
        self._sent += data
        return len(data)

    def receive(self, size_bytes_max: int) -> bytes:
        arrived, self.arriving = self.arriving, b""
        return arrived

    def close(self) -> None:
        """Keep what was sent."""

    def taken(self) -> list[tuple[int, int]]:
        """Return begin and end of each frame of data since the last call."""
        sent, self._sent = self._sent, b""
        frames = [read_data(each.body) for each in self._reader.feed(sent) if each.kind is Kind.DATA]
        return [(offset, offset + len(data)) for offset, data in frames]


class Pair:
    """A master with one connection, and the puts that wait for it."""

    def __init__(self, directory: Path) -> None:
        config = MessageStoreConfig(mapped_file_size_commit_log=FILE_BYTES, mapped_files_ahead=0)
        self.store = MessageStore.open(str(directory), config, files=OsFiles(), clock=lambda: 0)
        self.link = OpenLink()
        self.wakes = 0
        self.requests = ReplicaRequests(lambda: 0, timeout_ms=1_000, in_sync_replicas=1)
        self.requests.wake = self._wake
        self.connection = ReplicaConnection(
            self.link,
            self.store,
            self.requests,
            node=b"m" * 16,
            generations=(),
            file_bytes=FILE_BYTES,
            settings=ReplicationSettings(poll_interval=POLL_MS, ha_transfer_batch_size=100_000),
            now_ms=0,
        )
        self.step(0)

    def _wake(self) -> None:
        self.wakes += 1

    def put(self, body_bytes: int = 100) -> int:
        """Put a message and request its confirmation; return its end."""
        result = self.store.put(Message("T", bytes(body_bytes), queue_id=0))
        end = result.offset + result.size_bytes
        self.requests.request(
            Awaited(_nothing, end_offset=end, deadline_ms=1_000, timeout_status=PutStatus.FLUSH_SLAVE_TIMEOUT)
        )
        return end

    def step(self, now_ms: int, acknowledged: int | None = None) -> list[tuple[int, int]]:
        """Let the connection read and write; return the frames that it has sent."""
        if acknowledged is not None:
            self.link.arriving = ack_frame(acknowledged, 0)
        self.connection.step(now_ms)
        assert not self.connection.ended
        self.requests.note(b"r" * 16, self.connection.received)
        self.requests.wake_offset = self.connection.wake_offset
        return self.link.taken()


def _nothing(status: PutStatus) -> None:
    """Wait for no status."""


@pytest.fixture
def open_pair(tmp_path: Path) -> Iterator[Callable[[], Pair]]:
    pairs: list[Pair] = []

    def opened() -> Pair:
        pairs.append(Pair(tmp_path))
        return pairs[-1]

    yield opened
    for pair in pairs:
        pair.store.close()


def test_a_put_is_sent_at_once_if_everything_before_it_is_acknowledged(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    first = pair.put()
    assert pair.wakes == 1
    assert pair.step(0) == [(0, first)]
    assert pair.step(0, first) == []
    second = pair.put()
    assert pair.wakes == 2
    assert pair.step(0) == [(first, second)]


def test_puts_during_a_transfer_share_the_next_frame(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    first = pair.put()
    pair.step(0)
    ends = [pair.put() for _ in range(9)]
    assert pair.wakes == 1
    assert pair.step(POLL_MS - 1) == []
    assert pair.step(POLL_MS - 1, first) == [(first, ends[-1])]


def test_what_fills_half_a_frame_does_not_wait_for_an_acknowledgement(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    first = pair.put()
    pair.step(0)
    ends = [pair.put(10_000) for _ in range(5)]
    assert pair.wakes == 2
    assert pair.step(0) == [(first, ends[-1])]


def test_a_held_put_is_sent_after_the_poll_interval(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    first = pair.put()
    pair.step(0)
    second = pair.put()
    assert pair.step(POLL_MS - 1) == []
    assert pair.step(POLL_MS) == [(first, second)]


def test_many_puts_are_sent_in_two_parts(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    ends = [pair.put(3_000) for _ in range(10)]
    frames = pair.step(0)
    assert frames == [(0, ends[4])]
    assert pair.step(0, ends[4]) == [(ends[4], ends[9])]


def test_a_put_between_the_last_look_at_the_log_and_its_wake_offset_is_noticed(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    first = pair.put()
    pair.step(0)
    before = pair.wakes
    pair.connection.step(0)
    pair.put()  # below the wake offset of a transfer
    pair.connection._acknowledge(first, 0)
    assert pair.wakes == before
    assert pair.connection.has_more


def test_the_first_put_after_many_waits_two_milliseconds_for_others(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    ends = [pair.put(3_000) for _ in range(20)]
    assert pair.step(0) == [(0, ends[9])]
    assert pair.step(0, ends[9]) == [(ends[9], ends[19])]
    assert pair.step(10, ends[19]) == []
    wakes = pair.wakes
    last = pair.put()
    assert (pair.wakes, pair.step(11), pair.connection.expects_more) == (wakes, [], True)
    assert pair.step(12) == [(ends[19], last)]
    assert not pair.connection.expects_more


def test_many_puts_after_many_are_sent_at_once(open_pair: Callable[[], Pair]) -> None:
    pair = open_pair()
    ends = [pair.put(3_000) for _ in range(20)]
    pair.step(0)
    pair.step(0, ends[9])
    pair.step(10, ends[19])
    wakes = pair.wakes
    later = [pair.put(3_000) for _ in range(5)]
    assert pair.wakes == wakes + 1
    assert pair.step(10) == [(ends[19], later[-1])]
