"""Decode one commit log record, or return the exact reason why there is none.

    0       4       8       12      16      20             28             36      40             48
    | size  | magic | crc   | queue | flag  | queue_offset | physical     | flags | born time    |
    48          48+b           56+b         56+b+s    60+b+s     68+b+s  72+b+s
    | born host | store time   | store host | retries | prepared | body n | body … | n | topic | n | properties |

b and s are 8 (IPv4) or 20 (IPv6), chosen by two bits of the system flags. Every integer is big-endian and signed. This
is the lab's own decoder: it is written from the format, shares no code with the store and needs the standard library
only.

A valid record has the right magic, place (its stored physical offset is the place where it was found), sum of lengths,
topic length (1 to 127), properties length and body checksum. The eight bytes kept free at the end of every file are
free after it. Neither topic nor properties contain a NUL byte. If the last 20 bytes begin like a checksum trailer, the
trailer is right too; a record without a trailer is valid.

Source: docs/format.md, sections 2 to 5 (RocketMQ's `CommitLog.checkMessageAndReturnSize` checks less).
"""

from __future__ import annotations

import re
import socket
import struct
import zlib
from dataclasses import dataclass, field
from mmap import mmap
from typing import Final, Literal, TypeAlias

__all__ = [
    "BLANK_MAGIC",
    "END_RESERVE_BYTES",
    "RECORD_BYTES_MIN",
    "RECORD_MAGIC",
    "TRAILER_BYTES",
    "Bad",
    "Blank",
    "Host",
    "Readable",
    "Reason",
    "Record",
    "decode_record",
    "drops_joined_pairs",
    "message_id",
    "parse_properties",
    "trailer_of",
]

Readable: TypeAlias = bytes | bytearray | memoryview | mmap
"""What can be decoded: any object that gives bytes for a slice. A memoryview must have item size 1."""

Host: TypeAlias = tuple[str, int]
"""Address text (IPv6 in its shortest form) and port."""

Reason = Literal[
    "bad_body_crc",
    "bad_checksum",
    "bad_length",
    "bad_magic",
    "bad_position",
    "bad_properties_length",
    "bad_topic_length",
    "nul_in_properties",
    "nul_in_topic",
    "over_limit",
    "past_end",
    "zero_header",
]
"""Why there is no valid record.

`zero_header`: the first eight bytes are zero, so nothing begins here. `bad_magic`: neither magic. `bad_position`:
written for another place. `past_end`: would extend past the end of the file or of the available bytes. `bad_length`:
the lengths do not add up. `over_limit`: larger than the limit of the reader (only readers of whole stores report this).
"""

RECORD_MAGIC: Final = 0xDAA320A7
BLANK_MAGIC: Final = 0xCBD43194
END_RESERVE_BYTES: Final = 8
RECORD_BYTES_MIN: Final = 92
TRAILER_BYTES: Final = 20

_CRC_MASK = 0x7FFFFFFF
_BORN_V6, _STORE_V6 = 0x10, 0x20
_START = struct.Struct(">iI")
_HEAD = struct.Struct(">iIIiiqqiq")
_AFTER_BORN_HOST = struct.Struct(">q")
_AFTER_STORE_HOST = struct.Struct(">iqi")
_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")
_I16 = struct.Struct(">h")
_PLACE_AT = 28
_TRAILER_MARK = b"__CRC32#\x01"
_TRAILER_NAME = "__CRC32#"
_RELEASE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){2}", re.ASCII)
_LAST_THAT_DROPS = (4, 9, 0)

assert _START.size == END_RESERVE_BYTES
assert _HEAD.size == 48
assert _HEAD.size + 8 + _AFTER_BORN_HOST.size + 8 + _AFTER_STORE_HOST.size + 1 + 2 + 1 == RECORD_BYTES_MIN
assert len(_TRAILER_MARK) + 10 + 1 == TRAILER_BYTES


