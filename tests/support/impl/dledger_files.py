"""Write directories as DLedger 0.2.3 does, byte for byte, without its jar.

Source: `DLedgerEntryCoder`, `MmapFileList` of DLedger 0.2.3.
"""

import struct
from collections.abc import Sequence

from tornpage.impl.io.files import Files

__all__ = ["DIRECTORY", "dledger_entry", "dledger_unit", "write_dledger"]

DIRECTORY = "/member"


def dledger_entry(index: int, term: int, position: int, body: bytes) -> bytes:
    """Return the bytes of an entry, without checksums."""
    return struct.pack(">iiqqqiiii", 1, 48 + len(body), index, term, position, 0, 0, 0, len(body)) + body


def dledger_unit(index: int, term: int, position: int, size_bytes: int) -> bytes:
    """Return the bytes of an index unit."""
    return struct.pack(">iqiqq", 1, position, size_bytes, index, term)


def write_dledger(
    files: Files,
    entries: Sequence[tuple[int, bytes]],
    *,
    file_bytes: int,
    first_index: int = 0,
    first_position: int = 0,
    stale: bytes = b"",
    stale_units: bytes = b"",
) -> list[int]:
    """Write a directory with entries, given as terms and bodies; return their positions.

    The first one has `first_index` and `first_position`. `stale` are bytes after the last entry, `stale_units` those
    after the last unit.
    """
    for path in (DIRECTORY, f"{DIRECTORY}/data", f"{DIRECTORY}/index"):
        if files.stat(path) is None:
            files.make_directory(path)
    data: dict[int, bytearray] = {}
    units = bytearray(32 * first_index)
    positions = []
    position = first_position
    for place, (term, body) in enumerate(entries, first_index):
        size = 48 + len(body)
        rest = file_bytes - position % file_bytes
        if size + 8 > rest:
            _put(data, file_bytes, position, struct.pack(">ii", -1, rest))
            position += rest
        _put(data, file_bytes, position, dledger_entry(place, term, position, body))
        units += dledger_unit(place, term, position, size)
        positions.append(position)
        position += size
    if stale:
        _put(data, file_bytes, position, stale)
    for first, content in data.items():
        _write(files, f"{DIRECTORY}/data/{first:020d}", bytes(content))
    units += stale_units
    for first in range(0, len(units), file_bytes):
        content = units[first : first + file_bytes].ljust(file_bytes, b"\0")
        if first + file_bytes > 32 * first_index:  # earlier index files were deleted
            _write(files, f"{DIRECTORY}/index/{first:020d}", bytes(content))
    return positions


def _put(data: dict[int, bytearray], file_bytes: int, position: int, piece: bytes) -> None:
    at = position % file_bytes
    content = data.setdefault(position - at, bytearray(file_bytes))
    content[at : at + len(piece)] = piece


def _write(files: Files, path: str, content: bytes) -> None:
    file = files.create(path)
    files.allocate(file, len(content))
    files.pwrite(file, content, 0)
    files.sync(file)
    files.close(file)
