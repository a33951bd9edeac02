"""Compare readers of records with the lab's decoder, and readers of units.

Records are built here from docs/format.md, section 3. The wrong bytes are at the limits of each field: sizes, magic
number, place, the lengths of body, topic and properties, checksums, and the end of the file.
"""

import random
import socket
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tornpage.impl.message import codec
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember
from tornpage.impl.queue import units
from tornpage.properties.decode.record import Bad, Blank, Record, decode_record, drops_joined_pairs
from tornpage.properties.judge.buffers import ExpectedBuffer, message_is_right
from tornpage.properties.lockstep.functions.comparing import REFUSED, is_answered, is_value

__all__ = ["check"]

_HEAD, _AFTER_HOST, _I64, _I32 = (
    struct.Struct(">iIiiiqqiq"),
    struct.Struct(">iqi"),
    struct.Struct(">q"),
    struct.Struct(">i"),
)
_MAGIC, _BLANK_MAGIC, _TRAILER = 0xDAA320A7, 0xCBD43194, b"__CRC32#\x01"
_HOSTS = (("127.0.0.1", 10911), ("255.0.255.1", 0), ("::1", 7), ("fe80:1::ff", (1 << 31) - 1))
_TOPICS = (b"T", b"x" * 127, "té".encode())
_BODIES = (b"", b"b", bytes(range(256)), b"\xff" * 31)
_TEXTS = (
    b"",
    b"KEYS\x01k",
    b"KEYS\x01k\x02",
    b"TAGS\x01a\x02WAIT\x01true\x02",
    b"x" * 25,
    b"a\x01b\x01c\x02d\x01e\x02",
)
_FRAMED = ("bad_body_crc", "nul_in_topic", "nul_in_properties", "bad_checksum")
"""What is wrong with a record whose lengths, place and magic number are right."""
_PREFILL_BYTES, _PLAIN_UNIT = 0x7FFFFFFF, struct.pack(">qiq", 0, 1, 0)
_BEFORE_BYTES, _RECORDS = (13, 13, 13, 33_000), 8


@dataclass(frozen=True, slots=True)
class _Made:
    """A record at a position of a file of `limit` bytes, whose physical offset is `offset`."""

    content: bytes
    position: int
    limit: int
    offset: int


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    for _ in range(_RECORDS):
        made = _made(rng)
        _is_read(made)
        for harmed in _harmed(made, rng):
            _is_judged(harmed)
    for remaining in (8, 9, 1 << 20):
        blank = codec.encode_blank(remaining)
        is_value("the blank of a file", _I32.pack(remaining) + _BLANK_MAGIC.to_bytes(4, "big"), bytes(blank))
    _client_batches(rng)
    _units(rng)
    for sys_flag in range(64):
        is_value("whether a record has a unit", not sys_flag & 4, codec.has_consume_queue(sys_flag))
    for text in (_TRAILER + b"1234567890\x02", b"a\x01b\x02" + _TRAILER + b"0123456789x"):
        is_value("whether properties end like a trailer", True, codec.ends_like_trailer(text))
        is_value("whether properties end like a trailer", False, codec.ends_like_trailer(text + b"\x02"))
        is_value(
            "whether properties end like a trailer",
            False,
            codec.ends_like_trailer(text[1:] if len(text) < 21 else text[:-1]),
        )


def _units(rng: random.Random) -> None:
    """Compare what units say, at their limits, and how many units lead a file of a queue."""
    for offset, size in ((0, 1), (0, 0), (-1, 9), (5, -1), (0, _PREFILL_BYTES), (1, _PREFILL_BYTES), (1 << 62, 7)):
        for code in (0, 1, -1):
            unit = units.Unit(offset, size, code)
            found = unit.is_possible, unit.is_prefill, unit.end_offset
            expected = offset > -1 and size > 0, (offset, size, code) == (0, _PREFILL_BYTES, 0), offset + size
            is_value(f"what {unit} says", expected, found)
            data = struct.pack(">qiq", offset, size, code)
            is_value(f"the bytes of {unit}", [unit], list(units.units_in(data)))
            for end in (b"", bytes(20), struct.pack(">qiq", -1, 9, 0), struct.pack(">qiq", 9, -1, 0)):
                before, after = rng.randrange(9), rng.randrange(9) if end else 0
                view = memoryview(_PLAIN_UNIT * before + data + end + (end or b"") * after)
                expected_count = before + (1 if unit.is_possible else 0)
                is_answered("how many units lead a file", expected_count, units.count_possible, view)
    is_answered("how many units lead an empty file", 0, units.count_possible, memoryview(b""))
    is_value("the bytes of pre-fill", struct.pack(">qiq", 0, _PREFILL_BYTES, 0), units.PREFILL)


