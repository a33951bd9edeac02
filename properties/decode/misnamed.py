"""Find where in the log a file was written, from the offsets that its records state."""

from __future__ import annotations

import struct
from pathlib import Path

from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import RECORD_MAGIC, Record
from tornpage.properties.decode.walk import decode_at

__all__ = ["stated_base"]

_MAGIC_BYTES = struct.pack(">I", RECORD_MAGIC)
_PLACE = struct.Struct(">q")
_CANDIDATES_MAX = 256


def stated_base(path: Path, *, size_bytes: int, file_bytes: int, named: int) -> int | None:
    """Return the offset at which a file begins by its first valid record, else None.

    Only offsets that differ from `named` by whole files count. Cost: one record for a sound file. Raises OSError.
    """
    with FileSource(path, size_bytes_max=min(size_bytes, file_bytes)) as source:
        position = 0
        for _ in range(_CANDIDATES_MAX):
            found = source.find(_MAGIC_BYTES, position + 4)
            if found < 0:
                return None
            position = found - 4
            stored = source.read(position + 28, 8)
            base = _PLACE.unpack(stored)[0] - position if len(stored) == 8 else -1
            if base >= 0 and (base - named) % file_bytes == 0:
                item = decode_at(source, position, base, file_bytes, None)
                if isinstance(item, Record):
                    return base
            position += 1
    return None
