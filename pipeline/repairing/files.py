"""Write the durable files of a copy, with holes where the source has zeros."""

from __future__ import annotations

import os
from pathlib import Path

from tornpage.properties.decode.files import FileSource

__all__ = ["copy_bytes", "copy_small", "make_durable", "write_file"]

_PIECE_BYTES = 4 << 20


def copy_bytes(source: Path, target: Path, *, start: int = 0, size: int, file_bytes: int) -> None:
    """Copy `size` bytes from a position on into a new file of `file_bytes`.

    Zeros become holes. Raises OSError.
    """
    with FileSource(source, size_bytes_max=start + size) as read, target.open("xb") as written:
        position = start
        while position < read.end:
            position = read.next_nonzero(position)
            piece = read.read(position, min(_PIECE_BYTES, read.end - position))
            if not piece:
                break
            written.seek(position - start)
            written.write(piece)
            position += len(piece)
        written.truncate(file_bytes)


def copy_small(source: Path, target: Path) -> None:
    """Copy a small file as it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())


def write_file(target: Path, content: bytes) -> None:
    """Write a new small file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def make_durable(directory: Path) -> None:
    """Sync every file and directory of a tree, the directory itself last."""
    for path, _, names in os.walk(directory, topdown=False):
        for each in (*(os.path.join(path, name) for name in names), path):
            fd = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
