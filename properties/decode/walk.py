"""Walk one commit log file: every byte of it belongs to exactly one yielded item.

Items are yielded in the order of their offsets. `Record`, `Blank`, `Zeros` and `Unreadable` cover the bytes without gap
or overlap; a `Blank` covers everything to the end of the file. A `Bad` comes directly before the `Unreadable` at the
same offset and states what is wrong there. After a bad place the walk continues at the next valid record that was
written for exactly its place, so stale records and records inside a body are not mistaken for real ones.

No bytes make a walk raise. Cost is linear: each byte is searched for a magic once and checksummed once, except in
forged records that overlap.

Source: docs/format.md, section 2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tornpage.properties.decode.record import (
    END_RESERVE_BYTES,
    RECORD_BYTES_MIN,
    RECORD_MAGIC,
    Bad,
    Blank,
    Readable,
    Reason,
    Record,
    decode_record,
)

__all__ = ["Item", "Source", "Unreadable", "Zeros", "decode_at", "next_record", "scan", "walk", "walk_source"]

_MAGIC_BYTES = struct.pack(">I", RECORD_MAGIC)
_PLACE = struct.Struct(">q")
_BODY_BYTES = struct.Struct(">i")
# size, magic, body CRC, physical offset, system flags, and the place of the body length with two IPv4 hosts.
_FAST = struct.Struct(">iII16xqi44xi")
_FAST_START = struct.Struct(">iIxxxxxxxxxxxxxxxxxxxxq")
_TRAILER_MARK = b"__CRC32#\x01"

assert _FAST.size == 88
assert _FAST_START.size == 36


@dataclass(frozen=True, slots=True)
class Zeros:
    """Zeros from `offset` to the end of the file: nothing was written there yet."""

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Skipped bytes without a valid record; `reason` is that of their first byte."""

    offset: int
    size_bytes: int
    reason: Reason


Item: TypeAlias = Record | Blank | Zeros | Bad | Unreadable


