"""Read one log file in bounded pieces, without a map, a lock or a write.

Guarantees: memory stays below one piece plus one record, and holes are skipped. If a file shrinks, vanishes or changes
while it is read, the read is shorter and the change is reported. Only errors of the device raise from inside a walk.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["PIECE_BYTES", "FileSource", "is_locked_elsewhere", "read_small"]

PIECE_BYTES = 4 * 1024 * 1024
_ZEROS = bytes(1024 * 1024)
_F_WRLCK, _F_UNLCK = 1, 2
_FLOCK = "hhqqi4x"  # Linux's struct flock with 64-bit offsets: type, whence, start, length, process id


class FileSource:
    """The bytes of one file for `walk_source`.

    `reached` is called after each loaded piece with the position of its end.

    Raises OSError if the file cannot be opened or the device fails. Use it as a context manager.
    """

    def __init__(
        self,
        path: Path,
        *,
        size_bytes_max: int,
        piece_bytes: int = PIECE_BYTES,
        reached: Callable[[int], None] = lambda position: None,
    ) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._before = os.fstat(self._fd)
        self._piece_bytes = max(piece_bytes, 4096)
        self._window = b""
        self._window_at = 0
        self._shrunk = False
        self._reached = reached
        self.end = min(self._before.st_size, size_bytes_max)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def has_changed(self) -> bool:
        """Whether time or size of the file have changed since it was opened."""
        now = os.fstat(self._fd)
        return self._shrunk or (now.st_size, now.st_mtime_ns) != (self._before.st_size, self._before.st_mtime_ns)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` bytes; fewer only at the end."""
        at = position - self._window_at
        if at < 0 or at + size_bytes > len(self._window):
            if position >= self.end:
                return b""
            self._load(position, size_bytes)
            at = 0
        return self._window[at : at + size_bytes]

    def next_nonzero(self, position: int) -> int:
        """Return the position of the first byte from `position` on that is not zero, or `end`."""
        size_bytes = 256
        while position < self.end:  # in growing steps, so that a file full of small gaps is read once
            position = self._next_data(position)
            if position >= self.end:
                break
            piece = self.read(position, min(size_bytes, self.end - position))
            if not _ZEROS.startswith(piece):  # compares memory, which takes far less time than to strip each byte
                return position + len(piece) - len(piece.lstrip(b"\0"))
            if not piece:
                break
            position += len(piece)
            size_bytes = min(2 * size_bytes, self._piece_bytes, len(_ZEROS))
        return self.end

    def find(self, needle: bytes, position: int) -> int:
        """Return the next position of `needle` at or after `position`, or -1.

        `needle` has no zero bytes.
        """
        overlap = len(needle) - 1
        while position + overlap < self.end:
            at = position - self._window_at
            if at < 0 or at + overlap >= len(self._window):
                position = self._next_data(position)
                if position >= self.end:
                    return -1
                self._load(position, self._piece_bytes)
                at = 0
            found = self._window.find(needle, at)
            if found >= 0:
                return self._window_at + found
            position = max(position + 1, self._window_at + len(self._window) - overlap)
        return -1

    def _load(self, position: int, size_bytes: int) -> None:
        wanted = min(max(size_bytes, self._piece_bytes), self.end - position)
        pieces: list[bytes] = []
        while wanted > 0:
            piece = os.pread(self._fd, wanted, position + sum(map(len, pieces)))
            if not piece:
                self._shrunk = True
                self.end = min(self.end, position + sum(map(len, pieces)))
                break
            pieces.append(piece)
            wanted -= len(piece)
        self._window = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._window_at = position
        self._reached(position + len(self._window))

    def _next_data(self, position: int) -> int:
        """Return `position`, or the end of the hole that it is in."""
        try:
            return max(position, os.lseek(self._fd, position, os.SEEK_DATA))
        except OSError as error:
            return self.end if error.errno == errno.ENXIO else position


def read_small(path: Path, size_bytes_max: int) -> bytes | None:
    """Return the first bytes of a small file, None if there is no such regular file.

    At most `size_bytes_max` bytes are returned. Raises OSError if the file exists and cannot be read.
    """
    if not path.is_file():
        return None
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.pread(fd, size_bytes_max, 0)
    finally:
        os.close(fd)


def is_locked_elsewhere(path: Path) -> bool:
    """Return whether another open file holds a lock on byte 0 of `path`, without locking it.

    Returns False if there is no such file. Raises OSError if the file cannot be opened or the file system does not
    support the question.
    """
    if not path.is_file():
        return False
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        question = struct.pack(_FLOCK, _F_WRLCK, os.SEEK_SET, 0, 1, 0)
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, question)
    finally:
        os.close(fd)
    return bool(struct.unpack(_FLOCK, answer)[0] != _F_UNLCK)
