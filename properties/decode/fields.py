"""Split stored bytes into named fields for a hex dump, without judging them.

Names are those of docs/format.md and its drawings of queue and index. Bytes that end early give fewer fields, the last
one truncated. Bytes past the last field are called `rest`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = [
    "Field",
    "checkpoint_fields",
    "entry_fields",
    "extension_fields",
    "floor_fields",
    "header_fields",
    "record_fields",
    "unit_fields",
]

_Layout = tuple[tuple[str, int], ...]

_RECORD_START: _Layout = (
    ("size", 4),
    ("magic", 4),
    ("body_crc", 4),
    ("queue_id", 4),
    ("flag", 4),
    ("queue_offset", 8),
    ("physical_offset", 8),
    ("sys_flag", 4),
    ("born_timestamp", 8),
)
_UNIT: _Layout = (("physical_offset", 8), ("size", 4), ("tags_code", 8))
_EXTENSION: _Layout = (("size", 2), ("tags_code", 8), ("store_timestamp", 8), ("bit_map_length", 2))
_HEADER: _Layout = (
    ("begin_timestamp", 8),
    ("end_timestamp", 8),
    ("begin_offset", 8),
    ("end_offset", 8),
    ("slots_in_use", 4),
    ("next_entry", 4),
)
_ENTRY: _Layout = (("key_hash", 4), ("physical_offset", 8), ("seconds", 4), ("previous", 4))
_CHECKPOINT: _Layout = (("physic_timestamp", 8), ("logics_timestamp", 8), ("index_timestamp", 8))
_FLOOR: _Layout = (("magic", 8), ("offset", 8), ("mapped_file_size", 8), ("checksum", 4))
_BLANK: _Layout = (("size", 4), ("magic", 4))
_BLANK_MAGIC = b"\xcb\xd4\x31\x94"


class Field(NamedTuple):
    """One field: its name, its position in the bytes, and its bytes."""

    name: str
    at: int
    data: bytes


def record_fields(raw: bytes) -> list[Field]:
    """Split a record, a blank, or the bytes in place of one.

    Stored lengths are used as far as the bytes reach.
    """
    if raw[4:8] == _BLANK_MAGIC:
        return _cut(raw, _BLANK)
    flags = int.from_bytes(raw[36:40].ljust(4, b"\0"), "big")
    layout = (
        *_RECORD_START,
        ("born_host", 20 if flags & 0x10 else 8),
        ("store_timestamp", 8),
        ("store_host", 20 if flags & 0x20 else 8),
        ("reconsume_times", 4),
        ("prepared_transaction_offset", 8),
        ("body_length", 4),
    )
    at = sum(size for _, size in layout)
    body = _length(raw, at - 4, ">i")
    topic = _length(raw, at + body, ">b")
    properties = _length(raw, at + body + 1 + topic, ">h")
    tail = (("body", body), ("topic_length", 1), ("topic", topic), ("properties_length", 2), ("properties", properties))
    return _cut(raw, (*layout, *tail))


def unit_fields(raw: bytes) -> list[Field]:
    """Split a consume queue unit."""
    return _cut(raw, _UNIT)


def extension_fields(raw: bytes) -> list[Field]:
    """Split an extension unit."""
    return _cut(raw, (*_EXTENSION, ("bit_map", max(0, len(raw) - 20))))


def header_fields(raw: bytes) -> list[Field]:
    """Split the header of an index file."""
    return _cut(raw, _HEADER)


def entry_fields(raw: bytes) -> list[Field]:
    """Split an index entry."""
    return _cut(raw, _ENTRY)


def checkpoint_fields(raw: bytes) -> list[Field]:
    """Split the checkpoint."""
    return _cut(raw, _CHECKPOINT)


def floor_fields(raw: bytes) -> list[Field]:
    """Split the durable floor."""
    return _cut(raw, _FLOOR)


def _length(raw: bytes, at: int, code: str) -> int:
    """Return a length field, limited to what is possible: from 0 to the number of bytes."""
    stored = raw[at : at + struct.calcsize(code)]
    if len(stored) < struct.calcsize(code):
        return 0
    return min(max(0, int(struct.unpack(code, stored)[0])), len(raw))


def _cut(raw: bytes, layout: _Layout) -> list[Field]:
    fields: list[Field] = []
    at = 0
    for name, size in layout:
        if at < len(raw) and size:
            fields.append(Field(name, at, raw[at : at + size]))
        at += size
    rest = raw[at:]
    if rest.strip(b"\0"):
        fields.append(Field("rest", at, rest))
    return fields
