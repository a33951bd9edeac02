"""Hash the whole content of a disk, to compare images."""

import mmap
from collections.abc import Iterable, Mapping

import mmh3

__all__ = ["fingerprint"]


def fingerprint(files: Mapping[str, bytes | bytearray | mmap.mmap], directories: Iterable[str] = ()) -> bytes:
    """Return a 128-bit hash of names, contents and directories.

    Cost: one pass over the contents.
    """
    parts: list[bytes | bytearray | mmap.mmap] = [f"{path}\n".encode() for path in sorted(directories)]
    for path, content in sorted(files.items()):
        parts += (f"{path}\0{len(content)}\0".encode(), content)
    return mmh3.hash_bytes(b"".join(parts))
