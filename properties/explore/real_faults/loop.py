"""Provide a small ext4 disk on memory that starts to fail on request.

The medium is a memfd behind a loop device. `fail_from` cuts it at a byte and forbids it to grow again. The kernel then
fails every write past that byte with EIO, and does every other write as before. `copy` returns what a power cut would
leave.

A request that crosses the cut gives a wrong result: the loop driver of Linux writes the first part and reports success.
The cut must therefore be where no write will cross it.
"""

import errno
import fcntl
import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Self

from tornpage.properties.explore.real_faults.mounts import Unavailable, may_mount_disks, mounted

__all__ = ["CONTROL", "Extent", "Medium", "attach", "extents_of", "why_no_loop"]

CONTROL = "/dev/loop-control"
IMAGE_BYTES = 16 << 20
BLOCK_BYTES = 4096
MKFS_SECONDS = 30
TRIES = 16

_LOOP_CTL_GET_FREE = 0x4C82
_LOOP_CONFIGURE = 0x4C0A
_LO_FLAGS_AUTOCLEAR = 4
_LO_FLAGS_DIRECT_IO = 16
_INFO_BYTES, _INFO_FLAGS, _RESERVED_BYTES = 232, 52, 64
_FS_IOC_FIEMAP = 0xC020660B
_FIEMAP_HEAD = struct.Struct("=QQIIII")
_FIEMAP_EXTENT = struct.Struct("=QQQQQIIII")
_FIEMAP_SYNC = 1
_UNWRITTEN = 0x800
_EXTENTS_MAX = 64


@dataclass(frozen=True, slots=True)
class Extent:
    """Describe where a range of a file is on the device, in bytes.

    `written` is False for reserved blocks.
    """

    position: int
    physical: int
    size_bytes: int
    written: bool


def extents_of(path: str) -> list[Extent]:
    """Return where a file is on its device. Source: fiemap in the kernel's documentation."""
    answer = bytearray(_FIEMAP_HEAD.size + _EXTENTS_MAX * _FIEMAP_EXTENT.size)
    _FIEMAP_HEAD.pack_into(answer, 0, 0, (1 << 64) - 1, _FIEMAP_SYNC, 0, _EXTENTS_MAX, 0)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _FS_IOC_FIEMAP, answer)
    finally:
        os.close(fd)
    (*_, count, _, _) = _FIEMAP_HEAD.unpack_from(answer)
    found = []
    for number in range(count):
        fields = _FIEMAP_EXTENT.unpack_from(answer, _FIEMAP_HEAD.size + number * _FIEMAP_EXTENT.size)
        found.append(Extent(fields[0], fields[1], fields[2], not fields[5] & _UNWRITTEN))
    return found


def why_no_loop() -> str | None:
    """Return why no ext4 image can be created and attached here, or None. Nothing is attached."""
    if _mkfs() is None:
        return "mkfs.ext4 is not installed (Debian: e2fsprogs)"
    if not os.access(CONTROL, os.R_OK | os.W_OK):
        return f"{CONTROL} does not exist or is not accessible to this user"
    if mmap.PAGESIZE > BLOCK_BYTES:
        return f"memory pages of {mmap.PAGESIZE} bytes: a write would cross the failing position"
    return None if may_mount_disks() else "no right to mount an ext4 (CAP_SYS_ADMIN)"


def _mkfs() -> str | None:
    return shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Medium:
    """Hold the bytes below a file system while this object or a mount of them exists."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def formatted(cls) -> Self:
        """Return an empty ext4. Raises Unavailable."""
        reason, mkfs = why_no_loop(), _mkfs()
        if reason is not None or mkfs is None:
            raise Unavailable(reason or "no mkfs.ext4")
        medium = cls(os.memfd_create("tornpage-medium", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        os.ftruncate(medium._fd, IMAGE_BYTES)
        options = ["-q", "-F", "-b", str(BLOCK_BYTES), "-J", "size=4", "-E", "nodiscard,lazy_itable_init=0"]
        made = subprocess.run(
            [mkfs, *options, f"/proc/self/fd/{medium._fd}"],
            pass_fds=(medium._fd,),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MKFS_SECONDS,
            check=False,
        )
        if made.returncode != 0:
            medium.close()
            raise Unavailable(f"mkfs.ext4 failed: {' '.join(made.stderr.split())}")
        return medium

    def fail_from(self, physical: int) -> None:
        """Fail every later write at or past `physical`. The bytes there are lost."""
        os.ftruncate(self._fd, physical)
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)

    def copy(self) -> "Medium":
        """Return a sound medium with the bytes of this one, and zeros past the cut."""
        copied = Medium(os.memfd_create("tornpage-medium", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        position = 0
        while piece := os.pread(self._fd, 1 << 20, position):
            os.pwrite(copied._fd, piece, position)
            position += len(piece)
        os.ftruncate(copied._fd, IMAGE_BYTES)
        return copied

    @contextmanager
    def mounted(self, directory: str) -> Iterator[str]:
        """Mount the file system on a new directory.

        Its device detaches with the mount. Raises Unavailable.
        """
        name, device = attach(self._fd)
        with ExitStack() as stack:
            try:
                yielded = stack.enter_context(mounted(name, directory, "ext4", "errors=continue"))
            finally:
                os.close(device)  # the mount holds it from here on; without a mount it detaches now
            yield yielded

    def close(self) -> None:
        """Release the bytes; a mount keeps them for itself."""
        os.close(self._fd)


def attach(fd: int, *, direct: bool = False) -> tuple[str, int]:
    """Attach a loop device that detaches after its last user.

    `direct` passes each request to the file at once, without a page cache of the device. Return its name and a
    descriptor. Raises Unavailable.
    """
    info = bytearray(_INFO_BYTES)
    struct.pack_into("=I", info, _INFO_FLAGS, _LO_FLAGS_AUTOCLEAR | (_LO_FLAGS_DIRECT_IO if direct else 0))
    request = struct.pack("=II", fd, 0) + bytes(info) + bytes(_RESERVED_BYTES)
    try:
        for _ in range(TRIES):
            name, device = _open_free()
            try:
                fcntl.ioctl(device, _LOOP_CONFIGURE, request)
                return name, device
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:  # another process took the free one in between
                    raise
    except OSError as error:
        raise Unavailable(f"no loop device: {error.strerror} ({error.filename or CONTROL})") from error
    raise Unavailable(f"no loop device: taken by others {TRIES} times")


def _open_free() -> tuple[str, int]:
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        name = f"/dev/loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}"
    finally:
        os.close(control)
    return name, os.open(name, os.O_RDWR | os.O_CLOEXEC)
