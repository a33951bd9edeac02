"""Temporary directories that an interrupt does not leave behind.

`tempfile.TemporaryDirectory` forgets its directory before it removes it, and the removal of many files, or of large
ones, takes long enough to be interrupted more often than by chance.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from properties.interrupts import held_interrupts

__all__ = ["remove_tree", "scratch_directory"]


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
