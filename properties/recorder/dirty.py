"""Find the 4 KiB pages of a buffer that changed since the last look, without instrumenting the writes.

A tracker hands out a buffer, the store writes into it in any way it likes (slices, memoryviews, `struct.pack_into`),
and each look names the pages whose *content* differs from the look before. Guarantees, for every tracker:

1. A page is named if and only if its bytes differ from its bytes at the last look; equal rewrites are silent.
2. A look is also the start of the next one: no change is named twice and none is lost between two looks.
3. The buffer keeps its size and address: while it is watched nobody can resize or close it (Python raises BufferError).
4. Each mapping and descriptor is closed exactly once; `close()` may be called again, and a view that the store still
   holds makes it count, not raise.

Two ways to know, with the same answers:

`CompareTracker`
    keeps a shadow copy and compares 16 KiB at a time with memcmp, then page by page where a chunk differs. Works
    everywhere and in a forked child. The cost of a look grows with the size of the buffer.
`WriteProtectTracker`
    Linux 6.7: the kernel write-protects the pages (userfaultfd in asynchronous mode; user mode only, which needs no
    rights) and the PAGEMAP_SCAN ioctl reads and re-arms the written ones in one step. Only those are compared with the
    shadow. The cost of a look grows with the pages written; the first write to a page after a look costs a page fault.
    A forked child has no registration: `TrackerForked`.

Not seen by any of them: a page that changed and changed back between two looks. Whoever needs it must look in between.
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
from collections.abc import Iterable
from typing import Any, Literal, Protocol, Self

__all__ = [
    "AUTO_WRITE_PROTECT_BYTES_MIN",
    "PAGE_BYTES",
    "AutoTracker",
    "CompareTracker",
    "DirtyTracker",
    "Tracked",
    "TrackerForked",
    "TrackerUnavailable",
    "WriteProtectTracker",
    "choose_tracker",
    "write_protect_available",
]

PAGE_BYTES = 4096

AUTO_WRITE_PROTECT_BYTES_MIN = 256 << 10
"""Buffers of this size and more are write-protected by the automatic choice, smaller ones are compared.

Measured on two cores of x86_64, Linux 6.18, Python 3.11, in microseconds per look, page faults included, with 0, 1 and
4 pages written since the last look: 64 KiB compared 1.5, 3.5, 7.6, protected 2.3, 5.7, 11; 128 KiB compared 2.9, 4.8,
9.1, protected 2.3, 6.1, 11; 256 KiB compared 5.8, 7.8, 14, protected 2.3, 6.4, 12. NumPy compared no faster.
"""

_CHUNK_PAGES = 4  # larger chunks compare an idle 64 MiB a fifth faster, but search longer for one changed page
_CHUNK_BYTES = _CHUNK_PAGES * PAGE_BYTES
_ZERO_CHUNK = bytearray(_CHUNK_BYTES)  # the shadow of every chunk that is still all zero; never written to

# linux/userfaultfd.h and linux/fs.h; the ioctl numbers are the same on both machines, the system call's is not.
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
_SCAN_CHECK_WPASYNC = 1 << 1  # fail rather than guess when the range is not registered
_PAGE_IS_WRITTEN = 1 << 1

_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_RANGE_AND_MODE = struct.Struct("=QQQ")  # start, length, mode (WRITEPROTECT); api, features, ioctls (API)
_REGISTER = struct.Struct("=QQQQ")  # start, length, mode, ioctls
_RANGE = struct.Struct("=QQ")  # start, length
_SCAN = struct.Struct("=12Q")  # size flags start end walk_end vec vec_len max_pages inverted mask anyof return_mask
_ADDRESS = struct.Struct("=Q")
_SCAN_START_AT, _SCAN_WALK_END_AT = 16, 32
_REGION_WORDS = 3  # start, end, categories
assert _SCAN.size == 96


class TrackerUnavailable(RuntimeError):
    """This machine cannot track in the way asked for; `reason` is one sentence."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"write-protect tracking is not available: {reason}")


class TrackerForked(RuntimeError):
    """A forked child used its parent's registration, which the kernel does not pass on."""

    def __init__(self, *, owner_pid: int, pid: int) -> None:
        self.owner_pid, self.pid = owner_pid, pid
        super().__init__(f"this tracker belongs to process {owner_pid}; process {pid} must make its own after fork")


class Tracked(Protocol):
    """One buffer under watch. It belongs to the tracker: write into it, but do not close or resize it."""

    buffer: bytearray | mmap.mmap
    leaked_exports: int
    """1 when somebody still held a view of the buffer at `close()`, else 0."""

    def changed(self) -> list[int]:
        """Return the numbers of the pages that differ from the last look, sorted, and start a new look."""

    def close(self) -> None:
        """Give the buffer back; its content is gone. Never raises; may be called again."""


