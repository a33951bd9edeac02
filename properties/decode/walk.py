"""Walk one commit log file: every byte of it belongs to exactly one item that is yielded.

Items come in the order of their offsets. `Record`, `Blank`, `Zeros` and `Unreadable` tile the bytes at hand without
gap or overlap (a `Blank` stands for everything to the end of the file); a `Bad` comes directly before the `Unreadable`
that begins at the same offset and says what was wrong there. After a bad place the walk goes on at the next place
where a valid record begins that was written for exactly that place, so neither stale records nor records inside a body
are taken for real.

No bytes make a walk raise. Cost is linear: each byte is searched for a magic once and checksummed once, unless someone
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
# size, magic, body CRC, physical offset, system flags; and the body length where it is with two IPv4 hosts.
_FAST = struct.Struct(">iII16xqi44xi")
_FAST_START = struct.Struct(">iIxxxxxxxxxxxxxxxxxxxxq")
_TRAILER_MARK = b"__CRC32#\x01"

assert _FAST.size == 88
assert _FAST_START.size == 36


@dataclass(frozen=True, slots=True)
class Zeros:
    """Every byte from `offset` to the end of the file is zero: nothing was written here yet."""

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that were skipped because no valid record begins in them; `reason` is that of their first byte."""

    offset: int
    size_bytes: int
    reason: Reason


Item: TypeAlias = Record | Blank | Zeros | Bad | Unreadable


class Source(Protocol):
    """Where a walk takes its bytes from; positions count from the start of the file."""

    @property
    def end(self) -> int:
        """Return the position behind the last byte at hand; it may shrink when the file does."""
        ...

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` bytes; fewer only at the end."""
        ...

    def next_nonzero(self, position: int) -> int:
        """Return the position of the first byte from `position` on that is not zero, or `end`."""
        ...

    def find(self, needle: bytes, position: int) -> int:
        """Return where `needle` (without zero bytes) next occurs at or behind `position`, or -1."""
        ...


def walk(buffer: Readable, *, base_offset: int, file_bytes: int) -> Iterator[Item]:
    """Yield everything in one log file whose first byte has the physical offset `base_offset`.

    `file_bytes` is the nominal size; a buffer that is shorter ends early, bytes beyond the nominal size are not looked
    at.
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
    """Do what `walk` does with bytes from any source, beginning at `position`.

    A record longer than `record_bytes_max` is not loaded but called bad (`over_limit`), which bounds the memory.
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
    """Return the offsets of the valid records from the start of a file, the offset behind the last, and what stopped
    it.

    What stopped it is None (only zeros or nothing behind the last record), "blank", or the reason a walk would give
    there. This is `walk` for those who judge many images: strict, in order, without decoding what nobody asked for.
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
    """Decode at a position, loading a whole record only when its start says that it belongs here.

    Nothing but that one place is read, unlike by a walk, which searches on behind a bad place.
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
    """Return the next position, at or behind `position`, where a valid record begins; the end if there is none."""
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
    """Bytes that are in memory already."""

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
