"""`Files` on the real disk: descriptors, shared mappings, fdatasync, OFD locks."""

import contextlib
import errno
import fcntl
import logging
import mmap
import os
import resource
import stat
import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

from tornpage.impl.io.files import DiskUsage, FileStat, Mapping, OpenFile
from tornpage.impl.io.memory import lock_pages, populate_pages, unlock_pages

__all__ = ["OsFiles", "with_descriptors"]

_WHOLE_FLOCK = "hhqqi4x"
_ZEROS = bytes(1 << 20)
_CLOSED = (1 << 31) - 1
"""The descriptor of a closed file: no file gets it, so that each call fails with EBADF. Source: NR_OPEN of Linux."""


class _OsFile:
    __slots__ = ("fd", "path", "writable")

    def __init__(self, path: str, fd: int, *, writable: bool) -> None:
        self.path = path
        self.fd = fd
        self.writable = writable


class _OsMapping:
    __slots__ = ("memory", "view")

    def __init__(self, memory: mmap.mmap | None, view: memoryview) -> None:
        self.memory = memory
        self.view = view


def _os_file(file: OpenFile) -> _OsFile:
    assert isinstance(file, _OsFile)
    return file


def _os_mapping(mapping: Mapping) -> _OsMapping:
    assert isinstance(mapping, _OsMapping)
    return mapping