class Source(Protocol):
    """Source of a walk's bytes. Positions count from the start of the file."""

    @property
    def end(self) -> int:
        """Return the position after the last available byte; it decreases if the file shrinks."""
        ...

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` bytes; fewer only at the end."""
        ...

    def next_nonzero(self, position: int) -> int:
        """Return the position of the first non-zero byte at or after `position`, or `end`."""
        ...

    def find(self, needle: bytes, position: int) -> int:
        """Return the next position of `needle` at or after `position`, or -1.

        `needle` has no zero bytes.
        """
        ...


def walk(buffer: Readable, *, base_offset: int, file_bytes: int) -> Iterator[Item]:
    """Yield the items of one log file whose first byte has the physical offset `base_offset`.

    `file_bytes` is the nominal size. A shorter buffer ends early; bytes past the nominal size are ignored.
    """
    return walk_source(_BufferSource(buffer, file_bytes), base_offset=base_offset, file_bytes=file_bytes)


def walk_source(
    source: Source,
    *,
    base_offset: int,
    file_bytes: int,
    position: int = 0,
    record_bytes_max: int | None = None,
) -> Iterator[Item]:
    """Walk as `walk` does, over bytes from any source, beginning at `position`.

    A record longer than `record_bytes_max` is not loaded but bad (`over_limit`), which bounds the memory.
    """
    while position < source.end:
        offset = base_offset + position
        item = decode_at(source, position, base_offset, file_bytes, record_bytes_max)
        if isinstance(item, Record):
            yield item
            position += item.size_bytes
            continue
        if isinstance(item, Blank):
            yield item
            return
        if item.reason in ("zero_header", "past_end") and source.next_nonzero(position) >= source.end:
            yield Zeros(offset, source.end - position)
            return
        resume = next_record(source, position + 1, base_offset, file_bytes, record_bytes_max)
        yield item
        yield Unreadable(offset, max(resume - position, 1), item.reason)
        position = max(resume, position + 1)


def scan(
    buffer: Readable, *, base_offset: int, file_bytes: int | None = None
) -> tuple[list[int], int, Reason | str | None]:
    """Return the offsets of the valid records from the start, their end, and why it ended.

    The reason is None (only zeros or nothing after the last record), "blank", or the reason that a walk would give
    there. This is a fast `walk` for judges of many images: it stops at the first bad place and decodes no fields.
    """
    data = buffer if isinstance(buffer, bytes) else bytes(buffer)
    limit = len(data) if file_bytes is None else min(len(data), file_bytes)
    room_end = (len(data) if file_bytes is None else file_bytes) - END_RESERVE_BYTES
    unpack, crc32, find = _FAST.unpack_from, zlib.crc32, data.find
    offsets: list[int] = []
    append = offsets.append
    position = 0
    last = limit - RECORD_BYTES_MIN
    while position <= last:
        size, magic, crc, place, flags, body_bytes = unpack(data, position)
        if magic != RECORD_MAGIC or place != base_offset + position or size < RECORD_BYTES_MIN:
            break
        end = position + size
        if end > limit or end > room_end:
            break
        body_at = position + 88
        if flags & 0x30:
            body_at += (12 if flags & 0x10 else 0) + (12 if flags & 0x20 else 0)
            if body_at > end:
                break
            (body_bytes,) = _BODY_BYTES.unpack_from(data, body_at - 4)
        topic_at = body_at + body_bytes
        if body_bytes < 0 or topic_at + 4 > end:
            break
        topic_bytes = data[topic_at]
        properties_at = topic_at + 3 + topic_bytes
        if topic_bytes > 127 or not topic_bytes or properties_at > end:
            break
        properties_bytes = data[properties_at - 2] << 8 | data[properties_at - 1]
        if properties_at + properties_bytes != end or properties_bytes > 32767:
            break
        if crc32(data[body_at:topic_at]) & 0x7FFFFFFF != crc:
            break
        if find(0, topic_at + 1, properties_at - 2) >= 0 or find(0, properties_at, end) >= 0:
            break
        if properties_bytes >= 20 and data[end - 20 : end - 11] == _TRAILER_MARK:
            digits = b"%010d\x02" % (crc32(data[position : end - 20]) & 0x7FFFFFFF)
            if data[end - 11 : end - 1] != digits[9::-1] or data[end - 1] != 2:
                break
        append(base_offset + position)
        position = end
    return offsets, base_offset + position, _stop_reason(data, position, limit, base_offset, room_end)


def _stop_reason(data: bytes, position: int, limit: int, base_offset: int, room_end: int) -> Reason | str | None:
    if position >= limit:
        return None
    room = room_end + END_RESERVE_BYTES - position
    item = decode_record(data[:limit], position, offset=base_offset + position, room_bytes=room)
    if isinstance(item, Blank):
        return "blank"
    assert isinstance(item, Bad), "scan stopped at a record that the decoder accepts"
    if item.reason in ("zero_header", "past_end") and not data[position:limit].strip(b"\0"):
        return None
    return item.reason


def decode_at(
    source: Source, position: int, base_offset: int, file_bytes: int, record_bytes_max: int | None
) -> Record | Blank | Bad:
    """Decode at a position; load a whole record only if its start is right for this place.

    Unlike a walk, it does not search on after a bad place.
    """
    offset, room = base_offset + position, file_bytes - position
    head = source.read(position, _FAST.size)
    if len(head) < _FAST.size:
        return decode_record(head, offset=offset, room_bytes=room)
    size, magic, place = _FAST_START.unpack_from(head)
    if magic != RECORD_MAGIC or place != offset or size < RECORD_BYTES_MIN or size + END_RESERVE_BYTES > room:
        return decode_record(head, offset=offset, room_bytes=room)
    if record_bytes_max is not None and size > record_bytes_max:
        return Bad(offset, "over_limit", "size")
    return decode_record(source.read(position, size), offset=offset, room_bytes=room)


def next_record(source: Source, position: int, base_offset: int, file_bytes: int, record_bytes_max: int | None) -> int:
    """Return the next position of a valid record at or after `position`, or the end."""
    while (found := source.find(_MAGIC_BYTES, position + 4)) >= 0:
        position = found - 4
        place = source.read(position + 28, 8)
        if len(place) == 8 and _PLACE.unpack(place)[0] == base_offset + position:
            item = decode_at(source, position, base_offset, file_bytes, record_bytes_max)
            if isinstance(item, Record):
                return position
        position += 1
    return source.end


class _BufferSource:
    """Bytes in memory as the source of a walk."""

    def __init__(self, buffer: Readable, file_bytes: int) -> None:
        self._data = buffer if isinstance(buffer, bytes) else bytes(buffer)
        self.end = max(0, min(len(self._data), file_bytes))

    def read(self, position: int, size_bytes: int) -> bytes:
        return self._data[position : min(position + size_bytes, self.end)]

    def next_nonzero(self, position: int) -> int:
        size_bytes = 256
        while position < self.end:  # in growing steps, so that a file full of small holes stays linear
            chunk = self._data[position : min(position + size_bytes, self.end)]
            if rest := chunk.lstrip(b"\0"):
                return position + len(chunk) - len(rest)
            position += len(chunk)
            size_bytes *= 2
        return self.end

    def find(self, needle: bytes, position: int) -> int:
        return self._data.find(needle, position, self.end)
