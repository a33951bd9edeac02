"""Trace a foreign process, and stop it at each call that changes or syncs files.

This uses `ptrace` and a `seccomp` filter, which need no privileges and no compiler and work for any language. Threads
and children of the process are traced with it. All calls come from the thread that started the trace. If tornpage dies,
the traced processes die.

Before a call that may change something, the directory is examined as far as the calls since the last time may have
changed it. A call is in progress until its task stops at another one. A sync counts once it has returned successfully.
The legality of crash states rests on these facts alone (properties/foreign/watching.py).

Source: ptrace(2) (`PTRACE_GET_SYSCALL_INFO` of Linux 5.3), seccomp(2).
"""

import ctypes
import os
import signal
import stat
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path

from tornpage.properties.foreign.held_file import Extent
from tornpage.properties.foreign.syscalls import MACHINE, SYNCHRONOUS, install_filter
from tornpage.properties.foreign.watching import FileId, WatchedDirectory
from tornpage.properties.interrupts import held_interrupts

__all__ = ["Tracer", "let_trace", "why_untraceable"]

_TRACEME, _CONT, _SYSCALL, _SETOPTIONS, _GETEVENTMSG, _SYSCALL_INFO = 0, 7, 24, 0x4200, 0x4201, 0x420E
_OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000
"""Marked syscall stops; forks, vforks, clones and execs; filter stops; death with the tracer."""
_NEW_TASK_EVENTS, _FILTER_EVENT = (1, 2, 3), 7
_ANY_TASK = 0x40000000
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_INFO_BYTES = 96
_SEARCH_AFTER, _SEARCH_AFTER_MAX = 32, 4096
"""Steps without a held task before the tracer looks for tasks that no event has named; doubled after each look."""
_MS_SYNC = 4
_DATA_SYNC_WRITE = 0x2 | 0x4
_WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "splice", "copy_file_range", "fallocate")
_SYNCING_WRITES = tuple(name for name in _WRITES if name != "fallocate")
"""The writes that are syncs of what they have written if their descriptor is synchronous."""
_POSITION_AT = {"pwrite64": 3, "pwritev": 3, "pwritev2": 3}
"""The argument with the position of a write. All other writes move the position of their descriptor."""
_NO_POSITION = (1 << 64) - 1
_SYNCS = ("fsync", "fdatasync", "msync", "sync", "syncfs")
_TARGET_AT = {"splice": 2, "copy_file_range": 2}
"""The argument with the descriptor that a call writes to, if it is not the first."""
_WITHOUT_NAMES = (*_WRITES, *_SYNCS, "ftruncate", "mmap")
_FD_OF_MMAP = 4
_NO_EXTENT_BYTES = 256 << 10
"""Smaller files are compared as a whole after a write."""
_FILE_END = 1 << 62
_NOT_CALLS = {"io_uring_setup": "io_uring", "io_submit": "aio"}


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    return libc


def _ptrace(request: int, task: int, address: int = 0, data: int = 0) -> int:
    done: int = _libc().ptrace(request, task, address, data)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def let_trace(quiet: tuple[int, ...] = ()) -> None:
    """Stop this child until the parent traces it, then install the filter.

    Called before any code of the store runs. Writes to the descriptors in `quiet` are not traced.
    """
    assert MACHINE is not None
    _ptrace(_TRACEME, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    install_filter(MACHINE, _libc(), quiet)


@cache
def why_untraceable() -> str:
    """Return why no process can be traced here, or an empty string.

    Tries once, on a child that does nothing.
    """
    if MACHINE is None:
        return f"the system calls of this machine ({os.uname().machine}) are not known"
    with held_interrupts():
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                let_trace()
                os.write(os.open("/dev/null", os.O_WRONLY), b"x")
                os._exit(0)
            os._exit(1)
    try:
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            return "this system does not let a process be traced (ptrace)"
        _ptrace(_SETOPTIONS, child, 0, _OPTIONS)
        _ptrace(_CONT, child)
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status) or status >> 16 != _FILTER_EVENT:
            return "this system does not let a process be filtered (seccomp)"
        info = ctypes.create_string_buffer(_INFO_BYTES)
        _ptrace(_SYSCALL_INFO, child, _INFO_BYTES, ctypes.addressof(info))
    except OSError as error:
        return f"this system does not let a process be traced: {error.strerror}"
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
    return ""