@contextlib.contextmanager
def _about(path: str) -> Iterator[None]:
    """Add the path to an error of a call on a descriptor."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


class OsFiles:
    """The disk of this machine. Every OSError names the path."""

    def create(self, path: str) -> OpenFile:
        """Create a file. Source: open(2) with O_EXCL."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return _OsFile(path, with_descriptors(lambda: os.open(path, flags, 0o644)), writable=True)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open an existing file.

        Raise IsADirectoryError for a directory, which Linux does only for writing.
        """
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        fd = with_descriptors(lambda: os.open(path, flags))
        if not writable and stat.S_ISDIR(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return _OsFile(path, fd, writable=writable)

    def close(self, file: OpenFile) -> None:
        """Close the descriptor; a lock taken through it ends.

        A second call does nothing, so that a close which an exception has interrupted can be repeated.
        """
        os_file = _os_file(file)
        with _about(file.path):
            fd, os_file.fd = os_file.fd, _CLOSED
            if fd != _CLOSED:
                os.close(fd)

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Allocate blocks before mapping. A full disk is then an error here and not SIGBUS later."""
        with _about(file.path):
            os.posix_fallocate(_os_file(file).fd, 0, size_bytes)

    def map(self, file: OpenFile) -> Mapping:
        """Map the whole file; an empty file has an empty mapping."""
        os_file = _os_file(file)
        with _about(file.path):
            size_bytes = os.fstat(os_file.fd).st_size
            if size_bytes == 0:
                return _OsMapping(None, memoryview(b""))
            protection = mmap.PROT_READ | (mmap.PROT_WRITE if os_file.writable else 0)
            memory = with_descriptors(lambda: mmap.mmap(os_file.fd, size_bytes, flags=mmap.MAP_SHARED, prot=protection))
        return _OsMapping(memory, memoryview(memory))

    def unmap(self, mapping: Mapping) -> None:
        """Release view and mapping."""
        os_mapping = _os_mapping(mapping)
        os_mapping.view.release()
        if os_mapping.memory is not None:
            os_mapping.memory.close()

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Populate pages; an empty mapping has none. Source: madvise(2), MADV_POPULATE_WRITE."""
        memory = _os_mapping(mapping).memory
        if memory is not None:
            populate_pages(memory, position, size_bytes)

    def advise_will_need(self, mapping: Mapping) -> None:
        """Advise the kernel. Source: madvise(2), MADV_WILLNEED."""
        memory = _os_mapping(mapping).memory
        if memory is not None:
            with contextlib.suppress(OSError):
                memory.madvise(mmap.MADV_WILLNEED)

    def lock_memory(self, mapping: Mapping) -> bool:
        """Lock pages; an empty mapping has none. Source: mlock(2)."""
        memory = _os_mapping(mapping).memory
        return memory is None or lock_pages(memory)

    def unlock_memory(self, mapping: Mapping) -> None:
        """Unlock pages. Source: munlock(2)."""
        memory = _os_mapping(mapping).memory
        if memory is not None:
            unlock_pages(memory)

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read through the descriptor, so that an unreadable block is an error and not a fault."""
        with _about(file.path):
            return os.pread(_os_file(file).fd, size_bytes, offset)

    def next_data(self, file: OpenFile, position: int) -> tuple[int, int] | None:
        """Return the next data range.

        Source: lseek(2), SEEK_DATA and SEEK_HOLE; without holes, all is data.
        """
        fd = _os_file(file).fd
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise OSError(error.errno, error.strerror, file.path) from error
        with _about(file.path):
            return start, os.lseek(fd, start, os.SEEK_HOLE)

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write all bytes; a short write is continued until the kernel reports an error."""
        rest = memoryview(data)
        with _about(file.path):
            while rest:
                count = os.pwrite(_os_file(file).fd, rest, offset)
                if count == 0:
                    raise OSError(errno.EIO, "the write wrote no byte")
                rest, offset = rest[count:], offset + count

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Write zeros, so that the blocks stay allocated."""
        for start in range(offset, offset + size_bytes, len(_ZEROS)):
            self.pwrite(file, _ZEROS[: min(len(_ZEROS), offset + size_bytes - start)], start)

    def sync(self, file: OpenFile) -> None:
        """Call fdatasync.

        It covers stores through the mapping and releases the interpreter lock meanwhile.
        """
        with _about(file.path):
            os.fdatasync(_os_file(file).fd)

    def sync_directory(self, path: str) -> None:
        """Call fsync on the directory."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _about(path):
                os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        """Rename atomically, replacing the target."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove the name."""
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        os.mkdir(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names, sorted."""
        return sorted(os.listdir(path))

    def stat(self, path: str) -> FileStat | None:
        """Follow symbolic links, as an open of the path would."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISREG(found.st_mode):
            return FileStat("file", found.st_size)
        return FileStat("directory" if stat.S_ISDIR(found.st_mode) else "other", 0)

    def lock(self, file: OpenFile) -> bool:
        """Take an OFD lock on byte 0.

        It excludes RocketMQ's lock, and a second open in this process too.
        """
        request = struct.pack(_WHOLE_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        try:
            fcntl.fcntl(_os_file(file).fd, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise OSError(error.errno, error.strerror, file.path) from error
        return True

    def disk_usage(self, path: str) -> DiskUsage:
        """Return disk usage. Source: statvfs(3), `UtilAll.getDiskPartitionSpaceUsedPercent`."""
        found = os.statvfs(path)
        in_use = found.f_blocks - found.f_bfree
        return DiskUsage((in_use + found.f_bavail) * found.f_frsize, found.f_bavail * found.f_frsize)

    def mark(self, label: str) -> None:
        """Do nothing on a real disk."""


_LOG = logging.getLogger("tornpage.store")

Result = TypeVar("Result")


def with_descriptors(call: Callable[[], Result]) -> Result:
    """Call a function that needs a descriptor; on EMFILE raise the limit and call it again.

    Each mapping keeps a descriptor, and a store has a file for each queue. The soft limit of a process is often 1,024
    while the hard one is half a million. The JVM raises it at its start; here it is raised when it is reached. Raises
    OSError (EMFILE) if the hard limit is reached too.
    """
    try:
        return call()
    except OSError as error:
        if error.errno != errno.EMFILE or not _is_raised():
            raise
        return call()


def _is_raised() -> bool:
    """Raise the soft limit to the hard one.

    Return False if that is impossible or already done.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return False
    _LOG.info("descriptor_limit_raised from=%d to=%d", soft, hard)
    return True