@dataclass(frozen=True, slots=True)
class Record:
    """A valid record: every field as stored, and its bytes.

    `offset` is the physical offset where the record was found. Times are milliseconds since 1970. `properties` is the
    stored string with its trailer, `checksum` the trailer's value or None, and `raw` the whole record.
    """

    offset: int
    size_bytes: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: Host
    store_timestamp: int
    store_host: Host
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes = field(repr=False)
    topic: bytes
    properties: bytes
    checksum: int | None
    raw: bytes = field(repr=False)

    @property
    def end_offset(self) -> int:
        """Physical offset of the first byte after the record."""
        return self.offset + self.size_bytes

    @property
    def topic_text(self) -> str:
        """Topic as text; bytes that are not UTF-8 become U+FFFD, as in a Java string."""
        return self.topic.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Blank:
    """The end mark of a file; readers continue with the next file.

    `size_bytes` is the stored length. A correct one equals the bytes left in the file, but readers do not use it.
    """

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Bad:
    """A place without a valid record.

    `field` is the first wrong field in the order of the format.
    """

    offset: int
    reason: Reason
    field: str


def decode_record(
    buffer: Readable, position: int = 0, *, offset: int, room_bytes: int | None = None
) -> Record | Blank | Bad:
    """Decode the bytes at `position` of `buffer`, which is the physical offset `offset`.

    `room_bytes` is the distance to the nominal end of the file (default: to the end of the buffer). With it the reserve
    of eight bytes is checked even if the buffer ends earlier. No bytes make it raise, and it copies at most one record.

    Source: docs/format.md, section 3, "Valid record".
    """
    available = max(0, len(buffer) - position)
    room = available if room_bytes is None else room_bytes
    if min(available, room) < END_RESERVE_BYTES:
        return Bad(offset, "past_end", "size")
    size, magic = _START.unpack_from(buffer, position)
    if magic == BLANK_MAGIC:
        return Blank(offset, size)
    if magic != RECORD_MAGIC:
        return Bad(offset, "bad_magic", "magic") if size or magic else Bad(offset, "zero_header", "magic")
    if available < _HEAD.size:
        return Bad(offset, "past_end", "size")
    if _I64.unpack_from(buffer, position + _PLACE_AT)[0] != offset:
        return Bad(offset, "bad_position", "physical_offset")
    if size < RECORD_BYTES_MIN:
        return Bad(offset, "bad_length", "size")
    if size + END_RESERVE_BYTES > room or size > available:
        return Bad(offset, "past_end", "size")
    return _decode_whole(bytes(buffer[position : position + size]), offset)


def _decode_whole(raw: bytes, offset: int) -> Record | Bad:
    """Decode a record whose magic, place and outer size are right."""
    size = len(raw)
    _, _, body_crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born_timestamp = _HEAD.unpack_from(raw)
    born_end = 48 + (20 if sys_flag & _BORN_V6 else 8)
    store_end = born_end + 8 + (20 if sys_flag & _STORE_V6 else 8)
    body_at = store_end + _AFTER_STORE_HOST.size
    if body_at + 4 > size:
        return Bad(offset, "bad_length", "size")
    (store_timestamp,) = _AFTER_BORN_HOST.unpack_from(raw, born_end)
    reconsume_times, prepared_transaction_offset, body_bytes = _AFTER_STORE_HOST.unpack_from(raw, store_end)
    body_end = body_at + body_bytes
    if body_bytes < 0 or body_end + 4 > size:
        return Bad(offset, "bad_length", "body_length")
    topic_end = body_end + 1 + raw[body_end]
    if not 1 <= raw[body_end] <= 127:
        return Bad(offset, "bad_topic_length", "topic_length")
    if topic_end + 2 > size:
        return Bad(offset, "bad_length", "topic_length")
    (properties_bytes,) = _I16.unpack_from(raw, topic_end)
    if properties_bytes < 0:
        return Bad(offset, "bad_properties_length", "properties_length")
    if topic_end + 2 + properties_bytes != size:
        return Bad(offset, "bad_length", "properties_length")
    body, topic, properties = raw[body_at:body_end], raw[body_end + 1 : topic_end], raw[topic_end + 2 :]
    if zlib.crc32(body) & _CRC_MASK != body_crc:
        return Bad(offset, "bad_body_crc", "body_crc")
    if b"\0" in topic:
        return Bad(offset, "nul_in_topic", "topic")
    if b"\0" in properties:
        return Bad(offset, "nul_in_properties", "properties")
    checksum = trailer_of(properties)
    if checksum is not None and checksum != zlib.crc32(raw[:-TRAILER_BYTES]) & _CRC_MASK:
        return Bad(offset, "bad_checksum", "checksum")
    return Record(
        offset=offset,
        size_bytes=size,
        body_crc=body_crc,
        queue_id=queue_id,
        flag=flag,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        sys_flag=sys_flag,
        born_timestamp=born_timestamp,
        born_host=_host(raw[48:born_end]),
        store_timestamp=store_timestamp,
        store_host=_host(raw[born_end + 8 : store_end]),
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared_transaction_offset,
        body=body,
        topic=topic,
        properties=properties,
        checksum=checksum,
        raw=raw,
    )


