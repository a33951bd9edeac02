"""Make mounts that only this process sees and that end with it.

A stage enters its own mount namespace before it mounts anything. The kernel removes its mounts when its last process is
gone, after SIGKILL too, and no other process ever sees them. Without root privileges it gets a user namespace as well,
in which tmpfs may be mounted and loop devices may not.
"""

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tornpage.properties.interrupts import held_interrupts

__all__ = ["Unavailable", "die_with_parent", "enter_private_mounts", "may_mount_disks", "mounted", "why_no_mounts"]

_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWUSER = 0x1000_0000
_MS_REC = 0x4000
_MS_PRIVATE = 0x4_0000
_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_CAP_SYS_ADMIN = 21
_ALL_USERS = ["0", "0", "4294967295"]

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """Raise this if the machine lacks what a fault needs; the text says what is missing."""


def _call(function: Callable[..., int], *arguments: object, about: str) -> None:
    """Call a function of the C library that Python 3.11 does not wrap. Raises OSError."""
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about)


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends, so that none is left over."""
    _call(_libc.prctl, _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0, about="prctl")


def enter_private_mounts(directory: str) -> None:
    """Give this process its own mounts, and an empty memory file system on `directory`.

    The process must have one thread. Raises Unavailable.
    """
    try:
        _unshare()
        _call(_libc.mount, b"none", b"/", None, _MS_REC | _MS_PRIVATE, None, about="/")
        _mount("tmpfs", directory, "tmpfs", "mode=700")
    except OSError as error:
        raise Unavailable(f"no mounts here: {error.strerror} ({error.filename})") from error


def may_mount_disks() -> bool:
    """Return whether this process may mount a file system with a disk.

    It needs CAP_SYS_ADMIN and must not be in a user namespace.
    """
    with open("/proc/self/status") as status, open("/proc/self/uid_map") as uid_map:
        effective = next(line for line in status if line.startswith("CapEff:"))
        return bool(int(effective.split()[1], 16) & 1 << _CAP_SYS_ADMIN) and uid_map.read().split() == _ALL_USERS


def _unshare() -> None:
    """Leave the mounts of other processes, as root of a user namespace if necessary."""
    user, group = os.geteuid(), os.getegid()
    try:
        _call(_libc.unshare, _CLONE_NEWNS, about="unshare")
        return
    except PermissionError:
        _call(_libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS, about="unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _mount(source: str, directory: str, kind: str, options: str) -> None:
    _call(_libc.mount, source.encode(), os.fsencode(directory), kind.encode(), 0, options.encode(), about=directory)


@contextmanager
def mounted(source: str, directory: str, kind: str, options: str) -> Iterator[str]:
    """Mount on a new directory, and unmount it again, lazily if a file is still open there.

    Only for a process in `enter_private_mounts`. Raises Unavailable if the mount fails.
    """
    os.mkdir(directory)
    try:
        _mount(source, directory, kind, options)
    except OSError as error:
        os.rmdir(directory)
        raise Unavailable(f"{kind} cannot be mounted here: {error.strerror}") from error
    try:
        yield directory
    finally:
        target = os.fsencode(directory)
        if _libc.umount2(target, 0) != 0:
            _call(_libc.umount2, target, _MNT_DETACH, about=directory)
        os.rmdir(directory)


def why_no_mounts(directory: str) -> str | None:
    """Return why no memory file system can be mounted on a directory, or None.

    Nothing stays mounted.
    """
    read_end, write_end = os.pipe()
    with held_interrupts():
        pid = os.fork()
        if pid == 0:
            try:
                enter_private_mounts(directory)
            except Unavailable as error:
                os.write(write_end, str(error).encode())
            finally:
                os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as said:
        reason = said.read()
    os.waitpid(pid, 0)
    return reason or None
