"""The durable floor: a physical offset below which the log was once on disk.

It tells a tear from damage (contract 7): a record below the floor was durable before, so an invalid one there means
that the disk lost it. The floor is written after the sync that it describes. It is not synced itself, since an older
floor is still true.

One sector of 512 bytes in `config/durableFloor`, so that a write cannot tear:

    0 "TPFLOOR1" (8)   8 flushed physical offset (i64)   16 mapped file size (i64)   24 CRC-32 of the 24 bytes (u32)
"""

import contextlib
import struct
from dataclasses import dataclass

from isal.isal_zlib import crc32

from tornpage.impl.io.files import Files, OpenFile

__all__ = ["DurableFloor", "Floor"]

_MAGIC = b"TPFLOOR1"
_LAYOUT = struct.Struct(">8sqqI")
_SECTOR_BYTES = 512
assert _LAYOUT.size == 28


@dataclass(frozen=True, slots=True)
class Floor:
    """The content of the file at load.

    `offset` is physical; `file_bytes` is the size of a log file.
    """

    offset: int
    file_bytes: int


def _pack(offset: int, file_bytes: int) -> bytes:
    head = struct.pack(">8sqq", _MAGIC, offset, file_bytes)
    return (head + struct.pack(">I", crc32(head))).ljust(_SECTOR_BYTES, b"\0")


class DurableFloor:
    """Owns `config/durableFloor`. The parent directory must exist."""

    def __init__(self, files: Files, path: str, *, file_bytes: int) -> None:
        self._files = files
        self._path = path
        self._file_bytes = file_bytes
        self._file: OpenFile | None = None
        self._offset = 0

    def load(self) -> Floor | None:
        """Return the floor; None if the file is missing or invalid. Raises OSError."""
        if self._files.stat(self._path) is None:
            return None
        file = self._files.open(self._path, writable=False)
        try:
            data = self._files.read(file, 0, _SECTOR_BYTES + 1)
        finally:
            self._files.close(file)
        if len(data) != _SECTOR_BYTES:
            return None
        magic, offset, file_bytes, crc = _LAYOUT.unpack_from(data)
        if magic != _MAGIC or crc != crc32(data[:24]) or offset < 0:
            return None
        return Floor(offset, file_bytes)

    def start(self, offset: int) -> None:
        """Open the file for writing; it is durable with its name before the first record.

        An existing file is synced too, since an earlier open may have been killed before its sync. A longer file is no
        valid floor and would stay invalid, so it is replaced. Raises OSError.
        """
        directory = self._path.rpartition("/")[0]
        stat = self._files.stat(self._path)
        if stat is not None and stat.size_bytes > _SECTOR_BYTES:
            self._files.unlink(self._path)
            stat = None
        self._file = self._files.create(self._path) if stat is None else self._files.open(self._path, writable=True)
        self._files.pwrite(self._file, _pack(offset, self._file_bytes), 0)
        self._offset = offset
        self._files.sync(self._file)
        self._files.sync_directory(directory)

    def raise_to(self, offset: int) -> None:
        """Record that the log is durable up to `offset`; writes only if the offset rises.

        Write errors are ignored.
        """
        assert self._file is not None
        if offset > self._offset:
            with contextlib.suppress(OSError):  # a floor that stays low is still true
                self._files.pwrite(self._file, _pack(offset, self._file_bytes), 0)
                self._offset = offset

    def sync(self) -> None:
        """Make the floor itself durable, before a clean exit. Raises OSError."""
        assert self._file is not None
        self._files.sync(self._file)

    def close(self) -> None:
        """Close the file if it is open."""
        if self._file is not None:
            self._files.close(self._file)
            self._file = None
