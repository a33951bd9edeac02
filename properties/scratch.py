"""Temporary directories that an interrupt does not leave behind.

`tempfile.TemporaryDirectory` forgets its directory before it removes it, and the removal of many files, or of large
ones, takes long enough to be interrupted more often than by chance.
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
    """Yield a new directory below `below`, or in the system's place; it is gone afterwards, whatever happened. Raises
    OSError where none can be made.
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
    """Remove a directory with all that can be removed of it, and be interrupted afterwards."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(path, ignore_errors=True)
        raise


def memory_directory() -> str | None:
    """Return a directory on a file system in memory that has room; None where there is none.

    A kill takes nothing from the page cache, so what dies there dies as on a disk, and no cycle waits for a disk.
    """
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES and os.access(_MEMORY, os.W_OK | os.X_OK)
    except OSError:
        return None
    return _MEMORY if has_room else None
