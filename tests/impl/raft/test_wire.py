"""Test the frames between members: every message round trips, and wrong bytes are refused."""

import struct

import pytest

from tornpage.impl.raft.messages import (
    AppendAnswer,
    AppendEntries,
    Carried,
    LeadNow,
    Message,
    RequestVote,
    VoteAnswer,
)
from tornpage.impl.raft.wire import Hello, RaftKind, encoded, frame_bytes_max, hello_frame, hello_of, message_of
from tornpage.impl.replication.framing import HEAD_BYTES, BadFrame, Frame, Framing, frame_of

ENTRIES = (Carried(2, b""), Carried(2, b"body"), Carried(3, b"\0" * 9))
MESSAGES: tuple[Message, ...] = (
    RequestVote(4, 3, 17),
    VoteAnswer(4, True),
    VoteAnswer(4, False),
    AppendEntries(3, 5, 1, ENTRIES, 4, 9),
    AppendEntries(3, 0, 0, (), 0, 0),
    AppendAnswer(3, True, 8, 9),
    AppendAnswer(3, False, 1 << 40, 0),
    LeadNow(7),
)


def frames_of(data: bytes) -> list[Frame]:
    return list(Framing(RaftKind, 10_000).feed(data))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_read_as_it_was_sent(message: Message) -> None:
    (frame,) = frames_of(encoded(message))
    assert message_of(frame) == message
    for size in range(len(frame.body)):
        with pytest.raises(BadFrame):
            message_of(Frame(frame.kind, frame.body[:size]))
    with pytest.raises(BadFrame):
        message_of(Frame(frame.kind, frame.body + b"\0"))


def test_every_changed_bit_of_a_frame_is_found() -> None:
    sent = encoded(MESSAGES[3])
    for bit in range(8 * len(sent)):
        changed = bytearray(sent)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadFrame):
            frames_of(bytes(changed))


def append(term: int, begin: int, previous: int, *entries: tuple[int, bytes]) -> Frame:
    body = struct.pack(">qqqqqI", term, begin, previous, 0, 0, len(entries))
    return Frame(RaftKind.APPEND, body + b"".join(struct.pack(">qI", each, len(data)) + data for each, data in entries))


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (append(3, 1, 2, (1, b"x")), "an entry of term 1 is after one of term 2"),
        (append(3, 1, 2, (4, b"x")), "an entry of term 4 is after one of term 2, in a message of term 3"),
        (append(3, 0, 2), "the entry before 0 is of term 2"),
        (append(3, 1, 4), "the entry before 1 is of term 4"),
        (append(-1, 1, -1), "a negative number"),
        (Frame(RaftKind.VOTE_ANSWER, struct.pack(">qB", 1, 2)), "a message has 2 where 0 or 1 belongs"),
        (Frame(RaftKind.VOTE, struct.pack(">qqq", 1, 0, -1)), "a negative number"),
        (Frame(RaftKind.HELLO, b""), "a frame of kind HELLO may not come here"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_impossible_messages_are_refused(frame: Frame, sentence: str) -> None:
    with pytest.raises(BadFrame, match=sentence):
        message_of(frame)


def test_a_greeting_is_read_as_it_was_sent() -> None:
    hello = Hello(1, 2, "127.0.0.1:1,127.0.0.1:2", "127.0.0.1:9")
    (frame,) = frames_of(hello_frame(hello))
    assert hello_of(frame.body) == hello
    for body in (b"", frame.body[:7], b"\0\2" + frame.body[2:], frame.body + b"\xff", frame.body + bytes(5_000)):
        with pytest.raises(BadFrame):
            hello_of(body)


def test_the_longest_message_fits() -> None:
    """It has a full batch by the sizes of entries on a disk, or the longest body."""
    limit = frame_bytes_max(batch_bytes_max=1_000, body_bytes_max=5_000)
    full = AppendEntries(1, 1, 1, tuple(Carried(1, b"x") for _ in range(1_000 // 49)), 0, 0)
    one = AppendEntries(1, 1, 1, (Carried(1, bytes(5_000)),), 0, 0)
    for each in (full, one):
        assert len(encoded(each)) - HEAD_BYTES <= limit
    with pytest.raises(BadFrame, match="more than 100"):
        list(Framing(RaftKind, 100).feed(frame_of(RaftKind.PING, bytes(101))))
