"""Memory that stays in memory: locks on the pages of a mapping, and buffers that no file stands behind.

A lock is a wish. The limit of the process (RLIMIT_MEMLOCK) or the system may refuse it; then the pages may be swapped
out, nothing else changes, and the log says so once per process. Locks are not inherited by a forked child.
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
"""Python names no constant for it."""

_FIRST_REFUSAL = threading.Lock()
"""Taken by the first refusal and never given back: a machine that refuses one lock refuses hundreds."""


def lock_pages(memory: mmap.mmap) -> bool:
    """Keep all pages of a writable mapping in memory; each is brought in first. Return whether the system agreed.

    The interpreter is free meanwhile: 1 GiB takes a while. Source: mlock(2), `LibC.mlock`.
    """
    if _LIBC.mlock(_address(memory), len(memory)) == 0:
        return True
    _warn(len(memory), ctypes.get_errno())
    return False


def unlock_pages(memory: mmap.mmap) -> None:
    """Let the pages of a writable mapping go again, locked or not. Source: munlock(2)."""
    _LIBC.munlock(_address(memory), len(memory))


def populate_pages(memory: mmap.mmap, position: int, size_bytes: int) -> None:
    """Have pages of a writable mapping ready, as far as it reaches; where the kernel knows no such advice, do nothing.

    The interpreter is free meanwhile, which it is not in `mmap.madvise`: pages that the machine has to find first take
    up to 50 us each. Source: madvise(2), MADV_POPULATE_WRITE, Linux 5.14.
    """
    end = min(position + size_bytes, len(memory))
    if position < end:
        pages = ctypes.c_char.from_buffer(memory, position)  # while there is such a one, nobody unmaps
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
    """Pages of zeros, aligned to a page, private to this process and locked if the system allows it.

    Private: after a fork neither process sees what the other writes. Raises OSError when the address space or the
    system has no room for `size_bytes`. Source: `ByteBuffer.allocateDirect` and `LibC.mlock`.
    """

    __slots__ = ("_memory", "is_locked", "view")

    def __init__(self, size_bytes: int) -> None:
        self._memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.view = memoryview(self._memory)
        self.is_locked = lock_pages(self._memory)

    def release(self) -> None:
        """Unlock and unmap, once; later calls do nothing.

        Whoever still holds a slice of the view keeps the pages mapped until it lets go, the traceback of a failed
        write for one; they are not locked any more.
        """
        if self.is_locked:
            unlock_pages(self._memory)
            self.is_locked = False
        self.view.release()
        with contextlib.suppress(BufferError):
            self._memory.close()