def trailer_of(properties: bytes) -> int | None:
    """Return the checksum in the trailer of `properties`, None without one, -1 if malformed.

    Bytes that begin like a trailer, 20 bytes before the end, are one. A trailer with a damaged digit must not pass for
    an ordinary property.

    Source: docs/format.md, section 5.
    """
    if len(properties) < TRAILER_BYTES or not properties.startswith(_TRAILER_MARK, len(properties) - TRAILER_BYTES):
        return None
    digits = properties[-11:-1]
    return int(digits[::-1]) if digits.isdigit() and properties.endswith(b"\x02") else -1


def parse_properties(properties: bytes, *, drops_joined: bool = False) -> dict[str, str]:
    """Read a stored properties string as a reader does, without the checksum trailer.

    Pairs are separated by 0x02, name and value by the first 0x01. A pair with an empty name or value is dropped, a
    later pair replaces an earlier one of the same name, and a value may contain further 0x01. With `drops_joined`, a
    pair with a 0x01 inside its value is dropped, as by RocketMQ up to 4.9.0 (`drops_joined_pairs`).

    Source: docs/format.md, section 4 (RocketMQ's `MessageDecoder.string2messageProperties`).
    """
    pairs: dict[str, str] = {}
    for segment in properties.decode("utf-8", "replace").split("\x02"):
        name, separator, value = segment.partition("\x01")
        if drops_joined:
            value = value.rstrip("\x01")
            separator = "" if "\x01" in value else separator
        if name and separator and value and name != _TRAILER_NAME:
            pairs[name] = value
    return pairs


def drops_joined_pairs(version: str) -> bool:
    """Return whether a release of RocketMQ drops a pair with two separators.

    A batch of 4.8.0 and 4.9.0 joins the last pair of a member with the first one of the batch. Raises ValueError if the
    version is not of the form 4.9.3.
    """
    if not _RELEASE.fullmatch(version):
        raise ValueError("give a release of RocketMQ, such as 4.9.3")
    return tuple(map(int, version.split("."))) <= _LAST_THAT_DROPS


def message_id(record: Record) -> str:
    """Return the store-side message id: 32 or 56 upper-case hexadecimal digits.

    It is the store host and the physical offset. Source: docs/format.md, section 3, "Message id" (RocketMQ's
    `MessageDecoder.createMessageId`).
    """
    address, port = record.store_host
    family = socket.AF_INET6 if record.sys_flag & _STORE_V6 else socket.AF_INET
    place = _I32.pack(port) + _I64.pack(record.physical_offset)
    return (socket.inet_pton(family, address) + place).hex().upper()


def _host(stored: bytes) -> Host:
    family = socket.AF_INET if len(stored) == 8 else socket.AF_INET6
    return socket.inet_ntop(family, stored[:-4]), _I32.unpack_from(stored, len(stored) - 4)[0]
