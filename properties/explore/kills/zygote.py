"""Fork the processes of a run from a small process, so that the judge never forks.

A fork makes every page of a process read-only, and the process then pays a fault for each page that it writes. A judge
writes to most of its pages, if only to count references. The zygote is forked once at the start of a run and does
almost nothing between two children. It reads one description from a socket, forks it, and answers with its wait status.

The zygote leads its own process group. So no interrupt of a terminal reaches it or its child, and one signal ends both.
The socket shows when both are gone. The zygote ends by itself when the other end of the socket is closed.
"""

import gc
import os
import pickle
import signal
import socket
import struct
from functools import lru_cache
from typing import NoReturn

from tornpage.impl.parts import Parts
from tornpage.model.operations import Operation
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.kills.child import Session, run_child
from tornpage.properties.explore.kills.progress import Progress
from tornpage.properties.program.case import Settings

__all__ = ["Zygote"]

_STATUS = struct.Struct("=i")
_SESSION_BYTES_MAX = 1 << 17
"""More than a description needs, and less than a socket accepts in one piece."""


class Zygote:
    """Fork processes with stores made of `components`, one at a time.

    `progress` is that of the last one.
    """

    def __init__(self, components: Parts) -> None:
        self.progress = Progress()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if self._pid == 0:
            self._socket.close()
            _serve(theirs, components, self.progress)
        theirs.close()
        os.setpgid(self._pid, self._pid)  # by both, so that neither has to wait for the other

    def start(self, life: Session) -> None:
        """Start a process. Raises HarnessError if the zygote is gone."""
        self.progress.reset()
        try:
            self._socket.sendall(_packed(life))
        except OSError as error:
            raise HarnessError(f"the process that forks is gone: {error.strerror}") from error

    def wait(self) -> int:
        """Wait for the end of the process and return its wait status.

        Raises HarnessError if it is unknown.
        """
        answer = self._heard()
        if len(answer) != _STATUS.size:
            raise HarnessError("the process that forks ended before the life that it had forked")
        (status,) = _STATUS.unpack(answer)
        return int(status)

    def _heard(self) -> bytes:
        """Return the answer of the zygote, or nothing once it is gone.

        It may be gone with an unread request.
        """
        try:
            return self._socket.recv(_STATUS.size)
        except ConnectionResetError:
            return b""

    def end(self) -> None:
        """Kill the zygote and a process that still runs; return when both are gone."""
        os.killpg(self._pid, signal.SIGKILL)
        try:
            while self._heard():
                pass
        finally:
            self._socket.close()
            os.waitpid(self._pid, 0)


def _packed(life: Session) -> bytes:
    own = (life.directory, life.start_ms, life.mode, life.kill_verb, life.kill_step)
    return pickle.dumps((own, _packed_program(life.settings, life.operations)), pickle.HIGHEST_PROTOCOL)


def _unpacked(data: bytes) -> Session:
    (directory, start_ms, mode, kill_verb, kill_step), program = pickle.loads(data)
    settings, operations = _unpacked_program(program)
    return Session(directory, settings, operations, start_ms, mode, kill_verb, kill_step)


@lru_cache(maxsize=4)
def _packed_program(settings: Settings, operations: tuple[Operation, ...]) -> bytes:
    """Return the part that most processes of a program share."""
    return pickle.dumps((settings, operations), pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=4)
def _unpacked_program(data: bytes) -> tuple[Settings, tuple[Operation, ...]]:
    program: tuple[Settings, tuple[Operation, ...]] = pickle.loads(data)
    return program


def _serve(lives: socket.socket, components: Parts, progress: Progress) -> NoReturn:
    """Fork the requested processes until the socket is closed."""
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.disable()  # garbage collection writes to every object
        while data := lives.recv(_SESSION_BYTES_MAX):
            life = _unpacked(data)
            pid = os.fork()
            if pid == 0:
                run_child(life, components, progress)
            _, status = os.waitpid(pid, 0)
            lives.send(_STATUS.pack(status))
    finally:
        os._exit(0)
