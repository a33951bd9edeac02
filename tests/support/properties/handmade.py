"""Records built by hand from the format page, and the paths of golden stores.

Neither the decoder nor the store is used.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["DATA", "GOLDEN", "blank", "golden_dirs", "properties_of", "record", "vectors"]

_ROOT = Path(__file__).resolve().parents[3]
DATA = _ROOT / "tests" / "data"
GOLDEN = Path(os.environ.get("TORNPAGE_GOLDEN", _ROOT.parent / "shared" / "golden"))
"""All golden stores; two of them are always in tests/data/golden."""


def golden_dirs() -> list[Path]:
    """Return the available golden cases, each once."""
    found = {path.parent.name: path.parent for path in sorted((DATA / "golden").glob("*/expected.json"))}
    if GOLDEN.is_dir():
        found |= {path.parent.name: path.parent for path in sorted(GOLDEN.glob("*/expected.json"))}
    return [found[name] for name in sorted(found)]


def vectors(*kinds: str) -> list[dict[str, Any]]:
    """Return the shared test vectors of these kinds."""
    every = json.loads((DATA / "vectors.json").read_text(encoding="utf-8"))
    return [vector for vector in every if vector["kind"] in kinds]


def properties_of(*pairs: tuple[str, str]) -> bytes:
    """Join pairs as a writer does."""
    return b"\x02".join(name.encode() + b"\x01" + value.encode() for name, value in pairs)


def record(
    offset: int,
    body: bytes = b"body",
    *,
    topic: bytes = b"TopicTest",
    properties: bytes = b"",
    trailer: bool = False,
    queue_id: int = 0,
    flag: int = 0,
    queue_offset: int = 0,
    sys_flag: int = 0,
    born_timestamp: int = 1_700_000_000_000,
    born_host: Sequence[Any] = ("127.0.0.1", 50000),
    store_timestamp: int = 1_700_000_000_001,
    store_host: Sequence[Any] = ("127.0.0.1", 10911),
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
) -> bytes:
    """Lay out one record field by field; `trailer` appends a right checksum."""
    if trailer and properties and not properties.endswith(b"\x02"):
        properties += b"\x02"
    sys_flag |= 0x10 * (":" in born_host[0]) | 0x20 * (":" in store_host[0])
    hosts = [_host(address, port) for address, port in (born_host, store_host)]
    properties_bytes = len(properties) + 20 * trailer
    size = 75 + len(hosts[0]) + len(hosts[1]) + len(body) + len(topic) + properties_bytes
    parts = [
        struct.pack(">iI", size, 0xDAA320A7),
        struct.pack(">I", zlib.crc32(body) & 0x7FFFFFFF),
        struct.pack(">iiqqi", queue_id, flag, queue_offset, offset, sys_flag),
        struct.pack(">q", born_timestamp) + hosts[0],
        struct.pack(">q", store_timestamp) + hosts[1],
        struct.pack(">iq", reconsume_times, prepared_transaction_offset),
        struct.pack(">i", len(body)) + body,
        struct.pack(">B", len(topic)) + topic,
        struct.pack(">H", properties_bytes) + properties,
    ]
    stored = b"".join(parts)
    if trailer:
        checksum = zlib.crc32(stored) & 0x7FFFFFFF
        stored += b"__CRC32#\x01" + "".join(reversed(str(checksum).rjust(10, "0"))).encode() + b"\x02"
    assert len(stored) == size
    return stored


def blank(size_bytes: int) -> bytes:
    """Lay out an end mark and the zeros after it."""
    return struct.pack(">iI", size_bytes, 0xCBD43194) + bytes(size_bytes - 8)


def _host(address: str, port: int) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_pton(family, address) + struct.pack(">i", port)
