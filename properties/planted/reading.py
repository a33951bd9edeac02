"""Bugs in what counts as a record."""

import struct

from impl import codec
from impl.codec import RecordCheck
from impl.components import Components

__all__ = ["BUGS"]

_HEAD = struct.Struct(">ii")


def _without_checksums(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Take a record for valid although body CRC or trailer do not match."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason in ("bad_body_crc", "bad_checksum"):
        return int.from_bytes(view[position : position + 4], "big"), None
    return size, reason


def _without_position(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Take a record for valid wherever it was written for (hole H3 of 4.9.3)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    if reason != "bad_position":
        return size, reason
    written_for = int.from_bytes(view[position + 28 : position + 36], "big", signed=True)
    return codec.check_record(view, position, limit=limit, offset=written_for)


def _length_trusted(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """Reach for the last byte of a record before its length is checked (RMQ-B11)."""
    total, magic = _HEAD.unpack_from(view, position)
    if magic == codec.MESSAGE_MAGIC:
        view[position + total - 1]
    return codec.check_record(view, position, limit=limit, offset=offset)


BUGS = (
    ("no-crc", "recovery and reads check neither body CRC nor trailer", 1,
     Components(check_record=_without_checksums)),
    ("position-not-checked", "a record counts wherever it was written for", 1,
     Components(check_record=_without_position)),
    ("RMQ-B11", "the length of a record is used before it is checked", 7, Components(check_record=_length_trusted)),
)  # fmt: skip
