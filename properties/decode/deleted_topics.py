"""Read `config/deletedTopics`: the deleted topics, each with a physical offset.

Records of a deleted topic below its offset are deleted. The file has big-endian numbers: `TPDELTP1`, a count (4 bytes),
for each topic an offset (8), the length of its name (2) and the name, and at the end the CRC-32 of all of it (4).
"""

from __future__ import annotations

import zlib

__all__ = ["parse_deleted_topics"]

_MAGIC = b"TPDELTP1"
_OFFSET_MAX = 2**63 - 1


def parse_deleted_topics(stored: bytes) -> dict[bytes, int]:
    """Return the offset of each topic. Raises ValueError if the file is not valid."""
    body, checksum = stored[:-4], stored[-4:]
    if body[:8] != _MAGIC or len(body) < 12:
        raise ValueError("this is no list of deleted topics")
    if zlib.crc32(body) != int.from_bytes(checksum, "big"):
        raise ValueError("the list of deleted topics does not have its checksum")
    topics: dict[bytes, int] = {}
    at = 12
    for _ in range(int.from_bytes(body[8:12], "big")):
        if at >= len(body):
            raise ValueError("the list of deleted topics is shorter than it says")
        offset, length = int.from_bytes(body[at : at + 8], "big"), int.from_bytes(body[at + 8 : at + 10], "big")
        if offset > _OFFSET_MAX:
            raise ValueError("the list of deleted topics names an offset that no log has")
        topics[body[at + 10 : at + 10 + length]] = offset
        at += 10 + length
    if at != len(body):
        raise ValueError("the list of deleted topics has another length than it says")
    return topics
