"""Read what went over a link, without the store's code.

Source: the table of frames in docs/replication/design.md.
"""

import struct
import zlib
from collections.abc import Iterator

__all__ = ["FrameScan", "frames_described"]

_HEAD = struct.Struct(">B3xIII")
_TWO = struct.Struct(">qq")
_WELCOME, _DATA, _ACK = 2, 3, 5
_KINDS = {1: "HELLO", _WELCOME: "WELCOME", _DATA: "DATA", 4: "PING", _ACK: "ACK", 6: "REFUSAL"}
_ACTIONS = {1: "START", 2: "CUT", 3: "GONE"}


def _frames(sent: bytes | bytearray, at: int = 0) -> Iterator[tuple[int, bytes, int]]:
    """Yield kind, body and end of each whole frame; stop at one whose checksum is wrong."""
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


def frames_described(sent: bytes | bytearray) -> Iterator[tuple[str, int, int]]:
    """Yield a description of each frame, its begin and its end.

    Bytes that are no frame come last.
    """
    begin = 0
    for kind, body, end in _frames(sent):
        yield f"{_KINDS.get(kind, f'kind {kind}')}{_told(kind, body)}", begin, end
        begin = end
    if begin < len(sent):
        yield "bytes that are no frame", begin, len(sent)


def _told(kind: int, body: bytes) -> str:
    """Return the content of a frame."""
    if kind == _DATA:
        begin = int.from_bytes(body[:8], "big")
        return f" [{begin}, {begin + len(body) - 8})"
    if kind == _ACK and len(body) == _TWO.size:
        received, durable = _TWO.unpack(body)
        return f" received {received}, durable {durable}"
    if kind == _WELCOME:
        return f" {_ACTIONS.get(body[0], body[0])} at {int.from_bytes(body[8:16], 'big')}"
    return f" {body.decode(errors='replace')}" if kind == 6 else ""


class FrameScan:
    """The whole frames of one direction of a link, as far as they were read.

    `data_end` is the highest offset after a frame of data, 0 without one. `acknowledgements` are received and durable
    offsets. `is_answered` is whether the answer of a master to a greeting was read.
    """

    def __init__(self) -> None:
        self.data_end = 0
        self.acknowledgements: list[tuple[int, int]] = []
        self.is_answered = False
        self._at = 0

    def read(self, sent: bytes | bytearray, end: int | None = None) -> None:
        """Read the frames that are new since the last call, of the first `end` bytes."""
        for kind, body, end_of_frame in _frames(sent if end is None else sent[:end], self._at):
            self._at = end_of_frame
            if kind == _DATA:
                self.data_end = max(self.data_end, int.from_bytes(body[:8], "big") + len(body) - 8)
            elif kind == _ACK:
                self.acknowledgements.append(_TWO.unpack(body))
            else:
                self.is_answered = self.is_answered or kind == _WELCOME
