"""Read what went over a link, without the store's code.

Source: the table of frames in docs/replication/design.md.
"""

import struct
import zlib
from collections.abc import Iterator

__all__ = ["acknowledgements", "data_end", "is_answered"]

_HEAD = struct.Struct(">B3xIII")
_TWO = struct.Struct(">qq")
_WELCOME, _DATA, _ACK = 2, 3, 5


def _frames(sent: bytes | bytearray) -> Iterator[tuple[int, bytes, int]]:
    """Yield kind, body and end of each whole frame; stop at one whose checksum is wrong."""
    at = 0
    while at + _HEAD.size <= len(sent):
        kind, size, head_checksum, checksum = _HEAD.unpack_from(sent, at)
        end = at + _HEAD.size + size
        if end > len(sent) or zlib.crc32(bytes(sent[at : at + 8])) != head_checksum:
            return
        body = bytes(sent[at + _HEAD.size : end])
        if zlib.crc32(body) != checksum:
            return
        yield kind, body, end
        at = end


def data_end(arrived: bytes | bytearray) -> int:
    """Return the highest offset after a frame of data that arrived whole, 0 without one."""
    ends = (int.from_bytes(body[:8], "big") + len(body) - 8 for kind, body, _ in _frames(arrived) if kind == _DATA)
    return max(ends, default=0)


def acknowledgements(sent: bytes | bytearray) -> list[tuple[int, int]]:
    """Return received and durable offset of each acknowledgement."""
    return [_TWO.unpack(body) for kind, body, _ in _frames(sent) if kind == _ACK]


def is_answered(arrived: bytes | bytearray) -> bool:
    """Return whether the answer of a master to the greeting has arrived whole."""
    return any(kind == _WELCOME for kind, _, _ in _frames(arrived))
