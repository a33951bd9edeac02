"""Read `config/derivedFloor`: how far queues and index were durable, and their checksums.

Source: docs/format.md, section 8.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

__all__ = ["parse_derived_floor"]

_MAGIC = b"TPDERIVED1"


def parse_derived_floor(stored: bytes) -> dict[str, Any]:
    """Return the content of the floor. Raises ValueError if the file is not valid."""
    head, line_break, body = stored.partition(b"\n")
    magic, _, checksum = head.partition(b" ")
    if magic != _MAGIC or not line_break:
        raise ValueError("this is no derived floor")
    if checksum != b"%08x" % zlib.crc32(body):
        raise ValueError("the derived floor does not have its checksum")
    try:
        said = json.loads(body)
    except RecursionError as error:
        raise ValueError("the derived floor is nested too deeply") from error
    if not isinstance(said, dict):
        raise ValueError("the derived floor holds no object")
    return said