class Tracer:
    """Trace a child that called `let_trace`, and report its file changes to `directory`."""

    def __init__(self, child: int, directory: WatchedDirectory) -> None:
        self._child = child
        self._tasks = {child}
        self._directory: WatchedDirectory | None = None
        self._refusal = ""
        self._returning: dict[int, tuple[str, tuple[int, ...], int]] = {}
        """The name and arguments of the sync in progress of each task, and the length of the journal at its begin."""
        self._changing: dict[int, tuple[FileId, Extent | None] | None] = {}
        """What the call in progress of each task may change: a file, or None for names and sizes."""
        self._syncs_when_it_writes = False
        self._info = ctypes.create_string_buffer(_INFO_BYTES)
        self._idle_steps, self._search_after = 0, _SEARCH_AFTER
        self._holds_syncs = False
        self._held_syncs: list[int] = []
        """Tasks that stay stopped where they begin a sync."""
        self.ended: int | None = None
        """Exit code of the child, negative for a signal; None while it runs."""
        self.watch(directory)
        os.waitpid(child, 0)
        _ptrace(_SETOPTIONS, child, 0, _OPTIONS)
        _ptrace(_CONT, child)

    def watch(self, directory: WatchedDirectory | None) -> None:
        """Report changes to another directory, or to none, from now on."""
        if self._directory is not None:
            self._directory.before_look = _nothing_in_progress
        self._directory = directory
        if directory is not None:
            directory.before_look = self._touch_all
            if self._refusal:
                directory.refuse(self._refusal, always=True)

    def mark(self) -> int:
        """Record the directory at an answer; return the number of events before it."""
        return 0 if self._directory is None else self._directory.mark()

    def hold_syncs(self, hold: bool) -> None:
        """Let no sync begin from now on, as on a disk that is slow, or let all of them begin."""
        self._holds_syncs = hold
        held, self._held_syncs = (self._held_syncs, []) if not hold else ([], self._held_syncs)
        for task in held:
            with suppress(ProcessLookupError):
                _ptrace(_SYSCALL, task)

    def _refuse(self, reason: str) -> None:
        """Record why the files of this process cannot be recorded from now on, in any directory."""
        self._refusal = self._refusal or reason
        if self._directory is not None:
            self._directory.refuse(reason)

    def _touch_all(self) -> None:
        """Name everything that the calls in progress may change."""
        for change in self._changing.values():
            self._touch(change)

    def _touch(self, change: tuple[FileId, Extent | None] | None) -> None:
        if self._directory is None:
            return
        if change is None:
            self._directory.touch_names()
        else:
            self._directory.touch(*change)

    def _end_call(self, task: int) -> None:
        """Note that the call of a task is over. What it changed is still to be looked at."""
        if task in self._changing:
            self._touch(self._changing.pop(task))

    def step(self) -> bool:
        """Handle every stopped process and let it continue; return whether there was one."""
        was_held = self._handle_held(tuple(self._tasks))
        self._idle_steps = 0 if was_held else self._idle_steps + 1
        if self._idle_steps < self._search_after:
            return was_held
        self._idle_steps, self._search_after = 0, min(2 * self._search_after, _SEARCH_AFTER_MAX)
        unnamed = self._unnamed_tasks()
        self._tasks |= unnamed
        return self._handle_held(tuple(unnamed))

    def _handle_held(self, tasks: tuple[int, ...]) -> bool:
        was_held = False
        for task in tasks:
            try:
                found, status = os.waitpid(task, os.WNOHANG | _ANY_TASK)
            except ChildProcessError:
                self._tasks.discard(task)
                self._end_call(task)
                continue
            if found:
                was_held = True
                self._handle(task, status)
        return was_held

    def tasks(self) -> frozenset[int]:
        """Return the ids of all its threads and processes."""
        return frozenset(self._tasks | self._unnamed_tasks())

    def _unnamed_tasks(self) -> set[int]:
        """Return the tasks of the watched processes whose start no event has reported.

        The kernel attaches a new task before the event that names it. If its process exits in that moment, the event
        is lost, and the process does not report its end before that task has been waited for.
        """
        found: set[int] = set()
        for process in self._tasks:
            with suppress(OSError):
                found |= {int(name) for name in os.listdir(f"/proc/{process}/task")}
            with suppress(OSError):
                found |= set(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))
        return {task for task in found - self._tasks if _is_traced(task)}

    def _handle(self, task: int, status: int) -> None:
        if not os.WIFSTOPPED(status):
            self._tasks.discard(task)
            self._end_call(task)
            if task == self._child:
                self.ended = os.waitstatus_to_exitcode(status)
            return
        request, pass_on = _CONT, 0
        reason, event = os.WSTOPSIG(status), status >> 16
        try:
            if event in _NEW_TASK_EVENTS:
                self._tasks.add(self._new_task(task))
            elif event == _FILTER_EVENT:
                request = _SYSCALL if self._waits_for_return(task) else _CONT
                if self._holds_syncs and self._returning.get(task, ("",))[0] in _SYNCS:
                    self._held_syncs.append(task)
                    return
            elif reason == _SYSCALL_STOP:
                self._returned(task)
            elif not event and reason != signal.SIGSTOP:  # a new task begins with SIGSTOP
                pass_on = reason
            _ptrace(request, task, 0, pass_on)
        except ProcessLookupError:
            return  # it was killed meanwhile

    def _new_task(self, task: int) -> int:
        message = ctypes.c_ulong()
        _ptrace(_GETEVENTMSG, task, 0, ctypes.addressof(message))
        return message.value

    def _call(self, task: int) -> tuple[str, tuple[int, ...]]:
        """Return name and arguments of the call at which a task is stopped.

        The name is "" for another architecture.
        """
        assert MACHINE is not None
        _ptrace(_SYSCALL_INFO, task, _INFO_BYTES, ctypes.addressof(self._info))
        architecture, number, *arguments = struct.unpack_from("<4xI16xQ6Q", self._info.raw)
        name = MACHINE.names.get(number, "") if architecture == MACHINE.audit_arch else ""
        return name, tuple(arguments)

    def _waits_for_return(self, task: int) -> bool:
        """Examine the directory before a call; return whether the result of the call matters."""
        self._end_call(task)
        if self._directory is not None:
            self._directory.look()
        name, arguments = call = self._call(task)
        assert MACHINE is not None
        flags_at = MACHINE.flags_at(name)
        if flags_at is not None and arguments[flags_at] & SYNCHRONOUS:
            self._syncs_when_it_writes = True
        elif name == "openat2":
            self._refuse("it opens files with openat2, whose flags cannot be read")
        elif name in _NOT_CALLS:
            self._refuse(f"it uses {_NOT_CALLS[name]}, which bypasses system calls")
        elif not name:
            self._refuse("it runs code of another architecture")
        if name not in _WITHOUT_NAMES:
            self._changing[task] = None
        elif name == "mmap":
            self._note_mapped(task, arguments[_FD_OF_MMAP])
        elif name not in _SYNCS:
            self._note_write(task, name, arguments)
        is_sync = name in _SYNCS and (name != "msync" or bool(arguments[2] & _MS_SYNC))
        may_sync = name in _SYNCING_WRITES and (
            self._syncs_when_it_writes or (name == "pwritev2" and bool(arguments[5] & _DATA_SYNC_WRITE))
        )
        if is_sync or may_sync:
            began = 0 if self._directory is None else len(self._directory.journal)
            self._returning[task] = *call, began
        return is_sync or may_sync

    def _note_write(self, task: int, name: str, arguments: tuple[int, ...]) -> None:
        """Note which file a call writes to.

        Of a large file only the pages that it may change are compared.
        """
        number = arguments[_TARGET_AT.get(name, 0)] & 0xFFFFFFFF
        with suppress(OSError):
            found = os.stat(f"/proc/{task}/fd/{number}")
            if not stat.S_ISREG(found.st_mode):
                return
            extent = None
            if found.st_size > _NO_EXTENT_BYTES:
                if name == "pwrite64":
                    extent = arguments[3], arguments[3] + arguments[2]
                elif name in ("write", "writev"):
                    extent = _write_position(task, number, found.st_size), _FILE_END
            self._changing[task] = (found.st_dev, found.st_ino), extent

    def _note_mapped(self, task: int, number: int) -> None:
        """Note a file that is mapped for writing, or may be."""
        number &= 0xFFFFFFFF
        if self._directory is None:
            return
        with suppress(OSError):
            if _descriptor(task, number)["flags"] & os.O_ACCMODE == os.O_RDWR:
                found = os.stat(f"/proc/{task}/fd/{number}")
                self._directory.note_mapped((found.st_dev, found.st_ino))

    def _returned(self, task: int) -> None:
        """Record a sync that has returned, or a write that may have been one."""
        name, arguments, began = self._returning.pop(task, ("", (), 0))
        self._end_call(task)
        _ptrace(_SYSCALL_INFO, task, _INFO_BYTES, ctypes.addressof(self._info))
        (result,) = struct.unpack_from("<q", self._info.raw, 24)
        if self._directory is None:
            return
        if name in ("sync", "syncfs"):
            if result == 0:
                self._directory.all_synced()
        elif name == "msync":
            for place, extent in _mapped(task, arguments[0], arguments[1]):
                self._directory.synced(place, succeeded=result == 0, data_only=True, extent=extent)
        elif name in _SYNCS or (name in _SYNCING_WRITES and result >= 0):
            number = arguments[2] if name == "copy_file_range" else arguments[0]
            if name in _SYNCS or _is_synchronous(task, number) or name == "pwritev2":
                opened = f"/proc/{task}/fd/{number & 0xFFFFFFFF}"
                with suppress(OSError):
                    found = os.stat(opened)
                    place = found.st_dev, found.st_ino
                    data_only = name != "fsync"
                    written = _written(task, name, arguments, result) if name in _SYNCING_WRITES else None
                    self._directory.synced(
                        place,
                        succeeded=result >= 0,
                        opened=opened,
                        data_only=data_only,
                        extent=written,
                        began=began if name in _SYNCS else None,
                    )


