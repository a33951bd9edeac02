"""The frames of the protocol "tornpage"; framing.py has their headers and checksums.

    HELLO     slave to master: a greeting
    WELCOME   master to slave: action (u8), zero (7), position (i64), a greeting
    DATA      master to slave: offset (i64), bytes of the log
    PING      master to slave: end of the log (i64)
    ACK       slave to master: received offset (i64), durable offset (i64)
    REFUSAL   either direction: a sentence in UTF-8; the sender then ends the link
    greeting  version (u16), has a log (u8), zero (u8), count of generations (u32), node (16), file size (i64),
              begin, end and flushed offset of the log (3 x i64), generations: number (i64), start (i64), token (16)

Integers are big-endian. RocketMQ accepts any size, negative ones too (R15 and R16), and its protocol has no checksum.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from tornpage.impl.replication.framing import HEAD_BYTES, BadFrame, Frame, Framing, frame_of
from tornpage.impl.replication.generations import ENTRIES_MAX, TOKEN_BYTES, Generation

__all__ = [
    "FRAME_BYTES_MAX",
    "VERSION",
    "Action",
    "BadFrame",
    "Frame",
    "FrameReader",
    "Greeting",
    "Kind",
    "ack_frame",
    "data_frame",
    "frame_of",
    "greeting_of",
    "hello_frame",
    "ping_frame",
    "read_ack",
    "read_data",
    "read_welcome",
    "refusal_frame",
    "welcome_frame",
]

VERSION = 1
_GREETING = struct.Struct(f">HBxI{TOKEN_BYTES}sqqqq")
_ENTRY = struct.Struct(f">qq{TOKEN_BYTES}s")
_WELCOME = struct.Struct(">B7xq")
_OFFSET = struct.Struct(">q")
_ACK = struct.Struct(">qq")
_GREETING_BYTES_MAX = _WELCOME.size + _GREETING.size + ENTRIES_MAX * _ENTRY.size
_SENTENCE_BYTES_MAX = 1024
FRAME_BYTES_MAX = HEAD_BYTES + max(_GREETING_BYTES_MAX, _SENTENCE_BYTES_MAX)
"""Bytes of the longest frame without data."""


class Kind(IntEnum):
    """The kinds of frames."""

    HELLO = 1
    WELCOME = 2
    DATA = 3
    PING = 4
    ACK = 5
    REFUSAL = 6


class Action(IntEnum):
    """What a master answers to a greeting.

    START: bytes follow from the position on. CUT: the log of the slave is longer than the position, where both logs
    part. GONE: the master has no byte below the position, and the slave needs one.
    """

    START = 1
    CUT = 2
    GONE = 3


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a node states about itself and its log. Offsets are physical."""

    node: bytes
    file_bytes: int
    has_log: bool
    begin: int
    end: int
    flushed: int
    generations: tuple[Generation, ...]
    version: int = VERSION

    def packed(self) -> bytes:
        """Return the greeting as bytes."""
        head = _GREETING.pack(
            self.version,
            self.has_log,
            len(self.generations),
            self.node,
            self.file_bytes,
            self.begin,
            self.end,
            self.flushed,
        )
        return head + b"".join(_ENTRY.pack(*entry) for entry in self.generations)


def hello_frame(greeting: Greeting) -> bytes:
    """Return the first frame of a slave."""
    return frame_of(Kind.HELLO, greeting.packed())


def welcome_frame(action: Action, position: int, greeting: Greeting) -> bytes:
    """Return the first frame of a master."""
    return frame_of(Kind.WELCOME, _WELCOME.pack(action, position) + greeting.packed())


def data_frame(offset: int, data: bytes | memoryview) -> bytes:
    """Return a frame with bytes of the log."""
    return frame_of(Kind.DATA, _OFFSET.pack(offset), data)


def ping_frame(end: int) -> bytes:
    """Return a heartbeat of a master."""
    return frame_of(Kind.PING, _OFFSET.pack(end))


def ack_frame(received: int, durable: int) -> bytes:
    """Return an acknowledgement."""
    return frame_of(Kind.ACK, _ACK.pack(received, durable))


def refusal_frame(sentence: str) -> bytes:
    """Return the last frame of a link."""
    return frame_of(Kind.REFUSAL, sentence.encode()[:_SENTENCE_BYTES_MAX])


def greeting_of(body: bytes) -> Greeting:
    """Read a greeting. Raises BadFrame."""
    if len(body) < _GREETING.size:
        raise BadFrame("a greeting is too short")
    version, has_log, count, node, file_bytes, begin, end, flushed = _GREETING.unpack_from(body)
    if version != VERSION:
        raise BadFrame(f"the peer has version {version} of the protocol, this node has {VERSION}")
    if len(body) != _GREETING.size + count * _ENTRY.size or count > ENTRIES_MAX:
        raise BadFrame("a greeting has another size than its generations need")
    if has_log not in (0, 1) or not 0 <= begin <= end or not 0 <= flushed <= end:
        raise BadFrame(f"a greeting states a log from {begin} to {end}, flushed up to {flushed}")
    entries = tuple(Generation(*_ENTRY.unpack_from(body, _GREETING.size + at * _ENTRY.size)) for at in range(count))
    return Greeting(node, file_bytes, bool(has_log), begin, end, flushed, entries, version)


def read_welcome(body: bytes) -> tuple[Action, int, Greeting]:
    """Read action, position and greeting of a master. Raises BadFrame."""
    if len(body) < _WELCOME.size:
        raise BadFrame("a welcome is too short")
    action, position = _WELCOME.unpack_from(body)
    if action not in tuple(Action) or position < 0:
        raise BadFrame(f"a welcome has action {action} at {position}")
    return Action(action), position, greeting_of(body[_WELCOME.size :])


def read_data(body: bytes) -> tuple[int, memoryview]:
    """Read offset and bytes of a frame of data. Raises BadFrame."""
    if len(body) <= _OFFSET.size:
        raise BadFrame("a frame of data is empty")
    (offset,) = _OFFSET.unpack_from(body)
    return offset, memoryview(body)[_OFFSET.size :]


def read_ack(body: bytes) -> tuple[int, int]:
    """Read received and durable offset. Raises BadFrame."""
    if len(body) != _ACK.size:
        raise BadFrame(f"an acknowledgement has {len(body)} bytes")
    received, durable = _ACK.unpack(body)
    if not 0 <= durable <= received:
        raise BadFrame(f"an acknowledgement has {received} received and {durable} durable")
    return received, durable


class FrameReader(Framing):
    """Splits the bytes of one link into frames.

    It holds at most one incomplete frame, and no more bytes of it than arrived: `data_bytes_max` and a header, or the
    longest greeting.
    """

    def __init__(self, data_bytes_max: int) -> None:
        super().__init__(Kind, max(_OFFSET.size + data_bytes_max, _GREETING_BYTES_MAX, _SENTENCE_BYTES_MAX))
