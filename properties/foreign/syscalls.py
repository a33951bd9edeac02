"""List the system calls that change a foreign process's disk, and filter for them.

A process is stopped at calls that change or sync files or names, and at shared mappings of files. Opening a file
counts only if it creates, truncates, or requests synchronous writes. Writes to descriptors for answers and messages do
not count. All other calls run at full speed.

Source: the kernel's syscall tables; seccomp(2), `SECCOMP_RET_TRACE`; bpf of `linux/filter.h`.
"""

import ctypes
import os
import platform
import struct
from functools import lru_cache

__all__ = ["MACHINE", "SYNCHRONOUS", "TEMPORARY", "Machine", "install_filter"]

SYNCHRONOUS = 0o4010000 | os.O_DSYNC
"""Open flags that make each write a sync."""
TEMPORARY = 0o20000000
"""`O_TMPFILE` without the bit of directories."""
_OPEN_FLAGS = os.O_CREAT | os.O_TRUNC | SYNCHRONOUS | TEMPORARY

_X86_64 = {
    "write": 1, "pwrite64": 18, "writev": 20, "msync": 26, "sendfile": 40, "fsync": 74, "fdatasync": 75,
    "truncate": 76, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87,
    "symlink": 88, "sync": 162, "io_submit": 209, "mkdirat": 258, "unlinkat": 263, "renameat": 264, "linkat": 265,
    "symlinkat": 266, "splice": 275, "fallocate": 285, "pwritev": 296, "syncfs": 306, "renameat2": 316,
    "copy_file_range": 326, "pwritev2": 328, "io_uring_setup": 425, "openat2": 437, "mmap": 9,
}  # fmt: skip
_AARCH64 = {
    "io_submit": 2, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "truncate": 45,
    "ftruncate": 46, "fallocate": 47, "write": 64, "writev": 66, "pwrite64": 68, "pwritev": 70, "sendfile": 71,
    "splice": 76, "sync": 81, "fsync": 82, "fdatasync": 83, "msync": 227, "syncfs": 267, "renameat2": 276,
    "copy_file_range": 285, "pwritev2": 287, "io_uring_setup": 425, "openat2": 437, "mmap": 222,
}  # fmt: skip
_MAP_SHARED = 1
_FLAGS_OF_MMAP = 3


class Machine:
    """Hold the calls of one architecture.

    `names` maps a number to a name. `opens` has the numbers of open calls with the position of their flags.
    """

    def __init__(self, audit_arch: int, calls: dict[str, int], opens: dict[str, tuple[int, int]]) -> None:
        self.audit_arch = audit_arch
        self.names = {number: name for name, number in calls.items()}
        self.names |= {number: name for name, (number, _) in opens.items()}
        self._calls = calls
        self._opens = opens

    def flags_at(self, name: str) -> int | None:
        """Return the argument of a call that has the open flags."""
        return self._opens[name][1] if name in self._opens else None

    @lru_cache(maxsize=64)  # noqa: B019 - the machines live as long as the process
    def filter(self, quiet: tuple[int, ...] = ()) -> bytes:
        """Return the filter program.

        It stops at each of the calls, and at any call of another architecture. It does not stop at writes to the
        descriptors in `quiet`.
        """
        trace, allow, load = (0x06, 0, 0, 0x7FF00000), (0x06, 0, 0, 0x7FFF0000), 0x20
        program = [(load, 0, 0, 4), (0x15, 1, 0, self.audit_arch), trace, (load, 0, 0, 0)]
        for name, number in sorted(self._calls.items()):
            if name in ("write", "writev") and quiet:
                passes = [part for descriptor in quiet for part in ((0x15, 0, 1, descriptor), allow)]
                program += [(0x15, 0, 2 + len(passes), number), (load, 0, 0, 16), *passes, trace]
            elif name == "mmap":
                flags = (load, 0, 0, 16 + 8 * _FLAGS_OF_MMAP)
                program += [(0x15, 0, 4, number), flags, (0x45, 0, 1, _MAP_SHARED), trace, allow]
            else:
                program += [(0x15, 0, 1, number), trace]
        for number, place in self._opens.values():
            flags = (load, 0, 0, 16 + 8 * place)
            program += [(0x15, 0, 4, number), flags, (0x45, 0, 1, _OPEN_FLAGS), trace, allow]
        return b"".join(struct.pack("<HBBI", *each) for each in [*program, allow])


_MACHINES = {
    "x86_64": Machine(0xC000003E, _X86_64, {"openat": (257, 2), "open": (2, 1)}),
    "aarch64": Machine(0xC00000B7, _AARCH64, {"openat": (56, 2)}),
}
MACHINE = _MACHINES.get(platform.machine())
"""This machine, or None if its calls are not known."""


def install_filter(machine: Machine, libc: ctypes.CDLL, quiet: tuple[int, ...] = ()) -> None:
    """Make the kernel stop this process and its children at the calls.

    The tracer continues from there. Writes to the descriptors in `quiet` do not stop it. Raises OSError.
    """
    program = machine.filter(quiet)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer)), 16)
    no_new_rights, set_filter, filter_mode = 38, 22, 2
    for arguments in ((no_new_rights, 1, 0, 0, 0), (set_filter, filter_mode, ctypes.addressof(header), 0, 0)):
        if libc.prctl(*map(ctypes.c_ulong, arguments)):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
