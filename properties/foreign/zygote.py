"""Fork the processes of a Python store from a process that does nothing else.

A fork makes every page of a process read-only, and the process then pays a fault for each page that it writes. The
judge writes to most of its pages between two crash states. The zygote is forked from the judge once, after the target
was imported, and does almost nothing between two forks.

The zygote creates each process as a child of the judge (`CLONE_PARENT`). So the judge traces it, waits for it and kills
it like a process that it forked itself, and each process dies with the judge. The zygote dies with the judge too, and
ends by itself when the other end of its socket is closed.

A zygote is used inside `zygotes`, for one target and one thread: only the thread that forked the zygote may trace its
processes. Changes that the judge makes to a module of the target after the first session are not seen by later ones.

Source: clone(2) (`CLONE_PARENT`, `CLONE_CHILD_SETTID`), prctl(2) (`PR_GET_TID_ADDRESS`, `PR_SET_PDEATHSIG`), "C API" of
Python (`PyOS_BeforeFork`).
"""

import ctypes
import os
import platform
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import NoReturn

from tornpage.properties.contract import HarnessError
from tornpage.properties.interrupts import held_interrupts

__all__ = ["Zygote", "can_clone_sibling", "die_with_parent", "zygote_of", "zygotes"]

_DIE_WITH_PARENT, _GET_TID_ADDRESS = 1, 40
_CLONE_PARENT, _CHILD_CLEARTID, _CHILD_SETTID = 0x8000, 0x200000, 0x1000000
_PID = struct.Struct("=i")
_REQUEST_BYTES_MAX = 1 << 16

Live = Callable[[bytes, list[int]], NoReturn]
"""What a forked process does with the bytes and descriptors of its request."""


class _Calls:
    """Hold the numbers of the calls on one architecture."""

    def __init__(self, clone: int, set_robust_list: int, get_robust_list: int, *, tls_before_tid: bool) -> None:
        self.clone, self.set_robust_list, self.get_robust_list = clone, set_robust_list, get_robust_list
        self.tls_before_tid = tls_before_tid


_CALLS = {
    "x86_64": _Calls(56, 273, 274, tls_before_tid=False),
    "aarch64": _Calls(220, 99, 100, tls_before_tid=True),
}.get(platform.machine())


@cache
def _libc() -> ctypes.PyDLL:
    """Return the C library. Its calls keep the lock of the interpreter."""
    libc = ctypes.PyDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def die_with_parent(parent: int) -> None:
    """Let this process be killed when the thread that forked it ends.

    Ends the process if its parent is already gone.
    """
    _libc().prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the request for its death signal
        os._exit(127)


def _thread_id_address() -> int:
    """Return where the C library keeps the id of this thread, or 0 if that is unknown."""
    address = ctypes.c_void_p()
    if _libc().prctl(_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) or not address.value:
        return 0
    is_id = ctypes.c_int.from_address(address.value).value == threading.get_native_id()
    return address.value if is_id else 0


@cache
def can_clone_sibling() -> bool:
    """Return whether a process can create another one as a child of its own parent here."""
    return _CALLS is not None and sys.implementation.name == "cpython" and bool(_thread_id_address())


def _clone_sibling() -> int:
    """Fork like `os.fork`, but as a child of the parent of this process. Raises OSError."""
    assert _CALLS is not None
    libc, python = _libc(), ctypes.pythonapi
    address = ctypes.c_void_p(_thread_id_address())
    robust_head, robust_bytes = ctypes.c_void_p(), ctypes.c_size_t()
    libc.syscall(_CALLS.get_robust_list, 0, ctypes.byref(robust_head), ctypes.byref(robust_bytes))
    flags = ctypes.c_ulong(_CLONE_PARENT | _CHILD_SETTID | _CHILD_CLEARTID | signal.SIGCHLD)
    nothing = ctypes.c_void_p()
    last = (nothing, address) if _CALLS.tls_before_tid else (address, nothing)
    arguments = (ctypes.c_long(_CALLS.clone), flags, nothing, nothing, *last)
    python.PyOS_BeforeFork()
    found: int = libc.syscall(*arguments)
    if found:
        python.PyOS_AfterFork_Parent()
    else:
        python.PyOS_AfterFork_Child()
        libc.syscall(_CALLS.set_robust_list, robust_head, robust_bytes)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


class Zygote:
    """Fork processes that run `live`, as children of this process.

    Before the first, the zygote runs `prepare` once. `live` gets the bytes and descriptors of a request and must not
    return. Raises OSError if no process can be made.
    """

    def __init__(self, prepare: Callable[[], None], live: Live) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        try:
            with held_interrupts():
                self.pid = os.fork()
                if self.pid == 0:
                    _serve(theirs, self._socket, prepare, live, parent)
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()

    def fork(self, request: bytes, descriptors: list[int]) -> int:
        """Return the id of a new process.

        Raises HarnessError if the zygote has ended, OSError if no process can be made.
        """
        try:
            socket.send_fds(self._socket, [request], descriptors)
            answer = self._socket.recv(_PID.size)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
        if len(answer) != _PID.size:
            raise HarnessError("the process that forks those of the store has ended")
        (found,) = _PID.unpack(answer)
        if found < 0:
            raise OSError(-found, os.strerror(-found))
        return int(found)

    def end(self) -> None:
        """Kill the zygote. Processes that it forked continue."""
        self._socket.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _serve(
    requests: socket.socket, theirs: socket.socket, prepare: Callable[[], None], live: Live, parent: int
) -> NoReturn:
    """Fork the requested processes until the socket is closed."""
    try:
        os.setsid()
        die_with_parent(parent)
        theirs.close()
        prepare()
        can_clone_sibling()
        while True:
            request, descriptors, _, _ = socket.recv_fds(requests, _REQUEST_BYTES_MAX, 3)
            if not request:
                break
            try:
                found = _clone_sibling()
            except OSError as error:
                found = -(error.errno or 1)
            if found == 0:
                requests.close()  # only the zygote holds it, so that its end is noticed
                live(request, descriptors)
            requests.send(_PID.pack(found))
            for descriptor in descriptors:
                os.close(descriptor)
    finally:
        os._exit(0)


class _Run(threading.local):
    """Hold the zygotes of the runs of one thread, by target and process.

    Only the thread that forked a zygote may trace its processes.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.held: dict[tuple[object, int], Zygote] = {}


_run = _Run()


@contextmanager
def zygotes() -> Iterator[None]:
    """Fork the processes of Python stores from zygotes.

    They end with the outermost such block of this thread.
    """
    _run.depth += 1
    try:
        yield
    finally:
        _run.depth -= 1
        if not _run.depth:
            with held_interrupts():
                _end_zygotes()


def _end_zygotes() -> None:
    while _run.held:
        (_, owner), zygote = _run.held.popitem()
        if owner == os.getpid():  # another process may have been forked inside the block
            zygote.end()


def zygote_of(target: object, prepare: Callable[[], None], live: Live) -> Zygote | None:
    """Return the zygote of a target, or None.

    There is none outside `zygotes`, and where a process cannot create a child of its parent. Raises OSError if no
    process can be made.
    """
    if not _run.depth or not can_clone_sibling():
        return None
    key = target, os.getpid()
    if key not in _run.held:
        _run.held[key] = Zygote(prepare, live)
    return _run.held[key]
