"""Hosts as stored in the log, and message ids, which hold a host and a physical offset.

A host is 4 or 16 address bytes and the port as i32. Source: docs/format.md, "Host"; `MessageDecoder`.
"""

import socket
import struct
from functools import lru_cache

__all__ = ["Host", "host_bytes", "host_text", "message_id"]

Host = tuple[str, int]
"""IPv4 or IPv6 address as text, and port."""

_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")


@lru_cache(maxsize=1024)
def host_bytes(host: Host) -> bytes:
    """Return the 8 or 20 bytes of a host. Raises ValueError for an invalid host."""
    address, port = host
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.inet_pton(family, address) + _I32.pack(port)
    except (OSError, struct.error, UnicodeError) as error:
        raise ValueError(f"invalid host {host!r}: use a numeric address and a port") from error


@lru_cache(maxsize=1024)
def host_text(packed: bytes) -> Host:
    """Return the host stored in 8 or 20 bytes."""
    family = socket.AF_INET if len(packed) == 8 else socket.AF_INET6
    return socket.inet_ntop(family, packed[:-4]), _I32.unpack(packed[-4:])[0]


def message_id(store_host: Host, physical_offset: int) -> str:
    """Return the offset message id, 32 or 56 upper-case hexadecimal digits.

    Source: `MessageDecoder.createMessageId`.
    """
    return (host_bytes(store_host) + _I64.pack(physical_offset)).hex().upper()