def _client_batches(rng: random.Random) -> None:
    """Compare the body of a client batch, with flags at the limits of 32 bits."""
    for flag in (0, -(1 << 31), (1 << 31) - 1, -(1 << 31) - 1, 1 << 31):
        body, text = rng.choice(_BODIES), rng.choice(("", "KEYS\x01k", "é" * 9))
        members = [BatchMember(body, text, flag), BatchMember(b"", "", 7)]
        expected: object = REFUSED
        if -(1 << 31) <= flag < 1 << 31:
            pieces = ((each.body, str(each.properties).encode(), each.flag) for each in members)
            expected = b"".join(
                struct.pack(">iiiii", 22 + len(data) + len(text), 0, 0, flag, len(data))
                + data
                + struct.pack(">h", len(text))
                + text
                for data, text, flag in pieces
            )
        is_answered(f"the body of a batch with flag {flag}", expected, encode_batch_body, members)
    is_answered("the body of a batch without a message", REFUSED, encode_batch_body, [])


def _packed(host: tuple[str, int]) -> bytes:
    family = socket.AF_INET6 if ":" in host[0] else socket.AF_INET
    return socket.inet_pton(family, host[0]) + _I32.pack(host[1])


def _made(rng: random.Random) -> _Made:
    """Return a valid record, placed by the store."""
    born, host = rng.choice(_HOSTS), rng.choice(_HOSTS)
    topic, body, text, trailer = rng.choice(_TOPICS), rng.choice(_BODIES), rng.choice(_TEXTS), rng.random() < 0.6
    sys_flag = rng.choice((0, 4, 8, 12)) | 0x10 * (":" in born[0]) | 0x20 * (":" in host[0])
    number, offset, store_ms = rng.randrange(1 << 40), rng.randrange(1 << 40), rng.randrange(1 << 42)
    text = text + b"\x02" if trailer and text and not text.endswith(b"\x02") else text
    properties_bytes = len(text) + (20 if trailer else 0)
    before_body = 80 + len(_packed(born)) + len(_packed(host)) - 8
    size = before_body + len(body) + 1 + len(topic) + 2 + properties_bytes
    crc = zlib.crc32(body) & 0x7FFFFFFF
    flag, born_ms, retries = rng.randrange(-5, 1 << 20), rng.randrange(1 << 42), rng.randrange(99)
    head = _HEAD.pack(size, _MAGIC, crc, rng.randrange(9), flag, 0, 0, sys_flag, born_ms)
    tail = bytes((len(topic),)) + topic + struct.pack(">h", properties_bytes) + text
    unplaced = head + _packed(born) + bytes(8) + _packed(host) + _AFTER_HOST.pack(retries, rng.randrange(99), len(body))
    placed = bytearray(unplaced + body + tail)
    expected = bytearray(placed)
    struct.pack_into(">qq", expected, 20, number, offset)
    _I64.pack_into(expected, 48 + len(_packed(born)), store_ms)
    if trailer:
        digits = f"{zlib.crc32(expected) & 0x7FFFFFFF:010d}"[::-1].encode()
        expected += _TRAILER + digits + b"\x02"
    codec.place_record(placed, number, offset, store_ms, trailer)
    is_value("a placed record", bytes(expected), bytes(placed))
    before, after = bytes(rng.choice(_BEFORE_BYTES)), bytes(rng.choice((8, 9, 40)))
    content = before + bytes(expected) + after
    return _Made(content, len(before), len(content), offset)


def _decoded(made: _Made) -> Record | Blank | Bad:
    """Return what the lab reads. The file may end before the bytes that it should have."""
    return decode_record(made.content, made.position, offset=made.offset, room_bytes=made.limit - made.position)


