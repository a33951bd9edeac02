"""Run the process of a store under test: start, ask, kill, and never leave it running.

Requests and answers are JSON, one object per line. An answer that does not arrive in time counts as a hang. A command
uses standard input and output. A callable runs in a fork of this process, or of a zygote (foreign/zygote.py), and uses
pipes of its own, so that it may print. Standard error of both is kept. Each process has its own session, so that Ctrl-C
reaches only tornpage, and dies together with tornpage.
"""

import faulthandler
import gc
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

from tornpage.properties.contract import HarnessError
from tornpage.properties.foreign.child_signals import child_signals_held, wait_for_child
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.serving import serve
from tornpage.properties.foreign.spec import CommandSpec, Spec
from tornpage.properties.foreign.syscalls import MACHINE
from tornpage.properties.foreign.tracing import Tracer, let_trace
from tornpage.properties.foreign.watching import WatchedDirectory
from tornpage.properties.foreign.zygote import Zygote, die_with_parent, zygote_of
from tornpage.properties.interrupts import held_interrupts

__all__ = ["ANSWER_SECONDS", "Died", "Hung", "NoAnswer", "StoreFailed", "StoreProcess"]

ANSWER_SECONDS = 10.0
"""The time limit for an answer, in seconds."""
_ANSWER_BYTES_MAX = 64 << 20
_SHOWN_BYTES = 2000
_SHOWN_CHARACTERS = 120
_REAP_SECONDS = 10.0
_AHEAD_BYTES_MAX = 16 << 10
"""The most that is sent ahead of the answers. A pipe holds it, so that no write waits for the store."""


@dataclass
class StoreFailed(TargetUnusable):
    """Raise this if the process gave no usable answer.

    `stderr` is the end of its standard error.
    """

    sentence: str
    stderr: str

    @property
    def last_words(self) -> str:
        """Return the last line of standard error, if there is one."""
        lines = self.stderr.strip().splitlines()
        return f"on standard error: {lines[-1]}" if lines and lines[-1] not in self.sentence else ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.sentence, self.last_words)))


class Died(StoreFailed):
    """Raise this if the process ended by itself."""


class Hung(StoreFailed):
    """Raise this if the process did not answer in time."""


class NoAnswer(StoreFailed):
    """Raise this if the answer was not one JSON object."""


