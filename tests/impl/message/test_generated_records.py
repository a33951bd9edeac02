"""Test generated records: another decoder reads them and notices damage."""

import socket
import zlib

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.impl.records import V4_LOOPBACK, check, record_of
from tornpage.impl.message import codec
from tornpage.impl.message.hosts import Host
from tornpage.impl.message.message import Message
from tornpage.properties.decode.record import Record, parse_properties
from tornpage.properties.decode.record import decode_record as decode_independently

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
OFFSET = st.integers(0, (1 << 63) - 1)
HOSTS = st.tuples(st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str), I32)
WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0\x01\x02"), min_size=1, max_size=12)
TOPICS = WORD.filter(lambda topic: "/" not in topic and topic not in (".", ".."))
PAIRS = st.dictionaries(WORD, WORD, max_size=4)
MESSAGES = st.builds(
    Message,
    topic=TOPICS,
    body=st.binary(max_size=700),
    queue_id=st.integers(0, (1 << 31) - 1),
    properties=PAIRS | PAIRS.map(lambda pairs: "\x02".join(f"{n}\x01{v}" for n, v in pairs.items())),
    flag=I32,
    sys_flag=I32,
    born_timestamp=I64,
    born_host=HOSTS,
    store_host=HOSTS,
    reconsume_times=I32,
    prepared_transaction_offset=I64,
)


@given(message=MESSAGES, trailer=st.booleans(), queue_offset=I64, physical_offset=OFFSET, store_timestamp=I64)
def test_another_decoder_gives_every_field_back(
    message: Message, trailer: bool, queue_offset: int, physical_offset: int, store_timestamp: int
) -> None:
    record = record_of(
        message,
        trailer=trailer,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        store_timestamp=store_timestamp,
    )
    found = decode_independently(bytes(record) + bytes(8), offset=physical_offset)
    assert isinstance(found, Record), found
    assert found.size_bytes == len(record)
    assert found.topic_text == message.topic
    assert found.body == message.body
    assert found.body_crc == zlib.crc32(message.body or b"") & 0x7FFFFFFF
    assert (found.queue_id, found.flag, found.reconsume_times) == (
        message.queue_id,
        message.flag,
        message.reconsume_times,
    )
    assert (found.queue_offset, found.physical_offset) == (queue_offset, physical_offset)
    assert found.store_timestamp == store_timestamp
    assert found.born_timestamp == message.born_timestamp
    assert found.prepared_transaction_offset == message.prepared_transaction_offset
    assert found.sys_flag & ~0x30 == message.sys_flag & ~0x30
    assert (found.born_host, found.store_host) == (plain(message.born_host), plain(message.store_host or V4_LOOPBACK))
    assert (found.checksum is not None) is trailer
    raw = message.properties
    pairs = raw if isinstance(raw, dict) else parse_properties(str(raw).encode())
    assert parse_properties(found.properties) == pairs
    stored = codec.decode_record(memoryview(record), 0)
    assert stored.properties == pairs
    assert (stored.topic, stored.body, stored.sys_flag) == (message.topic, message.body, found.sys_flag)
    assert (stored.born_host, stored.store_host) == (found.born_host, found.store_host)


def plain(pair: Host) -> Host:
    """Write an address as the system does, which may differ from the given text."""
    family = socket.AF_INET6 if ":" in pair[0] else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, pair[0])), pair[1]


@given(message=MESSAGES, data=st.data())
def test_one_flipped_bit_is_refused(message: Message, data: st.DataObject) -> None:
    """The nine bytes that mark the trailer are an exception.

    Without them the record looks like one of 4.9.3.
    """
    record = record_of(message, trailer=True, physical_offset=4096)
    at = data.draw(st.integers(0, len(record) - 1).filter(lambda n: not len(record) - 20 <= n < len(record) - 11))
    record[at] ^= 1 << data.draw(st.integers(0, 7))
    size, reason = check(record, offset=4096)
    assert (size, reason) != (0, None)
    assert size == 0


@given(message=MESSAGES, start=st.integers(0, 511), data=st.data())
def test_a_zeroed_sector_is_refused(message: Message, start: int, data: st.DataObject) -> None:
    record = record_of(message, trailer=True, physical_offset=start)
    file = bytearray(start) + record
    sector = data.draw(st.integers(0, (len(file) - 1) // 512))
    torn = bytearray(file)
    torn[sector * 512 : (sector + 1) * 512] = bytes(min(512, len(file) - sector * 512))
    assume(torn[start:] != record)
    size, reason = codec.check_record(memoryview(torn + bytes(8)), start, limit=len(torn) + 8, offset=start)
    assert size == 0
    assert reason is not None


@given(junk=st.binary(max_size=300), cut=st.integers(0, 300), offset=OFFSET)
def test_check_never_raises_on_any_bytes(junk: bytes, cut: int, offset: int) -> None:
    head = record_of(Message("T", b"body"), physical_offset=offset)
    view = memoryview(bytes(head[:cut]) + junk)
    for position in (0, 1, len(view) // 2, len(view)):
        size, reason = codec.check_record(view, position, limit=len(view), offset=offset)
        assert size == 0 or reason is None


@given(message=MESSAGES, cut=st.integers(0, 120), junk=st.binary(min_size=1, max_size=64))
def test_check_and_the_other_decoder_agree_on_damage(message: Message, cut: int, junk: bytes) -> None:
    record = record_of(message, trailer=False)
    record[cut : cut + len(junk)] = junk
    data = bytes(record) + bytes(8)
    size, _ = codec.check_record(memoryview(data), 0, limit=len(data), offset=0)
    assert (size > 0) is isinstance(decode_independently(data, offset=0), Record)
