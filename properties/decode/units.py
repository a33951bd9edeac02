"""Decode consume queue files and their extension from bytes in memory.

properties/decode/consumequeue.py draws the layouts and reads real files in pieces. Here the files are those of a
recorded disk and small. No bytes make anything raise.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from tornpage.properties.decode.consumequeue import EXT_ADDRESS_MAX, PREFILL_BYTES, UNIT_BYTES, ExtUnit

__all__ = ["PREFILL_UNIT", "StoredUnit", "decode_ext_unit", "decode_units", "resolved_tags_code"]

StoredUnit = tuple[int, int, int]
"""Physical offset, size, and tags code or extension address, as stored."""

_UNIT = struct.Struct(">qiq")
_EXT = struct.Struct(">hqqh")

PREFILL_UNIT = _UNIT.pack(0, PREFILL_BYTES, 0)
"""Fills the first file of a queue before its first unit."""


def decode_units(data: bytes) -> list[StoredUnit]:
    """Return the units of a queue file or a part of it, without a truncated last unit."""
    return list(_UNIT.iter_unpack(data[: len(data) - len(data) % UNIT_BYTES]))


def decode_ext_unit(files: Mapping[int, bytes], address: int) -> ExtUnit | None:
    """Return an extension unit by its address in the files of its queue, or None.

    `files` are the extension files by base position.
    """
    place = address + 2**63
    base = max((base for base in files if base <= place), default=None)
    if base is None or place - base + _EXT.size > len(files[base]):
        return None
    at, data = place - base, files[base]
    size, tags_code, store_timestamp, bits_bytes = _EXT.unpack_from(data, at)
    if bits_bytes < 0 or size != _EXT.size + bits_bytes or at + size > len(data):
        return None
    return ExtUnit(tags_code, store_timestamp, data[at : at + size])


def resolved_tags_code(unit: StoredUnit, files: Mapping[int, bytes]) -> int | None:
    """Return the tags code of a unit, looked up in the extension if it has an address.

    Returns None if the address leads nowhere.
    """
    code = unit[2]
    if code > EXT_ADDRESS_MAX:
        return code
    found = decode_ext_unit(files, code)
    return None if found is None else found.tags_code
