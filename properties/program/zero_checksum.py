"""Find a body that gives its record the checksum 0, which is legal but rare (RMQ-B14).

It occurs in one record of 2^31. A CRC is linear: each bit of the body flips a fixed set of bits of the record's
checksum, also through the checksum of the body. The bits to flip solve a system of 31 equations. For some records it
has no solution, because body and checksum of the body cancel out.
"""

import ipaddress
import struct
import zlib

from tornpage.model.message import stored_properties
from tornpage.model.state import Record

__all__ = ["BODY_BYTES_MIN", "checksum_of", "sums_to_zero"]

BODY_BYTES_MIN = 8
_MASK = 0x7FFFFFFF
_TRAILER_BYTES = 20
_START = struct.Struct(">iIiiiqqiq")
_END = struct.Struct(">iqi")


def sums_to_zero(record: Record) -> bytes | None:
    """Return the body with its first 8 bytes changed so that the record's checksum is 0.

    Returns None if there is no such body.
    """
    body = record.message.body or b""
    assert len(body) >= BODY_BYTES_MIN
    start = int.from_bytes(body[:BODY_BYTES_MIN], "big")

    def with_start(bits: int) -> bytes:
        return bits.to_bytes(BODY_BYTES_MIN, "big") + body[BODY_BYTES_MIN:]

    wanted = checksum_of(record, body)
    turned_by = [(1 << number, wanted ^ checksum_of(record, with_start(start ^ 1 << number))) for number in range(64)]
    bits = _bits_for(turned_by, wanted)
    return None if bits is None else with_start(start ^ bits)


def _bits_for(turned_by: list[tuple[int, int]], wanted: int) -> int | None:
    """Return bits of the body that flip exactly the wanted bits of the checksum.

    Method: Gaussian elimination, one bit for each equation.
    """
    leading: dict[int, tuple[int, int]] = {}
    for bits, turned in turned_by:
        bits, turned = _reduced(leading, bits, turned)
        if turned:
            leading[turned.bit_length()] = bits, turned
    bits, left = _reduced(leading, 0, wanted)
    return None if left else bits


def _reduced(leading: dict[int, tuple[int, int]], bits: int, turned: int) -> tuple[int, int]:
    """Return bits and flipped bits after elimination of all leading bits."""
    for length in sorted(leading, reverse=True):
        if turned.bit_length() == length:
            bits, turned = bits ^ leading[length][0], turned ^ leading[length][1]
    return bits, turned


def checksum_of(record: Record, body: bytes) -> int:
    """Return the checksum in the trailer of a record with this body.

    Source: docs/format.md, sections 3 and 4.
    """
    message = record.message
    born, store = (_host(host) for host in (message.born_host, message.store_host))
    host_bits = (0x10 if len(born) == 20 else 0) | (0x20 if len(store) == 20 else 0)
    topic, properties = message.topic.encode(), stored_properties(message, trailer=True)
    data = b"".join(
        (
            _START.pack(
                record.size_bytes,
                0xDAA320A7,
                zlib.crc32(body) & _MASK,
                message.queue_id,
                message.flag,
                record.queue_offset,
                record.offset,
                message.sys_flag & ~0x30 | host_bits,
                message.born_timestamp,
            ),
            born,
            record.store_timestamp.to_bytes(8, "big"),
            store,
            _END.pack(message.reconsume_times, message.prepared_transaction_offset, len(body)),
            body,
            bytes((len(topic),)) + topic,
            (len(properties) + _TRAILER_BYTES).to_bytes(2, "big") + properties,
        )
    )
    assert len(data) == record.size_bytes - _TRAILER_BYTES
    return zlib.crc32(data) & _MASK


def _host(host: tuple[str, int]) -> bytes:
    address, port = host
    return ipaddress.ip_address(address).packed + port.to_bytes(4, "big")
