"""Read `config/durableFloor`: the physical offset below which the log was once durable.

Source: docs/format.md, section 8.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

__all__ = ["FLOOR_BYTES", "Floor", "parse_durable_floor"]

FLOOR_BYTES = 512
_FLOOR = struct.Struct(">8sqqI")
_MAGIC = b"TPFLOOR1"


@dataclass(frozen=True, slots=True)
class Floor:
    """The durable floor.

    Everything below physical offset `offset` was flushed; log files had `file_bytes` bytes.
    """

    offset: int
    file_bytes: int


def parse_durable_floor(stored: bytes) -> Floor | None:
    """Return the floor; None if size, magic or checksum is wrong, or the offset negative."""
    if len(stored) != FLOOR_BYTES:
        return None
    magic, offset, file_bytes, checksum = _FLOOR.unpack_from(stored)
    if magic != _MAGIC or checksum != zlib.crc32(stored[:24]) or offset < 0:
        return None
    return Floor(int(offset), int(file_bytes))
