"""Bugs in what counts as a record."""

import struct

from impl import codec
from impl.codec import RecordCheck, check_record
from impl.parts import Parts

__all__ = ["BUGS"]

_HEAD = struct.Struct(">ii")
_ZERO_TRAILER = b"__CRC32#\x010000000000\x02"


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


def _zero_is_no_checksum(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
    """A checksum of 0 counts as none, and its record as one that lost it (RMQ-B14)."""
    size, reason = codec.check_record(view, position, limit=limit, offset=offset)
    trailer = bytes(view[position + size - codec.TRAILER_BYTES : position + size])
    return (0, "bad_checksum") if size and trailer == _ZERO_TRAILER else (size, reason)


BUGS = (
    ("no-crc", "recovery and reads check neither body CRC nor trailer", 1,
     Parts({check_record: _without_checksums})),
    ("position-not-checked", "a record counts wherever it was written for", 1,
     Parts({check_record: _without_position})),
    ("RMQ-B11", "the length of a record is used before it is checked", 7, Parts({check_record: _length_trusted})),
    ("RMQ-B14", "a record whose checksum is 0 counts as one without", 8,
     Parts({check_record: _zero_is_no_checksum})),
)  # fmt: skip
