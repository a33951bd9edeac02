"""Find changed pages by write protection (userfaultfd and PAGEMAP_SCAN).

userfaultfd works in asynchronous mode.

PAGEMAP_SCAN reads the written pages and re-arms them. It needs Linux 6.7 and works in user mode (no rights needed). The
cost of a look grows with the pages written.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys
import weakref
from typing import Any, Literal

from tornpage.properties.disk.journal import PAGE_BYTES
from tornpage.properties.disk.tracking import (
    Closing,
    Shadow,
    Tracked,
    TrackerForked,
    TrackerUnavailable,
    close_all,
    require_open,
)

__all__ = ["WriteProtectTracker", "write_protect_available"]

# linux/userfaultfd.h and linux/fs.h. The ioctl numbers are equal on both machines, those of the system call are not.
_USERFAULTFD_NUMBERS = {"x86_64": 323, "aarch64": 282}
_UFFD_USER_MODE_ONLY = 1
_UFFD_API = 0xAA
_UFFD_FEATURE_WP_UNPOPULATED = 1 << 13  # a page that was never touched can be protected too
_UFFD_FEATURE_WP_ASYNC = 1 << 15  # the kernel resolves the fault itself and only remembers it
_UFFDIO_API = 0xC018AA3F
_UFFDIO_REGISTER = 0xC020AA00
_UFFDIO_UNREGISTER = 0x8010AA01
_UFFDIO_WRITEPROTECT = 0xC018AA06
_REGISTER_MODE_WP = 1 << 1
_WRITEPROTECT_MODE_WP = 1 << 0
_PAGEMAP_SCAN = 0xC0606610
_SCAN_WP_MATCHING = 1 << 0  # re-arm what is reported
_SCAN_CHECK_WPASYNC = 1 << 1  # fail if the range is not registered
_PAGE_IS_WRITTEN = 1 << 1

_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_RANGE_AND_MODE = struct.Struct("=QQQ")  # start, length, mode (WRITEPROTECT); api, features, ioctls (API)
_REGISTER = struct.Struct("=QQQQ")  # start, length, mode, ioctls
_RANGE = struct.Struct("=QQ")  # start, length
_SCAN = struct.Struct("=12Q")  # size flags start end walk_end vec vec_len max_pages inverted mask anyof return_mask
_ADDRESS = struct.Struct("=Q")
_SCAN_START_AT, _SCAN_WALK_END_AT = 16, 32
_REGION_WORDS = 3  # start, end, categories


class WriteProtectTracker(Closing):
    """Tracks written pages by the kernel.

    One userfaultfd and one pagemap descriptor serve all buffers.

    Raises TrackerUnavailable if this machine does not support it. `machine` and `regions_max` (the number of runs of
    pages that one scan may return before it has to be continued) are for tests.
    """

    def __init__(self, *, machine: str | None = None, regions_max: int = 512) -> None:
        self.name = "write-protect"
        self.leaked_exports = 0
        self.regions_max = regions_max
        self._open: weakref.WeakSet[_Protected] = weakref.WeakSet()
        self._closed = False
        self._owner_pid = os.getpid()
        self._fault_fd = _open_userfaultfd(os.uname().machine if machine is None else machine)
        try:
            self._pagemap_fd = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            os.close(self._fault_fd)
            raise TrackerUnavailable(_explain("pagemap", error)) from error
        self._close_descriptors = weakref.finalize(self, _close_descriptors, self._fault_fd, self._pagemap_fd)

    def watch(self, content: bytes | bytearray) -> Tracked:
        """Allocate a buffer with this content and watch it.

        Raises TrackerUnavailable, TrackerForked.
        """
        require_open(self._closed)
        self.require_owner()
        tracked = _Protected(self, content)
        self._open.add(tracked)
        return tracked

    def close(self) -> None:
        """Close every watched buffer and both descriptors.

        A forked child closes its own copies of the descriptors.
        """
        self._closed = True
        close_all(self._open)
        self._close_descriptors()  # does nothing the second time; also runs when an unused tracker is collected

    def require_owner(self) -> None:
        """Raise TrackerForked in any process but the one that created this tracker."""
        pid = os.getpid()
        if pid != self._owner_pid:
            raise TrackerForked(owner_pid=self._owner_pid, pid=pid)

    def protect(self, address: int, size_bytes: int) -> None:
        """Watch these whole pages, all of them unwritten as of now."""
        register = bytearray(_REGISTER.pack(address, size_bytes, _REGISTER_MODE_WP, 0))
        fcntl.ioctl(self._fault_fd, _UFFDIO_REGISTER, register, True)
        arm = bytearray(_RANGE_AND_MODE.pack(address, size_bytes, _WRITEPROTECT_MODE_WP))
        fcntl.ioctl(self._fault_fd, _UFFDIO_WRITEPROTECT, arm, True)

    def unprotect(self, address: int, size_bytes: int) -> None:
        """Stop watching memory that a view keeps alive.

        Does nothing in a child, whose descriptor refers to the parent's memory.
        """
        if os.getpid() == self._owner_pid:
            with contextlib.suppress(OSError):  # the watch ends anyhow
                fcntl.ioctl(self._fault_fd, _UFFDIO_UNREGISTER, bytearray(_RANGE.pack(address, size_bytes)), True)

    def scan(self, arguments: bytearray) -> int:
        """Run PAGEMAP_SCAN once and return how many regions it filled in."""
        count: int = fcntl.ioctl(self._pagemap_fd, _PAGEMAP_SCAN, arguments, True)
        return count


def write_protect_available(*, machine: str | None = None) -> str | None:
    """Return None if `WriteProtectTracker` works here, else the reason in one sentence.

    It is tried on three pages.
    """
    try:
        with WriteProtectTracker(machine=machine) as tracker:
            tracked = tracker.watch(bytes(3 * PAGE_BYTES))
            tracked.buffer[PAGE_BYTES] = 1
            found = tracked.changed()
    except TrackerUnavailable as error:
        return error.reason
    except OSError as error:
        return _explain("scan", error)
    return None if found == [1] else f"The kernel reported pages {found} when page 1 was written."


class _Protected:
    """A private anonymous mapping with write protection; an empty buffer needs no mapping.

    It is private, so that a forked child writes to its own copy and cannot change these pages unseen.
    """

    def __init__(self, tracker: WriteProtectTracker, content: bytes | bytearray) -> None:
        self.leaked_exports = 0
        self.small: tuple[list[bytearray], memoryview] | None = None
        self._tracker = tracker
        self._closed = False
        self._mapping = mmap.mmap(-1, len(content), flags=_PRIVATE) if content else None
        self.buffer: bytearray | mmap.mmap = bytearray() if self._mapping is None else self._mapping
        self._shadow = Shadow(self.buffer, content)
        if self._mapping is None:
            return
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))  # the export ends here
        self._mapped_bytes = -(-len(content) // PAGE_BYTES) * PAGE_BYTES
        self._regions = (ctypes.c_uint64 * (_REGION_WORDS * tracker.regions_max))()
        self._scan_arguments = bytearray(self._packed_scan())
        try:
            tracker.protect(self._address, self._mapped_bytes)
        except OSError as error:
            self.close()
            raise TrackerUnavailable(_explain("protect", error)) from error

    def changed(self) -> list[int]:
        """Compare the pages that the kernel reports as written; return the changed ones."""
        require_open(self._closed)
        self._tracker.require_owner()
        if self._mapping is None:
            return []
        written = self._written()
        return self._shadow.refresh(written) if written else written

    def close(self) -> None:
        """Unmap the buffer, or leave it to the holders of its views."""
        if self._closed:
            return
        self._closed = True
        self._shadow.release()
        mapping, self._mapping, self.buffer = self._mapping, None, bytearray()
        if mapping is None:
            return
        try:
            mapping.close()
        except BufferError:
            self.leaked_exports = 1
            self._tracker.leaked_exports += 1
            self._tracker.unprotect(self._address, self._mapped_bytes)

    def _packed_scan(self) -> bytes:
        size, flags = _SCAN.size, _SCAN_WP_MATCHING | _SCAN_CHECK_WPASYNC
        start, end = self._address, self._address + self._mapped_bytes
        vector = ctypes.addressof(self._regions)
        inverted, mask, any_of, returned = 0, _PAGE_IS_WRITTEN, 0, _PAGE_IS_WRITTEN
        return _SCAN.pack(
            size, flags, start, end, 0, vector, self._tracker.regions_max, 0, inverted, mask, any_of, returned
        )

    def _written(self) -> list[int]:
        """Return and re-arm the pages written since the last call, in as many scans as needed."""
        arguments, regions, first = self._scan_arguments, self._regions, self._address
        start, end = first, first + self._mapped_bytes
        pages: list[int] = []
        while True:
            count = self._tracker.scan(arguments)
            for word in range(0, _REGION_WORDS * count, _REGION_WORDS):
                pages += range((regions[word] - first) // PAGE_BYTES, (regions[word + 1] - first) // PAGE_BYTES)
            (walk_end,) = _ADDRESS.unpack_from(arguments, _SCAN_WALK_END_AT)
            if walk_end >= end:
                break
            if walk_end <= start:
                raise OSError(errno.EIO, "PAGEMAP_SCAN made no progress")
            start = walk_end
            _ADDRESS.pack_into(arguments, _SCAN_START_AT, start)
        if start != first:
            _ADDRESS.pack_into(arguments, _SCAN_START_AT, first)
        return pages


def _open_userfaultfd(machine: str) -> int:
    """Return a userfaultfd in asynchronous write-protect mode, or raise TrackerUnavailable."""
    number = _USERFAULTFD_NUMBERS.get(machine)
    if not sys.platform.startswith("linux") or number is None:
        raise TrackerUnavailable(f"It is written for Linux on x86_64 and aarch64, not for {sys.platform} on {machine}.")
    if mmap.PAGESIZE != PAGE_BYTES:
        raise TrackerUnavailable(f"The kernel's pages have {mmap.PAGESIZE} bytes, not {PAGE_BYTES}.")
    libc: Any = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    flags = os.O_CLOEXEC | os.O_NONBLOCK | _UFFD_USER_MODE_ONLY
    descriptor = int(libc.syscall(ctypes.c_long(number), ctypes.c_long(flags)))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise TrackerUnavailable(_explain("userfaultfd", OSError(code, os.strerror(code))))
    try:
        features = _UFFD_FEATURE_WP_ASYNC | _UFFD_FEATURE_WP_UNPOPULATED
        fcntl.ioctl(descriptor, _UFFDIO_API, bytearray(_RANGE_AND_MODE.pack(_UFFD_API, features, 0)), True)
    except OSError as error:
        os.close(descriptor)
        raise TrackerUnavailable(_explain("features", error)) from error
    return descriptor


def _explain(step: Literal["userfaultfd", "features", "pagemap", "protect", "scan"], error: OSError) -> str:
    """Return one sentence about the failure of this step."""
    text = f"{step}: {error.strerror}"
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"The system does not permit it to this process, perhaps a container's system call filter ({text})."
    if step == "userfaultfd" and error.errno == errno.ENOSYS:
        return f"The kernel was built without userfaultfd, or a container hides it ({text})."
    if (step, error.errno) in {("userfaultfd", errno.EINVAL), ("features", errno.EINVAL), ("scan", errno.ENOTTY)}:
        return f"The kernel is too old or lacks the feature; Linux 6.7 has it ({text})."
    return f"The system call failed ({text})."


def _close_descriptors(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