def _is_read(made: _Made) -> None:
    """Compare each reader of a valid record."""
    record, view, position = _decoded(made), memoryview(made.content), made.position
    assert isinstance(record, Record), record
    _is_judged(made)
    topic_at = position + made.content[position:].index(bytes((len(record.topic),)) + record.topic + struct.pack(
        ">h", len(record.properties)) + record.properties) + 1  # fmt: skip
    for what, expected, found in (
        ("the topic", (topic_at, topic_at + len(record.topic), record.sys_flag), codec.topic_in_record(view, position)),
        ("the queue", (record.topic, record.queue_id, record.queue_offset, record.sys_flag),
            codec.queue_of_record(view, position)),
        ("the size", record.size_bytes, codec.size_of_record(view, position)),
        ("the store time", record.store_timestamp, codec.store_timestamp_of_record(view, position)),
        ("the properties", record.properties.decode(errors="replace"), codec.properties_of_record(view, position)),
    ):  # fmt: skip
        is_value(f"{what} of a record", expected, found)
    whole = ExpectedBuffer(made.offset, record.queue_offset, record.raw, drops_joined_pairs("4.9.3"))
    message_is_right(codec.decode_record(view, position), whole)


def _harmed(made: _Made, rng: random.Random) -> Iterator[_Made]:
    """Yield the record with one wrong byte, at another place, or cut off."""
    record = _decoded(made)
    assert isinstance(record, Record)
    at, size = made.position, record.size_bytes
    topic_at = at + size - len(record.properties) - 2 - len(record.topic) - 1
    body_at = topic_at - len(record.body)
    fields = (at + 3, at + 7, at + 11, at + 35, body_at - 1, body_at - 2, body_at - 4, topic_at,
              topic_at + 1 + len(record.topic), topic_at + 2 + len(record.topic), at + size - 1, at + size - 2,
              at + size - 11, at + size - 12, at + size - 20, at + 39, rng.randrange(at, at + size))  # fmt: skip
    for place in fields:
        for change in (1, -1, 0x80, None):
            content = bytearray(made.content)
            content[place] = 0 if change is None else (content[place] + change) % 256
            yield _Made(bytes(content), at, made.limit, made.offset)
    for place in (topic_at + 1, topic_at + len(record.topic), at + size - 1 - 20):
        content = bytearray(made.content)
        content[place] = 0
        yield _Made(bytes(content), at, made.limit, made.offset)
    yield _Made(made.content, at, made.limit, made.offset + 1)
    for end in (at + size + 8, at + size + 7, at + size, at + size - 1, at + 92, at + 91, at + 8, at + 7):
        yield _Made(made.content[:end], at, made.limit, made.offset)  # a file that is shorter than it should be
        yield _Made(made.content[:end], at, end, made.offset)
    for remaining in (made.limit - at, made.limit - at - 1):
        blank = _I32.pack(remaining) + _BLANK_MAGIC.to_bytes(4, "big")
        yield _Made(made.content[:at] + blank + made.content[at + 8 :], at, made.limit, made.offset)


def _is_judged(made: _Made) -> None:
    """Compare the checks of a record, a blank, or neither."""
    view, position, limit, offset = memoryview(made.content), made.position, made.limit, made.offset
    found = _decoded(made)
    arguments = {"limit": limit, "offset": offset}
    is_record = isinstance(found, Record)
    is_blank = isinstance(found, Blank) and found.size_bytes == limit - position
    size = found.size_bytes if isinstance(found, Record) else 0
    is_framed = is_record or (isinstance(found, Bad) and found.reason in _FRAMED)
    for name, reader, is_right in (("check", codec.check_record, is_record), ("frame", codec.framed_record, is_framed)):
        if name == "frame" and isinstance(found, Bad) and found.reason in ("bad_topic_length", "bad_properties_length"):
            continue  # the frame leaves these to the check, if the lengths add up
        what = f"the {name} of a record that is {found.reason if isinstance(found, Bad) else 'valid or a blank'}"
        is_answered(what, is_right or is_blank, lambda reader=reader: reader(view, position, **arguments)[1] is None)
        if is_record:
            is_answered(what, (size, None), reader, view, position, **arguments)
        elif not is_right:
            is_answered(what, 0, lambda reader=reader: reader(view, position, **arguments)[0])