def _is_traced(task: int) -> bool:
    """Return whether this process is the tracer of a task."""
    with suppress(OSError, StopIteration), open(f"/proc/{task}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("TracerPid:")) == os.getpid()
    return False


def _nothing_in_progress() -> None:
    """Name nothing: the process does not work in this directory any more."""


def _descriptor(task: int, number: int) -> dict[str, int]:
    """Return the position and flags of a descriptor. Raises OSError."""
    with open(f"/proc/{task}/fdinfo/{number}") as lines:
        fields = dict(line.split(":", 1) for line in lines if line.startswith(("pos:", "flags:")))
    return {"pos": int(fields["pos"]), "flags": int(fields["flags"], 8)}


def _write_position(task: int, number: int, size_bytes: int) -> int:
    """Return where a write begins that names no position. Raises OSError."""
    descriptor = _descriptor(task, number)
    return size_bytes if descriptor["flags"] & os.O_APPEND else descriptor["pos"]


def _is_synchronous(task: int, number: int) -> bool:
    """Return whether a descriptor was opened for synchronous writes."""
    try:
        return bool(_descriptor(task, number & 0xFFFFFFFF)["flags"] & SYNCHRONOUS)
    except OSError:
        return False


def _written(task: int, name: str, arguments: tuple[int, ...], count: int) -> Extent | None:
    """Return the bytes that a write has written, or None if they are not known.

    They are not known if the position is in the memory of the process, or if a write with a position appends.
    """
    if name in _TARGET_AT and arguments[_TARGET_AT[name] + 1]:
        return None
    try:
        descriptor = _descriptor(task, arguments[_TARGET_AT.get(name, 0)] & 0xFFFFFFFF)
    except OSError:
        return None
    position = arguments[_POSITION_AT[name]] if name in _POSITION_AT else _NO_POSITION
    if position == _NO_POSITION:
        return descriptor["pos"] - count, descriptor["pos"]
    return None if descriptor["flags"] & os.O_APPEND else (position, position + count)


def _mapped(task: int, address: int, size_bytes: int) -> set[tuple[FileId, Extent]]:
    """Return the files that are mapped at some addresses, and the bytes of them there."""
    found = set()
    with suppress(OSError), open(f"/proc/{task}/maps") as lines:
        for line in lines:
            extent, _, offset, *_, name = line.rstrip("\n").split(maxsplit=5) + [""] * (len(line.split()) < 6)
            first, last = (int(end, 16) for end in extent.split("-"))
            if first < address + size_bytes and address < last and name.startswith("/"):
                in_file = int(offset, 16) - first
                synced = max(first, address) + in_file, min(last, address + size_bytes) + in_file
                with suppress(OSError):
                    stat = os.stat(name)
                    found.add(((stat.st_dev, stat.st_ino), synced))
    return found
