"""Serve an image as one file, and log each write and each flush of it.

The server speaks the protocol of FUSE on /dev/fuse itself and mounts a single regular file. A loop device over this
file gives a file system a disk whose writes arrive here in order. The server is a process of its own: a request of the
kernel that waits for the process that caused it would never be answered.

Source: struct layouts of include/uapi/linux/fuse.h, protocol 7.31.
"""

import ctypes
import errno
import os
import select
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tornpage.properties.explore.real_faults.mounts import Unavailable, die_with_parent
from tornpage.properties.interrupts import held_interrupts

__all__ = ["BlockDevice", "BlockWrite", "Flush", "Logged", "Mark", "served", "why_no_fuse"]

DEVICE = "/dev/fuse"
WRITE_BYTES_MAX = 1 << 20
REQUEST_BYTES_MAX = WRITE_BYTES_MAX + 4096
_MNT_DETACH = 2
_INODE = 1
_REGULAR = 0o100600

_IN = struct.Struct("=IIQQIIII")
_OUT = struct.Struct("=IiQ")
_INIT_IN = struct.Struct("=IIII")
_INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
_ATTRIBUTES = struct.Struct("=QII QQQ QQQ III IIIIIII")
_OPENED = struct.Struct("=QIi")
_READ = struct.Struct("=QQI")
_WRITE = struct.Struct("=QQIIQII")
_WRITTEN = struct.Struct("=II")
_STATFS = struct.Struct("=QQQQQIIII24x")
_RECORD = struct.Struct("=BqQ")

_GETATTR, _SETATTR, _OPEN, _READ_OP, _WRITE_OP, _STATFS_OP, _RELEASE, _FSYNC = 3, 4, 14, 15, 16, 17, 18, 20
_FLUSH, _INIT, _INTERRUPT, _FORGET, _DESTROY = 25, 26, 36, 2, 38
_WANTED_FLAGS = 1 | 1 << 5 | 1 << 22  # asynchronous reads, writes of more than a page, many pages per request
_ATTRIBUTES_SECONDS = 3600

_IS_WRITE, _IS_FLUSH, _IS_MARK = 1, 2, 3

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class BlockWrite:
    """The device was asked to write `data` at a byte."""

    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Flush:
    """The device was asked to make all earlier writes durable."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The workload reached a point. Everything that it waited for is earlier in the log."""

    number: int


Logged = BlockWrite | Flush | Mark


def why_no_fuse() -> str | None:
    """Return why no logged device can be served here, or None."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} does not exist or is not accessible to this user"
    return None


class BlockDevice:
    """The parent's end of a served image: its path, its marks and its log."""

    def __init__(self, path: str, control: socket.socket, log: int) -> None:
        self.path = path
        self._control = control
        self._log = log

    def mark(self, number: int) -> None:
        """Add a mark to the log, and wait until it is there.

        Raises Unavailable if the server has ended.
        """
        try:
            self._control.sendall(struct.pack("=q", number))
            if not self._control.recv(1):
                raise Unavailable("the server of the logged device has ended")
        except OSError as error:
            raise Unavailable(f"the server of the logged device does not answer: {error.strerror}") from error

    def log(self) -> Iterator[Logged]:
        """Yield everything logged so far, in order."""
        position, end = 0, os.fstat(self._log).st_size
        while position < end:
            kind, number, size_bytes = _RECORD.unpack(os.pread(self._log, _RECORD.size, position))
            position += _RECORD.size
            if kind == _IS_WRITE:
                yield BlockWrite(number, os.pread(self._log, size_bytes, position))
                position += size_bytes
            else:
                yield Flush() if kind == _IS_FLUSH else Mark(number)


