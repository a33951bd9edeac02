"""Encode and check entries as DLedger 0.2.3 stores them, with checksums.

DLedger has the fields of the checksums and leaves them 0 (L6).

| offset | bytes | field |
|---|---|---|
| 0 | 4 | magic: 1, or -1 for a blank up to the end of the file |
| 4 | 4 | size: 48 and the body |
| 8 | 8 | index of the entry, from 0 |
| 16 | 8 | term |
| 24 | 8 | position of this entry in all data files |
| 32 | 4 | channel: 0 |
| 36 | 4 | CRC-32 of the fields before it, with the one of the body. DLedger writes 0 |
| 40 | 4 | CRC-32 of the body. DLedger writes 0 |
| 44 | 4 | size of the body |
| 48 | | body |

An index unit has 32 bytes: magic, position, size, index, term. All numbers are big-endian.

Source: `DLedgerEntryCoder`, `DLedgerMmapFileStore` of DLedger 0.2.3.
"""

import struct
from typing import NamedTuple
from zlib import crc32

__all__ = [
    "BLANK",
    "BLANK_BYTES_MIN",
    "HEADER_BYTES",
    "MAGIC",
    "UNIT_BYTES",
    "Found",
    "blank",
    "checked",
    "entry",
    "skimmed",
    "unit",
    "unit_of",
]

MAGIC, BLANK = 1, -1
_HEADER = struct.Struct(">iiqqqiIIi")
_UNIT = struct.Struct(">iqiqq")
_BLANK = struct.Struct(">ii")
_SEALED = struct.Struct(">iqqqI")
HEADER_BYTES, UNIT_BYTES, BLANK_BYTES_MIN = _HEADER.size, _UNIT.size, _BLANK.size


class Found(NamedTuple):
    """An entry that was read and checked. `is_sealed` is whether it has checksums."""

    place: int
    term: int
    position: int
    body: bytes
    is_sealed: bool


def entry(index: int, term: int, position: int, body: bytes) -> bytes:
    """Return the bytes of an entry."""
    size, of_body = HEADER_BYTES + len(body), crc32(body)
    seal = _seal(size, index, term, position, of_body)
    return _HEADER.pack(MAGIC, size, index, term, position, 0, seal, of_body, len(body)) + body


def blank(size_bytes: int) -> bytes:
    """Return the first bytes of the blank that fills the end of a file. Zeros follow."""
    return _BLANK.pack(BLANK, size_bytes)


def checked(data: bytes | memoryview, position: int) -> Found | None:
    """Return the entry at the begin of some bytes, or None if they are none for this position."""
    if len(data) < HEADER_BYTES:
        return None
    magic, size, index, term, place, channel, seal, of_body, body_bytes = _HEADER.unpack_from(data)
    if magic != MAGIC or channel or place != position or size != HEADER_BYTES + body_bytes or body_bytes < 0:
        return None
    if size > len(data) or index < 0 or term < 0:
        return None
    body = bytes(data[HEADER_BYTES:size])
    is_sealed = bool(seal or of_body)
    if is_sealed and (of_body != crc32(body) or seal != _seal(size, index, term, place, of_body)):
        return None
    return Found(index, term, place, body, is_sealed)


def skimmed(data: bytes, position: int, place: int, term: int) -> list[tuple[int, int, int]]:
    """Return position, term and size of the entries at the begin of a block.

    The first entry is that of a place, after one of a term. The list ends at the first one that `checked` refuses, that
    has no checksums, or that contradicts the ones before it.
    """
    rows: list[tuple[int, int, int]] = []
    unpack, seal_of = _HEADER.unpack_from, _SEALED.pack
    view = memoryview(data)
    at, last = 0, len(data) - HEADER_BYTES
    while at <= last:
        magic, size, index, entry_term, begin, channel, seal, of_body, body_bytes = unpack(data, at)
        end = at + size
        if (
            magic != MAGIC
            or channel
            or index != place
            or begin != position
            or entry_term < term
            or body_bytes < 0
            or size != HEADER_BYTES + body_bytes
            or end > len(data)
            or of_body != crc32(view[at + HEADER_BYTES : end])
            or seal != (crc32(seal_of(size, index, entry_term, begin, of_body)) or 1)
        ):
            break
        rows.append((begin, entry_term, size))
        at, place, term, position = end, place + 1, entry_term, position + size
    return rows


def unit(index: int, term: int, position: int, size_bytes: int) -> bytes:
    """Return the bytes of an index unit."""
    return _UNIT.pack(MAGIC, position, size_bytes, index, term)


def unit_of(data: bytes) -> tuple[int, int, int, int] | None:
    """Return index, term, position and size of a unit, or None if the bytes are none."""
    if len(data) != UNIT_BYTES:
        return None
    magic, position, size, index, term = _UNIT.unpack(data)
    return (index, term, position, size) if magic == MAGIC else None


def _seal(size: int, index: int, term: int, position: int, of_body: int) -> int:
    return crc32(_SEALED.pack(size, index, term, position, of_body)) or 1
