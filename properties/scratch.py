"""Temporary directories that are removed even after an interrupt.

`tempfile.TemporaryDirectory` forgets its directory before it removes it. The removal of many or large files takes long
enough for an interrupt to fall into it regularly.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tornpage.properties.interrupts import held_interrupts

__all__ = ["memory_directory", "remove_tree", "scratch_directory"]

_MEMORY = "/dev/shm"
_ROOM_BYTES = 256 << 20


@contextmanager
def scratch_directory(prefix: str, *, below: str | None = None) -> Iterator[str]:
    """Yield a new directory below `below`, and always remove it at the end.

    Without `below` it is in the system's temporary directory.

    Raises OSError if it cannot be created.
    """
    path = ""
    try:
        with held_interrupts():
            path = tempfile.mkdtemp(prefix=prefix, dir=below)
        yield path
    finally:
        if path:
            remove_tree(path)


def remove_tree(path: str) -> None:
    """Remove as much of a directory as can be removed; an interrupt is raised only after that."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(path, ignore_errors=True)
        raise


def memory_directory() -> str | None:
    """Return a directory on a memory file system with enough room, or None.

    A process kill takes nothing from the page cache, so it leaves the same files there as on a disk, without waiting
    for a disk.
    """
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES and os.access(_MEMORY, os.W_OK | os.X_OK)
    except OSError:
        return None
    return _MEMORY if has_room else None