@contextmanager
def served(image: int, path: str) -> Iterator[BlockDevice]:
    """Serve the file `image` as the new file `path`. Only for a process with its own mounts.

    Raises Unavailable.
    """
    with open(path, "xb"):
        pass
    try:
        fuse = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"{DEVICE}: {error.strerror}") from error
    log = os.memfd_create("tornpage-block-log", os.MFD_CLOEXEC)
    ours, theirs = socket.socketpair()
    options = f"fd={fuse},rootmode={_REGULAR:o},user_id={os.geteuid()},group_id={os.getegid()},allow_other"
    is_mounted, pid = False, 0
    try:
        if _libc.mount(b"tornpage", os.fsencode(path), b"fuse", 0, options.encode()) != 0:
            raise Unavailable(f"FUSE cannot be mounted here: {os.strerror(ctypes.get_errno())}")
        is_mounted = True
        with held_interrupts():
            pid = os.fork()
            if pid == 0:
                _live(fuse, image, log, ours, theirs)
        os.close(fuse)
        fuse = -1
        theirs.close()
        yield BlockDevice(path, ours, log)
    finally:
        if is_mounted:
            _libc.umount2(os.fsencode(path), _MNT_DETACH)
        ours.close()
        theirs.close()
        if fuse >= 0:
            os.close(fuse)
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(log)
        os.unlink(path)


def _live(fuse: int, image: int, log: int, ours: socket.socket, theirs: socket.socket) -> None:
    """Serve until the parent closes its end or the file is unmounted. Never returns."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        die_with_parent()
        ours.close()
        _Server(fuse, image, log, theirs).serve()
    finally:
        os._exit(0)


class _Server:
    def __init__(self, fuse: int, image: int, log: int, control: socket.socket) -> None:
        self._fuse, self._image, self._log, self._control = fuse, image, log, control

    def serve(self) -> None:
        waiting = select.poll()
        waiting.register(self._fuse, select.POLLIN)
        waiting.register(self._control, select.POLLIN)
        while True:
            for ready, events in waiting.poll():
                if ready == self._fuse:
                    if events & (select.POLLERR | select.POLLHUP) or not self._answer_one():
                        return
                elif not self._mark():
                    return

    def _mark(self) -> bool:
        request = self._control.recv(8)
        if len(request) < 8:
            return False
        os.write(self._log, _RECORD.pack(_IS_MARK, struct.unpack("=q", request)[0], 0))
        self._control.sendall(b"\1")
        return True

    def _answer_one(self) -> bool:
        try:
            request = os.read(self._fuse, REQUEST_BYTES_MAX)
        except OSError as error:
            return error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN)
        _, operation, unique, _, _, _, _, _ = _IN.unpack_from(request)
        if operation in (_FORGET, _INTERRUPT):
            return True
        if operation == _DESTROY:
            return False
        try:
            code, answer = 0, self._answer(operation, memoryview(request)[_IN.size :])
        except OSError as error:
            code, answer = error.errno or errno.EIO, b""
        os.write(self._fuse, _OUT.pack(_OUT.size + len(answer), -code, unique) + answer)
        return True

    def _answer(self, operation: int, body: memoryview) -> bytes:
        if operation == _READ_OP:
            _, offset, size_bytes = _READ.unpack_from(body)
            return os.pread(self._image, size_bytes, offset)
        if operation == _WRITE_OP:
            _, offset, size_bytes, *_ = _WRITE.unpack_from(body)
            data = body[_WRITE.size : _WRITE.size + size_bytes]
            os.pwrite(self._image, data, offset)
            os.writev(self._log, [_RECORD.pack(_IS_WRITE, offset, size_bytes), data])
            return _WRITTEN.pack(size_bytes, 0)
        if operation == _FSYNC:
            os.write(self._log, _RECORD.pack(_IS_FLUSH, 0, 0))
            return b""
        if operation in (_GETATTR, _SETATTR):
            size_bytes = os.fstat(self._image).st_size
            times, blocks = (0, 0, 0, 0, 0, 0), size_bytes // 512
            return _ATTRIBUTES.pack(
                _ATTRIBUTES_SECONDS, 0, 0, _INODE, size_bytes, blocks, *times, _REGULAR, 1, 0, 0, 0, 4096, 0
            )
        if operation == _OPEN:
            return _OPENED.pack(0, 0, 0)
        if operation in (_RELEASE, _FLUSH):
            return b""
        if operation == _STATFS_OP:
            return _STATFS.pack(1 << 20, 1 << 20, 1 << 20, 1, 1, 4096, 255, 4096, 0)
        if operation == _INIT:
            _, _, readahead, flags = _INIT_IN.unpack_from(body)
            pages = WRITE_BYTES_MAX // 4096
            return _INIT_OUT.pack(7, 31, readahead, flags & _WANTED_FLAGS, 64, 48, WRITE_BYTES_MAX, 1, pages, 0, 0)
        raise OSError(errno.ENOSYS, "not needed by a loop device")
