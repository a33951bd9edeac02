"""Fresh interpreters that hold a store, one after the other: lock, abort marker and restart of real processes.

In each restart one process has the store open and puts; a second one is refused, and changes nothing (contract 14). The
first is killed by SIGKILL: the lock is free, the marker says that the exit was unclean (7), and a fresh process serves
all that was acknowledged (2), in its order (1). It puts, and closes: the marker is gone, and the next serves the same.

The second process looks at a first one that is stopped (SIGSTOP), so that nobody else changes a file meanwhile. What it
leaves out: kills inside a verb, which run.py has.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from time import perf_counter
from typing import IO, Any

from properties.contract import GuaranteeBroken, HarnessError, Verdict
from properties.explore.kills.run import KILL_SETTINGS
from properties.interrupts import held_interrupts
from properties.program.case import Settings
from properties.scratch import memory_directory, scratch_directory

__all__ = ["RestartReport", "run_restarts"]

HOLDER = (sys.executable, "-P", "-m", "properties.explore.kills.holder")
_PATIENCE_S = 60.0

Served = list[list[int]]
"""Physical offset and checksum of the body of each message, in order."""


@dataclass
class RestartReport:
    """What a run did: how often a process was refused and one was killed, and how many there were in all."""

    seed: int
    restarts: int = 0
    refused: int = 0
    killed: int = 0
    processes: int = 0
    messages: int = 0
    broken: GuaranteeBroken | None = None
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """Broken, vacuous when nobody was killed or refused, or holds."""
        if self.broken is not None:
            return Verdict.BROKEN
        return Verdict.HOLDS if self.killed and self.refused else Verdict.VACUOUS


def run_restarts(
    count: int,
    *,
    seed: int,
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    holder: Sequence[str] = HOLDER,
    progress: Callable[[int], None] = lambda restarts: None,
) -> RestartReport:
    """Restart a store `count` times, in a new directory below `directory` (else in memory), which goes away.

    `settings.bug` names a planted bug; `holder` is the command of a process that holds a store as holder.py does. Ends
    with the first broken promise, or at an interrupt. Raises HarnessError when a holder says what none may, or nothing.
    `progress` is called with the number of restarts after each.
    """
    report = RestartReport(seed)
    started = perf_counter()
    below = memory_directory() if directory is None else os.fspath(directory)
    try:
        with (
            scratch_directory("tornpage-restart-", below=below) as base,
            closing(_Restarts(f"{base}/store", settings, holder, report)) as restarts,
        ):
            restarts.run(count, progress)
    except GuaranteeBroken as broken:
        report.broken = broken
    except KeyboardInterrupt:
        report.interrupted = True
    report.seconds = perf_counter() - started
    return report


class _Answer(dict[str, Any]):
    """What a holder says. Raises HarnessError for what it does not say."""

    def __missing__(self, name: str) -> Any:
        raise HarnessError(f"the holder has not said {name!r}: {dict(self)}")


class _Holder:
    """One process that holds a store, or was refused."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, asked: object) -> dict[str, Any]:
        """Say a line, and return the answer. Raises HarnessError without one, or where it is none."""
        lines, answers = self._pipes()
        try:
            lines.write(json.dumps(asked) + "\n")
            lines.flush()
        except BrokenPipeError:
            raise HarnessError(f"the holder has ended, {self._process.wait()}, before it was asked") from None
        ready, _, _ = select.select([answers], [], [], _PATIENCE_S)
        answer = answers.readline() if ready else ""
        if not answer:
            raise HarnessError(f"the holder has not answered {asked}")
        try:
            said = json.loads(answer)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise HarnessError(f"the holder has answered {asked} with {answer[:80]!r}")
        return _Answer(said)

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def pause(self) -> None:
        """Stop it; it goes on only to die."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._reap()

    def leave(self) -> None:
        """Wait until it has ended by itself. Raises HarnessError if that was no good end, or none."""
        try:
            status = self._reap()
        except subprocess.TimeoutExpired:
            raise HarnessError("the holder has not ended after its last answer") from None
        if status:
            raise HarnessError(f"the holder ended with {status}")

    def _reap(self) -> int:
        status = self._process.wait(_PATIENCE_S)
        for pipe in self._pipes():
            with suppress(BrokenPipeError):  # of what was never read
                pipe.close()
        return status

    @property
    def lives(self) -> bool:
        """Whether it has not been reaped."""
        return self._process.returncode is None


class _Restarts:
    """One run; `_expected` is what was acknowledged."""

    def __init__(self, directory: str, settings: Settings, holder: Sequence[str], report: RestartReport) -> None:
        self._directory = directory
        default = Settings()
        changed = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name != "bug"}
        changed = {name: value for name, value in changed.items() if value != getattr(default, name)}
        self._asked = {"directory": directory, "settings": changed, "bug": settings.bug}
        self._command = holder
        self._report = report
        self._rng = random.Random(f"restarts {report.seed}")
        self._expected: Served = []
        self._holders: list[_Holder] = []

    def run(self, count: int, progress: Callable[[int], None]) -> None:
        first = self._opened("the first process", was_clean=True)
        for _ in range(count):
            self._put(first)
            first.pause()
            self._second_is_refused()
            first.kill()
            self._report.killed += 1
            self._marker_is(True, "after a kill")
            following = self._opened("a fresh process behind a kill", was_clean=False)
            self._put(following)
            self._close(following)
            first = self._opened("a fresh process behind a clean exit", was_clean=True)
            self._report.restarts += 1
            progress(self._report.restarts)
        self._close(first)

    def close(self) -> None:
        """Leave nobody behind."""
        for holder in self._holders:
            if holder.lives:
                holder.kill()

    def _start(self) -> tuple[_Holder, dict[str, Any]]:
        """Start a process; return what it says of the store."""
        with held_interrupts():
            self._holders.append(holder := _Holder(self._command))
        self._report.processes += 1
        return holder, holder.ask(self._asked)

    def _opened(self, who: str, *, was_clean: bool) -> _Holder:
        """Contracts 1, 2, 7 and 14: the lock is free, and what was acknowledged is served."""
        holder, said = self._start()
        if "refused" in said:
            raise GuaranteeBroken(14, f"{who} is refused, and nobody holds the store", "an open store", said["refused"])
        if said["compiled"]:
            raise HarnessError("a process that is to be killed has loaded the compiler")
        if said["read_only"] is not None:
            raise GuaranteeBroken(7, f"{who} opens the store read-only", "read-write", said["read_only"])
        if said["serves"] != self._expected:
            counts = f"{len(self._expected)} messages", f"{len(said['serves'])} messages"
            raise GuaranteeBroken(2, f"{who} serves other messages than were acknowledged", *counts)
        self._marker_is(True, f"while {who} has the store open, {'clean' if was_clean else 'unclean'} before")
        return holder

    def _put(self, holder: _Holder) -> None:
        for _ in range(1 + self._rng.randrange(6)):
            body_bytes, fill = self._rng.choice((40, 400, 900, 1400)), self._rng.randrange(1 << 16)
            said = holder.ask({"body_bytes": body_bytes, "fill": fill})
            if said["status"] != "PUT_OK":
                raise GuaranteeBroken(8, "a put into an open store is refused", "PUT_OK", said["status"])
            self._expected.append(said["put"])
            self._report.messages += 1

    def _second_is_refused(self) -> None:
        """Contract 14: whoever comes while the store is open is told so, and touches nothing."""
        before = _seen(self._directory)
        second, said = self._start()
        if "refused" not in said:
            raise GuaranteeBroken(14, "a second process opens the store while the first one lives")
        second.leave()
        if _seen(self._directory) != before:
            raise GuaranteeBroken(14, "a second process is refused and has touched the store already")
        self._report.refused += 1

    def _close(self, holder: _Holder) -> None:
        reason = holder.ask("close")["read_only"]
        if reason is not None:
            raise GuaranteeBroken(2, "a close is not clean", "a clean exit", reason)
        holder.leave()
        self._marker_is(False, "after a clean exit")

    def _marker_is(self, due: bool, when: str) -> None:
        """Contract 7: the abort marker tells the next opener how the last one ended."""
        if os.path.lexists(f"{self._directory}/abort") != due:
            words = {True: "present", False: "absent"}
            raise GuaranteeBroken(7, f"the abort marker is wrong {when}", words[due], words[not due])


def _seen(directory: str) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, time of the last change and content of every file, and the times of the directories."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for path, _, names in os.walk(directory):
        stat = os.stat(path)
        found[path] = (stat.st_ino, stat.st_mtime_ns, b"")
        for name in names:
            stat = os.stat(f"{path}/{name}")
            with open(f"{path}/{name}", "rb") as file:
                found[f"{path}/{name}"] = (stat.st_ino, stat.st_mtime_ns, file.read())
    return found
