"""Fork the processes of a run from a small process, so that the judge never forks.

A fork makes every page of a process read-only, and the process then pays a fault for each page that it writes. A judge
writes to most of its pages, if only to count references. The zygote is forked once at the start of a run and does
almost nothing between two children. It reads descriptions of sessions from a socket, forks one process for them, and
answers with its wait status.

The zygote leads its own process group. So no interrupt of a terminal reaches it or its child, and one signal ends both.
The socket shows when both are gone. The zygote ends by itself when the other end of the socket is closed.
"""

import gc
import os
import pickle
import signal
import socket
import struct
from collections.abc import Sequence
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
_REQUEST_BYTES_MAX = 1 << 17
"""More than a request needs, and less than a socket accepts in one piece."""


class Zygote:
    """Fork processes with stores made of `components`, one at a time.

    `progress` is that of the last session that ran alone. `pages` are those of the last sessions that one process ran,
    `together_max` at most.
    """

    def __init__(self, components: Parts, *, together_max: int = 1) -> None:
        self.progress = Progress()
        self.pages = tuple(Progress() for _ in range(together_max))
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if self._pid == 0:
            self._socket.close()
            _serve(theirs, components, self)
        theirs.close()
        os.setpgid(self._pid, self._pid)  # by both, so that neither has to wait for the other

    def start(self, sessions: Sequence[Session]) -> None:
        """Start a process that runs sessions of one program.

        Raises HarnessError if the zygote is gone.
        """
        for page in self.pages_of(len(sessions)):
            page.reset()
        try:
            self._socket.sendall(_packed(sessions))
        except OSError as error:
            raise HarnessError(f"the process that forks is gone: {error.strerror}") from error

    def pages_of(self, sessions: int) -> tuple[Progress, ...]:
        """Return the pages of a process that runs so many sessions."""
        return (self.progress,) if sessions == 1 else self.pages[:sessions]

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


def _packed(sessions: Sequence[Session]) -> bytes:
    own = [(each.directory, each.start_ms, each.mode, each.kill_verb, each.kill_step) for each in sessions]
    return pickle.dumps((own, _packed_program(sessions[0].settings, sessions[0].operations)), pickle.HIGHEST_PROTOCOL)


def _unpacked(data: bytes) -> list[Session]:
    own, program = pickle.loads(data)
    settings, operations = _unpacked_program(program)
    return [
        Session(directory, settings, operations, start_ms, mode, kill_verb, kill_step)
        for directory, start_ms, mode, kill_verb, kill_step in own
    ]


@lru_cache(maxsize=4)
def _packed_program(settings: Settings, operations: tuple[Operation, ...]) -> bytes:
    """Return the part that most processes of a program share."""
    return pickle.dumps((settings, operations), pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=4)
def _unpacked_program(data: bytes) -> tuple[Settings, tuple[Operation, ...]]:
    program: tuple[Settings, tuple[Operation, ...]] = pickle.loads(data)
    return program


def _serve(requests: socket.socket, components: Parts, zygote: Zygote) -> NoReturn:
    """Fork the requested processes until the socket is closed."""
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.disable()  # garbage collection writes to every object
        while data := requests.recv(_REQUEST_BYTES_MAX):
            sessions = _unpacked(data)
            pid = os.fork()
            if pid == 0:
                run_child(sessions, components, zygote.pages_of(len(sessions)))
            _, status = os.waitpid(pid, 0)
            requests.send(_STATUS.pack(status))
    finally:
        os._exit(0)
