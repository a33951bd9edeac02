"""Test the links between members against peers that are wrong, hostile or hung."""

import random
import struct
from collections.abc import Iterator

import pytest

from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import RequestVote
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.raft.wire import Hello, RaftKind, encoded, hello_frame, ping_frame
from tornpage.impl.replication.framing import Framing, frame_of
from tornpage.properties.raft.memory import MemoryHardState, MemoryLog

PEERS = ("127.0.0.1:1000", "127.0.0.1:1001", "127.0.0.2:1002")
SETTINGS = RaftSettings(peers=PEERS, silence_max=2_000, connections_max=4)
GROUP = SETTINGS.group


class Wire:
    """A link whose other end is the test."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.arriving = bytearray()
        self.sent = bytearray()
        self.is_closed = False

    def send(self, data: bytes) -> int:
        self.sent += data
        return len(data)

    def receive(self, size_bytes_max: int) -> bytes | None:
        data = bytes(self.arriving[:size_bytes_max])
        del self.arriving[:size_bytes_max]
        return data

    def close(self) -> None:
        self.is_closed = True


class Wires:
    """A network without other members, on which the test connects."""

    def __init__(self) -> None:
        self.backlog: list[Wire] = []
        self.address = PEERS[0]

    def listen(self, address: str) -> "Wires":
        return self

    def connect(self, address: str) -> Wire | None:
        return None

    def accept(self) -> Wire | None:
        return self.backlog.pop(0) if self.backlog else None

    def close(self) -> None:
        pass


class Served:
    """A member n0 of three, and its time."""

    def __init__(self) -> None:
        self.network = Wires()
        self.now_ms = 0
        member = RaftMember(0, 3, MemoryLog([], 0, 9), MemoryHardState(0, None))
        entries = RaftEntries(member, SETTINGS, lambda: None)
        self.node = RaftNode(entries, SETTINGS, network=self.network, rng=random.Random(0), now_ms=0)

    def connect(self, data: bytes, peer: str = "127.0.0.1:5") -> Wire:
        """Return a new link on which some bytes have arrived."""
        wire = Wire(peer)
        wire.arriving += data
        self.network.backlog.append(wire)
        self.step(10)
        return wire

    def step(self, milliseconds: int) -> None:
        """Let time pass."""
        for _ in range(milliseconds // 10):
            self.now_ms += 10
            self.node.step(self.now_ms)

    @property
    def findings(self) -> list[str]:
        """Why links have ended."""
        return list(self.node.status()["findings"])


@pytest.fixture
def served() -> Iterator[Served]:
    member = Served()
    yield member
    assert not member.node.failure
    member.node.close(member.now_ms)


def greeting(sender: int = 1, receiver: int = 0, group: str = GROUP) -> bytes:
    return hello_frame(Hello(sender, receiver, group, "127.0.0.1:9"))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "checksum of a frame"),
        (bytes(range(256)), "checksum of a frame"),
        (struct.pack(">BxxxiII", 17, -1, 0, 0), "checksum of a frame"),
        (frame_of(99, b""), "no frame has the kind 99"),
        (frame_of(RaftKind.HELLO, bytes(5 << 20)), "a frame states 5242880 bytes, more than"),
        (frame_of(RaftKind.HELLO, b"x"), "a greeting has 1 bytes"),
        (encoded(RequestVote(9, 0, 0)), "a frame of kind VOTE may not come here"),
        (greeting(group="127.0.0.1:1000,127.0.0.1:1001"), f"the group is {GROUP} here, and 127.0.0.1:1000,127"),
        (greeting(receiver=1), "this is member n0, and n1 was meant"),
        (greeting(sender=0), "a sender calls itself n0"),
        (greeting(sender=3), "a sender calls itself n3"),
        (greeting(sender=2), "member n2 is at 127.0.0.2:1002, not here"),
        (greeting() + greeting(), "a frame of kind HELLO may not come here"),
        (greeting() + frame_of(RaftKind.PING, b"x"), "a frame of kind PING has 1 bytes"),
        (greeting() + frame_of(RaftKind.REFUSAL, b"no"), "a frame of kind REFUSAL may not come here"),
        (greeting() + frame_of(RaftKind.VOTE, b"x"), "a frame of kind VOTE has 1 bytes"),
    ],
    ids=range(16),
)
def test_wrong_bytes_end_their_link_with_a_finding(served: Served, data: bytes, sentence: str) -> None:
    wire = served.connect(data)
    served.step(500)
    assert wire.is_closed
    (finding,) = served.findings
    assert sentence in finding
    assert served.node.status()["term"] < 9


@pytest.mark.parametrize("data", [b"", greeting()[:40], greeting(), greeting() + encoded(RequestVote(0, 0, 0))[:20]])
def test_silence_and_half_frames_end_their_link(served: Served, data: bytes) -> None:
    wire = served.connect(data)
    served.step(1_900)
    assert served.findings == []
    served.step(200)
    assert wire.is_closed
    assert "nothing was received for 20" in served.findings[0]


def test_a_frame_that_stays_incomplete_ends_its_link(served: Served) -> None:
    """Its sender goes on to send bytes of it, so that the link is not silent."""
    wire = served.connect(greeting() + frame_of(RaftKind.APPEND, bytes(10_000))[:20])
    for _ in range(5):
        served.step(500)
        wire.arriving += b"\0"
    assert wire.is_closed
    assert "a frame has been incomplete for" in served.findings[0]


def test_a_refused_sender_gets_the_reason(served: Served) -> None:
    wire = served.connect(greeting(receiver=2))
    (frame,) = Framing(RaftKind, 1_024).feed(bytes(wire.sent))
    assert (frame.kind, frame.body) == (RaftKind.REFUSAL, b"this is member n0, and n2 was meant")


def test_other_hosts_and_too_many_links_are_closed(served: Served) -> None:
    assert served.connect(greeting(), peer="127.0.0.9:5").is_closed
    wires = [served.connect(b"") for _ in range(5)]
    assert [each.is_closed for each in wires] == [False] * 4 + [True]
    assert served.findings == [
        "127.0.0.9:5: no member of the group has this address",
        "127.0.0.1:5: there are 4 connections already",
    ]


def test_a_newer_link_of_a_member_ends_its_older_one(served: Served) -> None:
    older, newer = served.connect(greeting()), served.connect(greeting())
    assert (older.is_closed, newer.is_closed) == (True, False)
    assert served.findings == ["127.0.0.1:5 (n1): the member has a newer connection"]


def test_a_ping_keeps_a_link_and_is_answered(served: Served) -> None:
    wire = served.connect(greeting())
    for _ in range(5):
        wire.arriving += ping_frame()
        served.step(1_000)
    assert not wire.is_closed
    assert bytes(wire.sent) == 5 * ping_frame()


def test_a_vote_is_counted_for_its_sender(served: Served) -> None:
    served.connect(greeting() + encoded(RequestVote(9, 0, 0)))
    assert served.node.status()["term"] == 9
    assert served.node.status()["peers"][0]["receives"]
