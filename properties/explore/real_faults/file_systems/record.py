"""Run a workload on a mounted file system over a logged device."""

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence

from tornpage.properties.explore.real_faults.file_systems.block_device import BlockDevice, Logged, served
from tornpage.properties.explore.real_faults.file_systems.file_system import Kind, mounted_image
from tornpage.properties.explore.real_faults.file_systems.workload import BASE, BASE_DIRECTORIES, Operation, content

__all__ = ["entered", "prepare", "recorded", "returned"]

_SYNC_FILE_RANGE_WRITE = 2
_libc = ctypes.CDLL(None, use_errno=True)


def entered(number: int) -> int:
    """Return the mark before an operation."""
    return 2 * number


def returned(number: int) -> int:
    """Return the mark after an operation."""
    return 2 * number + 1


def prepare(kind: Kind, image: int, directory: str) -> None:
    """Create the files with which each workload starts, durably, in a new file system."""
    with mounted_image(kind, image, f"{directory}/mount", direct=False) as root:
        for path in BASE_DIRECTORIES:
            os.mkdir(root + path)
        for path, size_bytes in BASE.items():
            with open(root + path, "xb") as file:
                file.write(content(0, 0, size_bytes))


def recorded(kind: Kind, image: int, directory: str, operations: Sequence[Operation]) -> list[Logged]:
    """Return the log of a workload on a copy of a prepared image.

    The mark -1 is where it starts, and the last mark is where it ended. Raises Unavailable.
    """
    with served(image, f"{directory}/disk") as device:
        file = os.open(device.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            with mounted_image(kind, file, f"{directory}/mount", direct=True) as root:
                os.close(file)
                file = -1
                _run(device, root, operations)
                log = list(device.log())
        finally:
            if file >= 0:
                os.close(file)
    return log


def _run(device: BlockDevice, root: str, operations: Sequence[Operation]) -> None:
    device.mark(-1)
    for number, operation in enumerate(operations):
        device.mark(entered(number))
        _execute(root, operation)
        device.mark(returned(number))


def _execute(root: str, operation: Operation) -> None:
    path = root + operation.path
    match operation.kind:
        case "mkdir":
            os.mkdir(path)
        case "rmdir":
            os.rmdir(path)
        case "link":
            os.link(path, root + operation.target)
        case "link_nameless" | "link_synced":
            _link_nameless(path, operation)
        case "rename" | "rename_directory":
            os.rename(path, root + operation.target)
        case "unlink":
            os.unlink(path)
        case "truncate":
            os.truncate(path, operation.size_bytes)
        case "create":
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        case "background":
            _on(root, os.O_RDONLY, lambda fd: _checked(_libc.syncfs(fd)))
        case "fsync_directory":
            _on(path, os.O_RDONLY, os.fsync)
        case "fsync":
            _on(path, os.O_RDWR, os.fsync)
        case "fdatasync":
            _on(path, os.O_RDWR, os.fdatasync)
        case "msync":
            _on(path, os.O_RDWR, _synchronise_map)
        case "write_synced":
            _on(path, os.O_RDWR | os.O_DSYNC, lambda fd: os.pwrite(fd, _bytes_of(operation), operation.position))
        case "msync_range":
            _on(path, os.O_RDWR, lambda fd: _synchronise_map(fd, operation.position, operation.size_bytes))
        case "map":
            _on(path, os.O_RDWR, lambda fd: _write_through_map(fd, operation))
        case "write":
            _on(path, os.O_RDWR, lambda fd: os.pwrite(fd, _bytes_of(operation), operation.position))
        case "allocate":
            _on(path, os.O_RDWR, lambda fd: os.posix_fallocate(fd, 0, operation.size_bytes))
        case "write_range":
            _on(path, os.O_RDWR, lambda fd: _write_back(fd, operation))
        case kind:
            raise ValueError(f"unknown operation {kind!r}")


def _on(path: str, flags: int, act: Callable[[int], object]) -> None:
    fd = os.open(path, flags | os.O_CLOEXEC)
    try:
        act(fd)
    finally:
        os.close(fd)


def _link_nameless(path: str, operation: Operation) -> None:
    directory, _, name = path.rpartition("/")
    above = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fd = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o644, dir_fd=above)
        try:
            os.pwrite(fd, _bytes_of(operation), 0)
            if operation.kind == "link_synced":
                os.fsync(fd)
            os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=above, follow_symlinks=True)
        finally:
            os.close(fd)
    finally:
        os.close(above)


def _bytes_of(operation: Operation) -> bytes:
    return content(operation.tag, operation.position, operation.size_bytes)


def _synchronise_map(fd: int, position: int = 0, size_bytes: int = 0) -> None:
    with mmap.mmap(fd, 0) as mapping:
        mapping.flush(position, size_bytes or len(mapping))


def _write_through_map(fd: int, operation: Operation) -> None:
    with mmap.mmap(fd, 0) as mapping:
        mapping[operation.position : operation.position + operation.size_bytes] = _bytes_of(operation)


def _write_back(fd: int, operation: Operation) -> None:
    position, size_bytes = ctypes.c_int64(operation.position), ctypes.c_int64(operation.size_bytes)
    _checked(_libc.sync_file_range(fd, position, size_bytes, _SYNC_FILE_RANGE_WRITE | 1 | 4))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "the kernel refused to write back")
