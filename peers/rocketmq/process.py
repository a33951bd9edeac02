"""Run the driver in a JVM, with a time limit for each answer.

A request is one line of JSON on standard input, its answer one line on standard output.

The first request starts the JVM. After a timeout or a crash the next request starts another one; it has no open store.
"""

import json
import os
import queue
import select
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import IO, Any

from tornpage.peers.errors import PeerCrashed, PeerFailed, PeerTimeout, PeerUnavailable
from tornpage.peers.rocketmq.installing import Release
from tornpage.properties.scratch import remove_tree

__all__ = ["OPENED", "Limits", "Pool", "Process"]

OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref", "java.lang", "java.util", "java.util.concurrent")
"""Packages of Java that the store of 4.9.3 and our driver reach by reflection."""

_STARTS_MAX = 3
"""How many JVMs in a row may end before their first answer."""

_CHUNK_BYTES = 1 << 16
_END_S = 5.0
_SAID_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one JVM: seconds for an answer, and MiB of heap and of direct memory.

    `optimizes` allows the optimizing compiler, which pays only for long runs.
    """

    answer_s: float = 30.0
    heap_mib: int = 256
    direct_mib: int = 128
    optimizes: bool = False


class Process:
    """A JVM with our driver. Not for use by several threads at the same time.

    `starts` is the number of JVMs started so far.
    """

    def __init__(self, release: Release, limits: Limits = Limits()) -> None:
        self.release = release
        self.starts = 0
        self._limits = limits
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._home = ""
        self._unread = b""
        self._silent_starts = 0
        self._asked = ""
        self._deadline = 0.0

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of the JVM, None if none runs."""
        return None if self._child is None else self._child.pid

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return its answer.

        Raises PeerFailed for an error of the store, PeerCrashed, PeerTimeout, and PeerUnavailable if Java cannot run.
        """
        self.begin(verb, **arguments)
        return self.finish()

    def begin(self, verb: str, **arguments: Any) -> None:
        """Send a request, so that the caller can work while the JVM does.

        The next call is `finish`. Raises PeerCrashed, and PeerUnavailable if Java cannot run.
        """
        if self._child is None:
            self._start()
        assert self._child is not None
        assert self._child.stdin is not None
        line = json.dumps({"do": verb, **arguments}).encode() + b"\n"
        self._asked = verb
        self._deadline = monotonic() + self._limits.answer_s
        try:
            self._child.stdin.write(line)
            self._child.stdin.flush()
        except OSError:
            raise self._crashed(verb) from None
        except BaseException:
            self._end()  # an interrupt may leave half a line
            raise

    def finish(self) -> dict[str, Any]:
        """Return the answer to the request that was begun. Raises as `ask` does."""
        verb = self._asked
        if self._child is None:
            raise PeerCrashed(f"the JVM was ended during {verb!r}")
        try:
            answer = json.loads(self._line(self._deadline))
        except TimeoutError:
            self._end()
            raise PeerTimeout(f"no answer to {verb!r} within {self._limits.answer_s:g} s") from None
        except (OSError, EOFError):
            raise self._crashed(verb) from None
        except BaseException:
            self._end()  # an interrupt may leave half a line
            raise
        self._silent_starts = 0
        if "error" in answer:
            raise PeerFailed(str(answer["error"]))
        return dict(answer)

    def close(self) -> None:
        """End the JVM and remove its files. The next request starts another one."""
        self._end()

    def kill(self) -> None:
        """Kill the JVM, as a failure would; callable from any thread.

        A running request then raises PeerCrashed.
        """
        child = self._child
        if child is not None:
            child.kill()

    def _start(self) -> None:
        if self._silent_starts >= _STARTS_MAX:
            raise PeerUnavailable(f"{self.release.java} ended {_STARTS_MAX} times before its first answer")
        self._home = tempfile.mkdtemp(prefix="tornpage-peer-")
        limits = self._limits
        command = [
            self.release.java,
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            f"-Xmx{limits.heap_mib}m",
            f"-XX:MaxDirectMemorySize={limits.direct_mib}m",
            "-XX:-UsePerfData",
            "-XX:+UseSerialGC",
            # less work for short runs: 9.3 ms of processor time an image, not 12.2
            *([] if limits.optimizes else ["-XX:TieredStopAtLevel=1"]),
            "-XX:+ExitOnOutOfMemoryError",
            f"-Duser.home={self._home}",  # the logs of the store go there
            *self.release.component.options,
            "-cp",
            self.release.classpath,
            self.release.component.main,
        ]
        self._errors = open(os.path.join(self._home, "stderr"), "w+b")  # noqa: SIM115
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, cwd=self._home
            )
        except OSError as error:
            self._end()
            raise PeerUnavailable(f"cannot start {self.release.java}: {error.strerror or error}") from error
        self.starts += 1
        self._silent_starts += 1

    def _line(self, deadline: float) -> bytes:
        """Return the next line of the driver. Raises TimeoutError, EOFError."""
        assert self._child is not None
        assert self._child.stdout is not None
        descriptor = self._child.stdout.fileno()
        pieces = [self._unread]
        while b"\n" not in pieces[-1]:
            if not select.select([descriptor], [], [], max(0.0, deadline - monotonic()))[0]:
                raise TimeoutError
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                raise EOFError
            pieces.append(chunk)
        line, _, self._unread = b"".join(pieces).partition(b"\n")
        return line

    def _crashed(self, verb: str) -> PeerCrashed:
        """End what is left of a JVM that ended on its own; return the error that says so."""
        child, errors = self._child, self._errors
        code: int | None = None
        if child is not None:
            try:
                code = child.wait(_END_S)
            except subprocess.TimeoutExpired:
                code = None
        said = ""
        if errors is not None:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SAID_BYTES))
            lines = errors.read().decode(errors="replace").strip().splitlines()
            said = f": {lines[-1]}" if lines else ""
        self._end()
        return PeerCrashed(f"the JVM ended during {verb!r} with {code}{said}")

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(OSError):  # a request that was not sent as a whole
                        pipe.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None
        if self._home:
            remove_tree(self._home)
            self._home = ""
        self._unread = b""


class Pool:
    """At most `size` JVMs, each borrowed by one thread at a time."""

    def __init__(self, release: Release, *, size: int = 1, limits: Limits = Limits()) -> None:
        self._all = [Process(release, limits) for _ in range(size)]
        self._idle: queue.SimpleQueue[Process] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def borrowed(self, *, timeout_s: float | None = None) -> Iterator[Process]:
        """Yield an idle process; wait until there is one. Raises queue.Empty after `timeout_s`."""
        process = self._idle.get(timeout=timeout_s)
        try:
            yield process
        finally:
            self._idle.put(process)

    @property
    def starts(self) -> int:
        """The number of JVMs started so far."""
        return sum(process.starts for process in self._all)

    def close(self) -> None:
        """End all JVMs."""
        for process in self._all:
            process.close()
