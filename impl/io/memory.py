"""Memory kept resident: locks on the pages of a mapping, and anonymous buffers.

A lock is a request. The limit of the process (RLIMIT_MEMLOCK) or the system may refuse it. Then the pages may be
swapped out, nothing else changes, and one warning per process is logged. A forked child does not inherit locks.
"""

import contextlib
import ctypes
import logging
import mmap
import os
import resource
import threading

__all__ = ["LockedMemory", "lock_pages", "populate_pages", "unlock_pages"]

_LOG = logging.getLogger("tornpage.store")

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mlock.argtypes = _LIBC.munlock.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

_MADV_POPULATE_WRITE = 23
"""Python has no constant for it."""

_FIRST_REFUSAL = threading.Lock()
"""Taken by the first refusal and never released: after one refused lock, hundreds may follow."""


def lock_pages(memory: mmap.mmap) -> bool:
    """Lock all pages of a writable mapping in memory, populating them first.

    Return whether that succeeded. The interpreter lock is released meanwhile, since 1 GiB takes a while. Source:
    mlock(2), `LibC.mlock`.
    """
    if _LIBC.mlock(_address(memory), len(memory)) == 0:
        return True
    _warn(len(memory), ctypes.get_errno())
    return False


def unlock_pages(memory: mmap.mmap) -> None:
    """Unlock the pages of a writable mapping, locked or not. Source: munlock(2)."""
    _LIBC.munlock(_address(memory), len(memory))


def populate_pages(memory: mmap.mmap, position: int, size_bytes: int) -> None:
    """Populate pages of a writable mapping, up to its end.

    Do nothing if the kernel has no such advice. The interpreter lock is released meanwhile, unlike in `mmap.madvise`:
    pages that a virtual machine has to get from its host take up to 50 us each. Source: madvise(2),
    MADV_POPULATE_WRITE, Linux 5.14.
    """
    end = min(position + size_bytes, len(memory))
    if position < end:
        pages = ctypes.c_char.from_buffer(memory, position)  # its export prevents an unmap
        _LIBC.madvise(ctypes.addressof(pages), end - position, _MADV_POPULATE_WRITE)


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _warn(needed_bytes: int, code: int) -> None:
    if not _FIRST_REFUSAL.acquire(blocking=False):
        return
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    _LOG.warning(
        "memory_not_locked needed_bytes=%d limit_bytes=%s error=%r remedy=%r",
        needed_bytes,
        "unlimited" if limit_bytes == resource.RLIM_INFINITY else limit_bytes,
        os.strerror(code),
        "raise the limit for all log files and buffers together: ulimit -l, or LimitMEMLOCK= of the systemd unit",
    )


class LockedMemory:
    """Zeroed pages, private to this process and locked if the system allows it.

    Private means that after a fork neither process sees the other's writes. Raises OSError if the address space or the
    system has no room for `size_bytes`. Source: `ByteBuffer.allocateDirect` and `LibC.mlock`.
    """

    __slots__ = ("_memory", "is_locked", "view")

    def __init__(self, size_bytes: int) -> None:
        self._memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.view = memoryview(self._memory)
        self.is_locked = lock_pages(self._memory)

    def release(self) -> None:
        """Unlock and unmap, once; later calls do nothing.

        A slice of the view that is still in use, for example in the traceback of a failed write, keeps the pages
        mapped. They are no longer locked.
        """
        if self.is_locked:
            unlock_pages(self._memory)
            self.is_locked = False
        self.view.release()
        with contextlib.suppress(BufferError):
            self._memory.close()