class DirtyTracker(Protocol):
    """A way to find changed pages; makes watched buffers and closes those still open when it is closed."""

    name: str

    @property
    def leaked_exports(self) -> int:
        """How many buffers were closed while somebody still held a view of them."""

    def watch(self, content: bytes | bytearray) -> Tracked:
        """Allocate a buffer with this content and watch it; any size, also 0."""

    def close(self) -> None:
        """Close every buffer still watched and the tracker's own descriptors. Never raises; may be called again."""


class _Closing:
    """A context manager that closes."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CompareTracker(_Closing):
    """Compare everything with a shadow copy. An idle look costs about 0.5 us at 16 KiB and 5 ms at 64 MiB."""

    def __init__(self) -> None:
        self.name = "compare"
        self.leaked_exports = 0
        self._open: weakref.WeakSet[_Compared] = weakref.WeakSet()
        self._closed = False

    def watch(self, content: bytes | bytearray) -> Tracked:
        """Allocate a buffer with this content and watch it."""
        _require_open(self._closed)
        tracked = _Compared(self, content)
        self._open.add(tracked)
        return tracked

    def close(self) -> None:
        """Close every buffer still watched."""
        self._closed = True
        _close_all(self._open)


class WriteProtectTracker(_Closing):
    """Let the kernel remember written pages. One userfaultfd and one pagemap descriptor serve all buffers.

    Raises TrackerUnavailable when this machine cannot. `machine` and `regions_max` (how many runs of pages one scan may
    answer before it has to be continued) are for tests.
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
        """Allocate a buffer with this content and watch it. Raises TrackerUnavailable, TrackerForked."""
        _require_open(self._closed)
        self.require_owner()
        tracked = _Protected(self, content)
        self._open.add(tracked)
        return tracked

    def close(self) -> None:
        """Close every buffer still watched and both descriptors; a forked child closes its own copies of them."""
        self._closed = True
        _close_all(self._open)
        self._close_descriptors()  # does nothing the second time; also runs when a forgotten tracker is collected

    def require_owner(self) -> None:
        """Raise TrackerForked in any process but the one that made this tracker."""
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
        """Stop watching memory that somebody keeps alive. Not in a child: the descriptor reaches into its parent."""
        if os.getpid() == self._owner_pid:
            with contextlib.suppress(OSError):  # the watch is given up anyhow
                fcntl.ioctl(self._fault_fd, _UFFDIO_UNREGISTER, bytearray(_RANGE.pack(address, size_bytes)), True)

    def scan(self, arguments: bytearray) -> int:
        """Run PAGEMAP_SCAN once and return how many regions it filled in."""
        count: int = fcntl.ioctl(self._pagemap_fd, _PAGEMAP_SCAN, arguments, True)
        return count


class AutoTracker(_Closing):
    """Compare small buffers and write-protect large ones, or compare all of them where the kernel cannot help.

    The write-protecting part is made for the first large buffer; when that fails, `fallback_reason` says why.
    """

    def __init__(
        self, *, write_protect_bytes_min: int = AUTO_WRITE_PROTECT_BYTES_MIN, machine: str | None = None
    ) -> None:
        self.name = "auto"
        self.fallback_reason: str | None = None
        self._machine = machine
        self._closed = False
        self._write_protect_bytes_min = write_protect_bytes_min
        self._compare = CompareTracker()
        self._write_protect: WriteProtectTracker | None = None

    @property
    def leaked_exports(self) -> int:
        """How many buffers were closed while somebody still held a view of them."""
        protected = 0 if self._write_protect is None else self._write_protect.leaked_exports
        return self._compare.leaked_exports + protected

    def watch(self, content: bytes | bytearray) -> Tracked:
        """Allocate a buffer with this content and watch it in the way that is cheaper for its size."""
        _require_open(self._closed)
        if len(content) >= self._write_protect_bytes_min and self.fallback_reason is None:
            try:
                if self._write_protect is None:
                    self._write_protect = WriteProtectTracker(machine=self._machine)
                return self._write_protect.watch(content)
            except TrackerUnavailable as error:
                self.fallback_reason = error.reason
        return self._compare.watch(content)

    def close(self) -> None:
        """Close both parts."""
        self._closed = True
        self._compare.close()
        if self._write_protect is not None:
            self._write_protect.close()


def choose_tracker(kind: Literal["auto", "compare", "write-protect"]) -> DirtyTracker:
    """Make the tracker of this name; only "write-protect" raises TrackerUnavailable, where the kernel cannot."""
    match kind:
        case "auto":
            return AutoTracker()
        case "compare":
            return CompareTracker()
        case "write-protect":
            return WriteProtectTracker()
    raise ValueError(f"tracker must be auto, compare or write-protect, not {kind!r}")


def write_protect_available(*, machine: str | None = None) -> str | None:
    """Return None when `WriteProtectTracker` works here, else the reason in one sentence. Tries it on three pages."""
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


