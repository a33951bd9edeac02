"""Frames with checksums, as the protocols between nodes use them.

    frame     0 kind (u8)   1 zero (3)   4 size of the body (u32)   8 CRC-32 of the first 8 bytes (u32)
              12 CRC-32 of the body (u32)   16 body

Integers are big-endian. The size has a checksum of its own: a reader that believed a changed size would wait for bytes
that never come. A frame with another checksum, an unknown kind or a body that is too long ends the link before any
effect.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from isal.isal_zlib import crc32

__all__ = ["HEAD_BYTES", "BadFrame", "Frame", "Framing", "frame_of"]

_HEAD = struct.Struct(">B3xIII")
_CHECKED = struct.Struct(">B3xI")
_CHECKSUMS = struct.Struct(">II")
HEAD_BYTES = _HEAD.size


class BadFrame(Exception):
    """Bytes that are no frame of the protocol, or not one that may come now."""


class Frame(NamedTuple):
    """One frame whose checksum holds."""

    kind: IntEnum
    body: bytes


def frame_of(kind: int, *body: bytes | memoryview) -> bytes:
    """Return a frame as bytes. Its body is given in parts."""
    size_bytes = checksum = 0
    for part in body:
        size_bytes += len(part)
        checksum = crc32(part, checksum)
    checked = _CHECKED.pack(kind, size_bytes)
    return b"".join((checked, _CHECKSUMS.pack(crc32(checked), checksum), *body))


class Framing:
    """Splits the bytes of one link into frames of the given kinds.

    It holds at most one incomplete frame, and no more bytes of it than arrived: a header and `body_bytes_max`.
    """

    def __init__(self, kinds: type[IntEnum], body_bytes_max: int) -> None:
        self._kinds = {int(kind): kind for kind in kinds}
        self._held = bytearray()
        self._is_moving = True
        self._moved_ms = 0
        self._body_bytes_max = body_bytes_max

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
        if kind not in self._kinds or any(arrived[position + 1 : position + 4]):
            raise BadFrame(f"no frame has the kind {kind}")
        if size_bytes > self._body_bytes_max:
            raise BadFrame(f"a frame states {size_bytes} bytes, more than {self._body_bytes_max}")
        if len(arrived) < begin + size_bytes:
            return None
        with memoryview(arrived) as view, view[begin : begin + size_bytes] as part:
            body = bytes(part)
        self.check(body, checksum)
        return Frame(self._kinds[kind], body)
