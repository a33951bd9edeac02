"""The frames of the protocol "tornpage", as bytes.

    frame     0 kind (u8)   1 zero (3)   4 size of the body (u32)   8 CRC-32 of the first 8 bytes (u32)
              12 CRC-32 of the body (u32)   16 body
    HELLO     slave to master: a greeting
    WELCOME   master to slave: action (u8), zero (7), position (i64), a greeting
    DATA      master to slave: offset (i64), bytes of the log
    PING      master to slave: end of the log (i64)
    ACK       slave to master: received offset (i64), durable offset (i64)
    REFUSAL   either direction: a sentence in UTF-8; the sender then ends the link
    greeting  version (u16), has a log (u8), zero (u8), count of generations (u32), node (16), file size (i64),
              begin, end and flushed offset of the log (3 x i64), generations: number (i64), start (i64), token (16)

Integers are big-endian. The size has a checksum of its own: a reader that believed a changed size would wait for bytes
that never come. A frame with another checksum, an unknown kind or a body that is too long ends the link before
any effect. RocketMQ accepts any size, negative ones too (R15 and R16), and its protocol has no checksum.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from isal.isal_zlib import crc32

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
_HEAD = struct.Struct(">B3xIII")
_CHECKED = struct.Struct(">B3xI")
_CHECKSUMS = struct.Struct(">II")
_GREETING = struct.Struct(f">HBxI{TOKEN_BYTES}sqqqq")
_ENTRY = struct.Struct(f">qq{TOKEN_BYTES}s")
_WELCOME = struct.Struct(">B7xq")
_OFFSET = struct.Struct(">q")
_ACK = struct.Struct(">qq")
_GREETING_BYTES_MAX = _WELCOME.size + _GREETING.size + ENTRIES_MAX * _ENTRY.size
_SENTENCE_BYTES_MAX = 1024
FRAME_BYTES_MAX = _HEAD.size + max(_GREETING_BYTES_MAX, _SENTENCE_BYTES_MAX)
"""Bytes of the longest frame without data."""


class Kind(IntEnum):
    """The kinds of frames."""

    HELLO = 1
    WELCOME = 2
    DATA = 3
    PING = 4
    ACK = 5
    REFUSAL = 6


_KINDS = {int(kind): kind for kind in Kind}


class Action(IntEnum):
    """What a master answers to a greeting.

    START: bytes follow from the position on. CUT: the log of the slave is longer than the position, where both logs
    part. GONE: the master has no byte below the position, and the slave needs one.
    """

    START = 1
    CUT = 2
    GONE = 3


class BadFrame(Exception):
    """Bytes that are no frame of the protocol, or not one that may come now."""


class Frame(NamedTuple):
    """One frame whose checksum holds."""

    kind: Kind
    body: bytes


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


def frame_of(kind: Kind, *body: bytes | memoryview) -> bytes:
    """Return a frame as bytes. Its body is given in parts."""
    size_bytes = checksum = 0
    for part in body:
        size_bytes += len(part)
        checksum = crc32(part, checksum)
    checked = _CHECKED.pack(kind, size_bytes)
    return b"".join((checked, _CHECKSUMS.pack(crc32(checked), checksum), *body))


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


class FrameReader:
    """Splits the bytes of one link into frames.

    It holds at most one incomplete frame, and no more bytes of it than arrived: `data_bytes_max` and a header, or the
    longest greeting.
    """

    def __init__(self, data_bytes_max: int) -> None:
        self._held = bytearray()
        self._is_moving = True
        self._moved_ms = 0
        self._body_bytes_max = max(_OFFSET.size + data_bytes_max, _GREETING_BYTES_MAX, _SENTENCE_BYTES_MAX)

    def feed(self, data: bytes | bytearray) -> Iterator[Frame]:
        """Yield each frame that is complete with these bytes. Raises BadFrame."""
        held, position = self._held, 0
        if not held:
            self._is_moving = True
        else:
            held += data
            data = held
        try:
            while (frame := self._frame_at(data, position)) is not None:
                self._is_moving = True
                position += _HEAD.size + len(frame.body)
                yield frame
        finally:
            if data is held:
                del held[:position]
            else:
                held += data[position:]

    def check_time(self, now_ms: int, limit_ms: int) -> None:
        """Raise BadFrame if a frame has been incomplete for too long. Call it after each `feed`."""
        if self._is_moving:
            self._is_moving, self._moved_ms = False, now_ms
        elif now_ms - self._moved_ms > limit_ms:
            raise BadFrame(f"a frame has been incomplete for {now_ms - self._moved_ms} ms")

    def check(self, data: bytes, checksum: int) -> None:
        """Raise BadFrame unless the checksum of a header or a body matches."""
        if checksum != crc32(data):
            raise BadFrame("the checksum of a frame does not match")

    def _frame_at(self, arrived: bytes | bytearray, position: int) -> Frame | None:
        begin = position + _HEAD.size
        if len(arrived) < begin:
            return None
        kind, size_bytes, head_checksum, checksum = _HEAD.unpack_from(arrived, position)
        self.check(bytes(arrived[position : position + _CHECKED.size]), head_checksum)
        if kind not in _KINDS or any(arrived[position + 1 : position + 4]):
            raise BadFrame(f"no frame has the kind {kind}")
        if size_bytes > self._body_bytes_max:
            raise BadFrame(f"a frame states {size_bytes} bytes, more than {self._body_bytes_max}")
        if len(arrived) < begin + size_bytes:
            return None
        with memoryview(arrived) as view, view[begin : begin + size_bytes] as part:
            body = bytes(part)
        self.check(body, checksum)
        return Frame(_KINDS[kind], body)