class _Shadow:
    """The content of a buffer at the last look, in chunks, each beside a view of the live buffer.

    The views also pin the buffer: while they live it can be neither resized nor closed. All chunks that were never
    anything but zero share one shadow, so that a preallocated file costs no second copy.
    """

    def __init__(self, buffer: bytearray | mmap.mmap, content: bytes | bytearray) -> None:
        self._pin = memoryview(buffer)  # also pins a buffer of no bytes, which has no chunks
        with memoryview(content) as initial:
            starts = range(0, len(content), _CHUNK_BYTES)
            self.live = [self._pin[start : start + _CHUNK_BYTES] for start in starts]
            self.chunks = [_copy_unless_zero(initial[start : start + _CHUNK_BYTES]) for start in starts]
            for chunk, view in zip(self.chunks, self.live, strict=True):
                if chunk is not _ZERO_CHUNK:  # untouched memory is zero already, and stays unallocated
                    view[:] = chunk

    def refresh_all(self) -> list[int]:
        """Compare everything; return the pages that differ and take over their content."""
        changed: list[int] = []
        for number, view in enumerate(self.live):
            if self.chunks[number] != view:  # bytearray on the left: memcmp; two memoryviews would compare item by item
                first = number * _CHUNK_PAGES
                changed += self.refresh(range(first, first + -(-len(view) // PAGE_BYTES)))
        return changed

    def refresh(self, pages: Iterable[int]) -> list[int]:
        """Compare these pages; return those that differ and take over their content."""
        changed: list[int] = []
        chunks, live = self.chunks, self.live
        for page in pages:
            number = page // _CHUNK_PAGES
            start = page % _CHUNK_PAGES * PAGE_BYTES
            end = start + PAGE_BYTES
            now = live[number][start:end]
            if chunks[number][start:end] != now:
                if chunks[number] is _ZERO_CHUNK:
                    chunks[number] = bytearray(_CHUNK_BYTES)
                chunks[number][start:end] = now
                changed.append(page)
        return changed

    def release(self) -> None:
        """Let go of the buffer and of the copy."""
        for view in self.live:
            view.release()
        self._pin.release()
        self.live.clear()
        self.chunks.clear()


class _Compared:
    """A buffer in ordinary memory, compared with its shadow."""

    def __init__(self, tracker: CompareTracker, content: bytes | bytearray) -> None:
        self.buffer: bytearray | mmap.mmap = bytearray(len(content))
        self.leaked_exports = 0
        self._tracker = tracker
        self._shadow = _Shadow(self.buffer, content)
        self._closed = False

    def changed(self) -> list[int]:
        """Compare everything; return the changed pages, sorted."""
        if self._closed:
            raise ValueError("the buffer is closed")
        return self._shadow.refresh_all()

    def close(self) -> None:
        """Give the buffer back, emptied."""
        if self._closed:
            return
        self._closed = True
        self._shadow.release()
        buffer, self.buffer = self.buffer, bytearray()
        assert isinstance(buffer, bytearray)
        try:
            buffer.clear()
        except BufferError:
            self.leaked_exports = 1
            self._tracker.leaked_exports += 1


class _Protected:
    """A private anonymous mapping whose written pages the kernel remembers; an empty buffer needs no mapping.

    Private, so that a forked child writes to its own copy and cannot change these pages unseen.
    """

    def __init__(self, tracker: WriteProtectTracker, content: bytes | bytearray) -> None:
        self.leaked_exports = 0
        self._tracker = tracker
        self._closed = False
        self._mapping = mmap.mmap(-1, len(content), flags=_PRIVATE) if content else None
        self.buffer: bytearray | mmap.mmap = bytearray() if self._mapping is None else self._mapping
        self._shadow = _Shadow(self.buffer, content)
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
        """Ask the kernel for the written pages, compare those; return the changed ones, sorted."""
        _require_open(self._closed)
        self._tracker.require_owner()
        if self._mapping is None:
            return []
        written = self._written()
        return self._shadow.refresh(written) if written else written

    def close(self) -> None:
        """Unmap the buffer, or leave it to those who still hold a view of it."""
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
        """Return and re-arm the pages written since the last call, in as many scans as the kernel needs."""
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
    """Say in one sentence what the failure of this step means."""
    text = f"{step}: {error.strerror}"
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"The system does not permit it to this process, perhaps a container's system call filter ({text})."
    if step == "userfaultfd" and error.errno == errno.ENOSYS:
        return f"The kernel was built without userfaultfd, or a container hides it ({text})."
    if (step, error.errno) in {("userfaultfd", errno.EINVAL), ("features", errno.EINVAL), ("scan", errno.ENOTTY)}:
        return f"The kernel is too old or lacks the feature; Linux 6.7 has it ({text})."
    return f"The kernel refused ({text})."


def _copy_unless_zero(chunk: memoryview) -> bytearray:
    zero = _ZERO_CHUNK == chunk  # noqa: SIM300 - in this order it is one memcmp
    return _ZERO_CHUNK if zero else bytearray(chunk)


def _close_descriptors(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _close_all(tracked: Iterable[Tracked]) -> None:
    for each in list(tracked):
        each.close()


def _require_open(closed: bool) -> None:
    if closed:
        raise ValueError("the tracker or its buffer is closed")
