"""A file for measurements whose name is removed before the first write.

Nothing is left, however the process ends.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from tornpage.impl.config.policy import PAGE_BYTES

__all__ = ["ScratchFile", "scratch_file", "touch_pages"]

_MADV_POPULATE_WRITE = 23
"""Python has no name for this constant."""


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """An open file, mapped whole and shared."""

    fd: int
    memory: mmap.mmap

    def populate(self, begin: int, size_bytes: int) -> bool:
        """Make these pages writable in the kernel, as the store does; return whether it did.

        A kernel without this leaves it to stores into the pages. Source: madvise(2), Linux 5.14.
        """
        try:
            self.memory.madvise(_MADV_POPULATE_WRITE, begin, size_bytes)
        except OSError:
            touch_pages(self.memory, begin, begin + size_bytes)
            return False
        return True


@contextmanager
def scratch_file(directory: str, size_bytes: int, *, state: str) -> Iterator[ScratchFile]:
    """Yield a file of this size below `directory`, its blocks in one of STATES.

    Raises OSError when the disk has no room or the directory cannot be written.
    """
    path = os.path.join(directory, f".tornpage-probe-{uuid4().hex}")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.unlink(path)
        if state == "sparse":
            os.ftruncate(fd, size_bytes)
        else:
            os.posix_fallocate(fd, 0, size_bytes)
        os.fsync(fd)
        with mmap.mmap(fd, size_bytes, flags=mmap.MAP_SHARED) as memory:
            if state == "written":
                touch_pages(memory, 0, size_bytes)
                os.fdatasync(fd)
            yield ScratchFile(fd, memory)
    finally:
        os.close(fd)


def touch_pages(memory: mmap.mmap, begin: int, end: int) -> None:
    """Store a zero into each page of a range, page by page.

    Larger writes would create large folios.
    """
    with memoryview(memory) as view:
        view[begin:end:PAGE_BYTES] = bytes(-(-(end - begin) // PAGE_BYTES))
