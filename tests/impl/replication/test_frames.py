"""Test the frames of replication: what is written is read, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tornpage.impl.replication import frames
from tornpage.impl.replication.frames import Action, BadFrame, Frame, FrameReader, Greeting, Kind
from tornpage.impl.replication.generations import ENTRIES_MAX, Generation

NODE = bytes(range(16))
GREETING = Greeting(NODE, 4096, True, 0, 300, 200, (Generation(1, 0, NODE), Generation(2, 100, NODE[::-1])))


def read(data: bytes, data_bytes_max: int = 1000) -> list[Frame]:
    return list(FrameReader(data_bytes_max).feed(data))


def test_frames_are_read_as_written() -> None:
    sent = (
        frames.hello_frame(GREETING)
        + frames.welcome_frame(Action.CUT, 100, GREETING)
        + frames.data_frame(7, b"abc")
        + frames.ping_frame(9)
        + frames.ack_frame(8, 6)
        + frames.refusal_frame("why")
    )
    found = read(sent)
    assert [each.kind for each in found] == [
        Kind.HELLO, Kind.WELCOME, Kind.DATA, Kind.PING, Kind.ACK, Kind.REFUSAL,
    ]  # fmt: skip
    assert frames.greeting_of(found[0].body) == GREETING
    assert frames.read_welcome(found[1].body) == (Action.CUT, 100, GREETING)
    offset, data = frames.read_data(found[2].body)
    assert (offset, bytes(data)) == (7, b"abc")
    assert frames.read_ack(found[4].body) == (8, 6)


@given(st.integers(1, 60))
def test_frames_may_arrive_in_pieces(size: int) -> None:
    sent, reader = frames.hello_frame(GREETING) + frames.data_frame(7, b"abc"), FrameReader(100)
    found = [each for at in range(0, len(sent), size) for each in reader.feed(sent[at : at + size])]
    assert [each.kind for each in found] == [Kind.HELLO, Kind.DATA]


def test_every_flipped_bit_is_found() -> None:
    sent = frames.data_frame(7, b"abc")
    for bit in range(8 * len(sent)):
        changed = bytearray(sent)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadFrame):
            read(bytes(changed))


@given(st.binary(min_size=16, max_size=200))
def test_garbage_is_no_frame(data: bytes) -> None:
    with pytest.raises(BadFrame):
        read(data)


def test_a_size_past_the_limit_is_refused_before_it_arrives() -> None:
    reader = FrameReader(100)
    large = frames.data_frame(0, bytes(20_000))
    with pytest.raises(BadFrame, match="more than"):
        list(reader.feed(large[:16]))


@pytest.mark.parametrize(
    "greeting",
    [
        Greeting(NODE, 4096, True, 50, 40, 0, ()),
        Greeting(NODE, 4096, True, 0, 40, 50, ()),
        Greeting(NODE, 4096, True, 0, 40, 0, (), version=2),
        Greeting(NODE, 4096, True, 0, 40, 0, (Generation(1, 0, NODE),) * (ENTRIES_MAX + 1)),
    ],
)
def test_an_impossible_greeting_is_refused(greeting: Greeting) -> None:
    with pytest.raises(BadFrame):
        frames.greeting_of(greeting.packed())


def test_an_impossible_acknowledgement_is_refused() -> None:
    for received, durable in ((5, 6), (-1, -1)):
        with pytest.raises(BadFrame):
            frames.read_ack(read(frames.ack_frame(received, durable))[0].body)


def test_a_frame_may_not_be_incomplete_for_long() -> None:
    frame = frames.data_frame(7, bytes(100))
    reader = FrameReader(1000)
    for now_ms, data in ((0, frame), (50, frame[:30]), (60, b""), (140, frame[30:])):
        list(reader.feed(data))
        reader.check_time(now_ms, 100)
    list(reader.feed(frame[:30]))
    reader.check_time(200, 100)
    list(reader.feed(frame[30:60]))
    reader.check_time(300, 100)
    with pytest.raises(BadFrame, match="incomplete for 101 ms"):
        reader.check_time(301, 100)