class StoreProcess:
    """Run one session of a store in `directory`, traced if `watched` is given.

    Raises HarnessError if no process can be created.
    """

    def __init__(
        self,
        spec: Spec,
        root: Path,
        *,
        watched: WatchedDirectory | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._answer_seconds = answer_seconds
        self.meanwhile: Callable[[], None] = _do_nothing
        """Called while this process is waited for, so that other traced processes can go on."""
        self._first_request: dict[str, Any] = {"do": "hello"}
        self._is_over = False
        self.opens_many = False
        """Whether the store said that its process opens other directories after a close."""
        self.reads_ahead = False
        """Whether the store said that requests may arrive before it has answered earlier ones."""
        self._sent_ahead: deque[dict[str, Any]] = deque()
        self._ahead_bytes = 0
        self.opens = 1
        """The number of directories that were opened."""
        self.stays = False
        """Whether the process stays after a close, for another directory."""
        self.is_closed = False
        """Whether the store has answered a close, and no directory has been opened since."""
        self._stderr = open(os.memfd_create("stderr"), "r+b")  # noqa: SIM115 - closed by `kill`
        self._got = bytearray()
        self._code: int | None = None
        self._last_words = ""
        parent = os.getpid()
        zygote = _zygote(spec, parent)  # forked before the pipes are made, whose ends it must not hold
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        if watched is not None and MACHINE is not None:
            MACHINE.filter(_quiet(spec, answers))  # made here once, not in each child
        if zygote is None:
            sys.stdout.flush()
            sys.stderr.flush()
        descriptors = [requests, answers, self._stderr.fileno()]
        try:
            with held_interrupts():
                if zygote is not None:
                    self._id = zygote.fork(bytes([watched is not None]) + os.fsencode(root), descriptors)
                elif (found := os.fork()) == 0:
                    _live(spec, root, descriptors, parent, traced=watched is not None)
                else:
                    self._id = found
        except (OSError, HarnessError) as error:
            for descriptor in (requests, answers, self._requests, self._answers):
                os.close(descriptor)
            self._stderr.close()
            if isinstance(error, HarnessError):
                raise
            raise HarnessError(f"no process can be made for the store: {error.strerror}") from error
        os.close(requests)
        os.close(answers)
        os.set_blocking(self._answers, False)
        os.set_blocking(self._requests, False)
        self._tracer = None if watched is None else Tracer(self._id, watched)

    @property
    def id(self) -> int:
        """The number of the process."""
        return self._id

    def go_on(self) -> None:
        """Let a traced process go on that has stopped at a call."""
        if self._tracer is not None:
            while self._tracer.step():
                pass

    def hold_syncs(self, hold: bool) -> None:
        """Let no sync of a traced process begin from now on, or let all of them begin."""
        if self._tracer is not None:
            self._tracer.hold_syncs(hold)

    def greet(self) -> dict[str, Any]:
        """Open the store; return its handshake. Raises StoreFailed."""
        self.is_closed = False
        return self.ask(**self._first_request)

    def reuse(self, root: Path, watched: WatchedDirectory | None) -> None:
        """Work in another directory from now on.

        The store was closed. It is opened there by `greet`.
        """
        if self._tracer is not None and watched is not None:
            self._tracer.watch(watched)
        self._first_request = {"do": "open", "dir": str(root)}
        self.opens += 1

    def leave_directory(self) -> None:
        """Report no further changes to the directory."""
        if self._tracer is not None:
            self._tracer.watch(None)

    @property
    def is_traced(self) -> bool:
        """Whether the calls of the process are traced."""
        return self._tracer is not None

    def closed(self) -> None:
        """Note that the store has answered a close.

        The process ends, unless it stays. Raises Hung.
        """
        self.is_closed = True
        if not (self.stays and self.opens_many):
            self.wait_for_end()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the answer. Raises StoreFailed."""
        request = {"do": do, **arguments}
        if self._sent_ahead and self._sent_ahead[0] == request:
            self._sent_ahead.popleft()
            return self._answer(do, b"")
        self._take_sent_ahead()
        return self._answer(do, _line(request))

    def ask_each(self, do: str, **arguments: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        """Send a request that has several answers; yield each as it comes, without end.

        It is the number of events of the watched directory before which the answer came, and the answer. Raises
        StoreFailed.
        """
        self._take_sent_ahead()
        line = _line({"do": do, **arguments})
        while True:
            answer = self._answer(do, line)
            yield (0 if self._tracer is None else self._tracer.mark()), answer
            line = b""

    def _take_sent_ahead(self) -> None:
        """Take the answers to requests that are not asked any more."""
        while self._sent_ahead:
            self._answer(self._sent_ahead.popleft()["do"], b"")

    def send_ahead(self, requests: Sequence[dict[str, Any]]) -> None:
        """Send requests whose answers `ask` then reads in this order.

        Requests past a limit of bytes are sent by `ask`.
        """
        if not self._sent_ahead:
            self._ahead_bytes = 0
        sent = b""
        for request in requests:
            line = _line(request)
            self._ahead_bytes += len(line)
            if self._ahead_bytes > _AHEAD_BYTES_MAX:
                break
            sent += line
            self._sent_ahead.append(request)
        if sent:
            with child_signals_held():
                self._send(requests[0]["do"], sent, monotonic() + self._answer_seconds)

    def _answer(self, do: str, request: bytes) -> dict[str, Any]:
        """Send what is left of a request and return its answer."""
        if request or b"\n" not in self._got:
            self._receive(do, request)
        line, _, rest = bytes(self._got).partition(b"\n")
        self._got = bytearray(rest)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            shown = repr(line[:_SHOWN_CHARACTERS].decode(errors="replace"))
            raise NoAnswer(f"the answer to {do} is no JSON object: {shown}", self.said())
        return answer

    def _receive(self, do: str, request: bytes) -> None:
        until = monotonic() + self._answer_seconds
        with child_signals_held():
            self._send(do, request, until)
            while b"\n" not in self._got:
                self._wait(do, until)
                if len(self._got) > _ANSWER_BYTES_MAX:
                    raise NoAnswer(f"the answer to {do} has more than {_ANSWER_BYTES_MAX >> 20} MiB", self.said())

    def _send(self, do: str, request: bytes, until: float) -> None:
        """Write a request. A store that does not read it counts as hung."""
        while request:
            try:
                request = request[os.write(self._requests, request) :]
            except BlockingIOError:
                self._wait(do, until)
            except BrokenPipeError:
                return  # a store that closed its input is waited for, and reported by how it ended

    def _wait(self, do: str, until: float) -> None:
        """Continue until bytes arrive or a short pause is over. Raises Died and Hung."""
        if self._tracer is not None:
            self._tracer.step()
        self.meanwhile()
        if wait_for_child([self._answers], max(0.0, until - monotonic())):
            try:
                data = os.read(self._answers, 1 << 16)
            except BlockingIOError:
                return
            self._got += data
            if not data:
                raise Died(f"the store {self._end()} instead of answering {do}", self.said())
        elif monotonic() >= until:
            raise Hung(f"the store does not answer {do} within {self._answer_seconds:g} s", self.said())

    def _end(self) -> str:
        """Return how the process ended. It has closed its output and may still run."""
        until = monotonic() + self._answer_seconds
        while not self._has_ended() and monotonic() < until:
            wait_for_child()
        if self._code is None:
            return "closes its output"
        return f"is killed by {_signal_name(-self._code)}" if self._code < 0 else f"exits with {self._code}"

    def _has_ended(self) -> bool:
        if self._code is None and self._tracer is not None:
            self._tracer.step()
            self._code = self._tracer.ended
        elif self._code is None:
            found, status = os.waitpid(self._id, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if found else None
        return self._code is not None

    def wait_for_end(self) -> None:
        """Wait until the process has ended by itself after a close. Raises Hung."""
        until = monotonic() + self._answer_seconds
        if self.opens_many:  # it waits for another directory
            self.kill()
            return
        with child_signals_held():
            while not self._has_ended():
                if monotonic() >= until:
                    raise Hung(f"the store does not end within {self._answer_seconds:g} s after its close", self.said())
                wait_for_child()
        self.kill()

    def kill(self) -> None:
        """Kill the process and all processes it started with SIGKILL. May be called again."""
        if self._is_over:
            return
        tasks = {self._id} if self._tracer is None else self._tracer.tasks() | {self._id}
        until = monotonic() + _REAP_SECONDS
        with child_signals_held():
            while not self._has_ended() and monotonic() < until:
                for task in tasks:
                    with suppress(ProcessLookupError):
                        os.kill(task, signal.SIGKILL)
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._id, signal.SIGKILL)  # its child processes that are not watched
                wait_for_child()
        self._last_words = self.said()
        for descriptor in (self._requests, self._answers):
            os.close(descriptor)
        self._is_over = True
        self._stderr.close()

    def said(self) -> str:
        """Return the end of what it wrote to standard error."""
        if self._is_over:
            return self._last_words
        end = os.fstat(self._stderr.fileno()).st_size
        said = os.pread(self._stderr.fileno(), _SHOWN_BYTES, max(0, end - _SHOWN_BYTES))
        return said.decode(errors="replace")


def _do_nothing() -> None:
    """Wait without other work."""


def _line(request: dict[str, Any]) -> bytes:
    """Return a request as sent."""
    return json.dumps(request).encode() + b"\n"


def _signal_name(number: int) -> str:
    """Return the name of a signal; most real-time signals have none."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _quiet(spec: Spec, answers: int) -> tuple[int, ...]:
    """Return the descriptors for answers and messages, whose writes need not be traced."""
    return (1, 2) if isinstance(spec, CommandSpec) else (1, 2, answers)


def _zygote(spec: Spec, parent: int) -> Zygote | None:
    """Return the zygote of a Python store, if there is one. Raises HarnessError."""
    if isinstance(spec, CommandSpec):
        return None
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        return zygote_of(spec, _prepare_python, partial(_live_as_asked, spec, parent))
    except OSError as error:
        raise HarnessError(f"no process can be made for the store: {error.strerror}") from error


def _live_as_asked(spec: Spec, parent: int, request: bytes, descriptors: list[int]) -> NoReturn:
    """Become the store in a process that a zygote has forked."""
    _live(spec, Path(os.fsdecode(request[1:])), descriptors, parent, traced=bool(request[0]), is_prepared=True)


def _prepare() -> None:
    """Remove what only the parent needs after fork."""
    gc.disable()  # objects of the parent must not be finalized here
    faulthandler.disable()  # it would write about the store to the standard error of the parent
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _prepare_python() -> None:
    _prepare()
    sys.stdin = open(os.devnull)  # noqa: SIM115 - these live as long as the process
    sys.stdout = sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _live(
    spec: Spec, root: Path, descriptors: list[int], parent: int, *, traced: bool, is_prepared: bool = False
) -> NoReturn:
    """Become the store after fork. Never returns and cleans up nothing of the parent.

    `is_prepared`: the process that forked this one has called `_prepare_python`.
    """
    code = 127
    requests, answers, errors = descriptors
    try:
        os.setsid()
        die_with_parent(parent)
        if not is_prepared:
            _prepare() if isinstance(spec, CommandSpec) else _prepare_python()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGCHLD})
        os.dup2(errors, 2)
        if isinstance(spec, CommandSpec):
            os.dup2(requests, 0)
            os.dup2(answers, 1)
            if traced:
                let_trace(_quiet(spec, answers))
            command = spec.command(root)
            os.execvp(command[0], command)
        os.dup2(errors, 1)
        if traced:
            let_trace(_quiet(spec, answers))
        with open(requests, "rb") as incoming, open(answers, "wb") as outgoing:
            serve(spec.open_store, root, requests=incoming, answers=outgoing)
        code = 0
    except BaseException as error:
        code = _status_of(error) if isinstance(error, SystemExit) else code
        with suppress(BaseException):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _status_of(error: SystemExit) -> int:
    """Return the exit status of a Python program that ends with this exception."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1
