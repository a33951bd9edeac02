"""Hold a store in one fresh interpreter after another: lock, abort marker and restart.

In each restart one process has the store open and puts. A second one is refused and changes nothing (contract 14). The
first one is killed by SIGKILL. Then the lock is free, the marker shows the unclean exit (7), and a fresh process serves
everything acknowledged (2) in its order (1). It puts and closes. Then the marker is gone, and the next process serves
the same.

The first process is stopped (SIGSTOP) while the second one runs, so that no file changes meanwhile. Kills inside an
operation are left out; run.py has them.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import repeat
from typing import IO, Any, Literal

from tornpage.properties.campaign.engine import Budget, CanaryTime, explore
from tornpage.properties.campaign.replay import signature
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Interrupted, Launcher
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.explore.kills.run import KILL_SETTINGS
from tornpage.properties.interrupts import held_interrupts
from tornpage.properties.program.case import Settings
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["RestartResult", "RestartTally", "run_restarts"]

HOLDER = (sys.executable, "-P", "-m", "tornpage.properties.explore.kills.holder")
_PATIENCE_S = 60.0

Served = list[list[int]]
"""Physical offset and checksum of the body of each message, in order."""


@dataclass
class RestartTally:
    """Count what was done: restarts, refusals, kills, processes and messages."""

    restarts: int = 0
    refused: int = 0
    killed: int = 0
    processes: int = 0
    messages: int = 0

    def add(self, other: "RestartTally") -> None:
        """Add the counts of a part."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


RestartResult = CampaignResult[RestartTally, GuaranteeBroken]
"""The result of a campaign of restarts."""


def run_restarts(
    count: int,
    *,
    seed: int,
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    holder: Sequence[str] = HOLDER,
    progress: Callable[[int], None] = lambda restarts: None,
) -> RestartResult:
    """Restart a store `count` times, in a temporary directory in `directory` or in memory.

    `settings.bug` names a planted bug. `holder` is the command of a process that holds a store like holder.py. The
    campaign ends with the first broken promise, or at an interrupt. `progress` is called with the number of restarts
    after each one. Raises HarnessError if a holder gives an invalid answer or none.
    """
    below = memory_directory() if directory is None else os.fspath(directory)
    explorer = _Explorer(_RestartJob(below, seed, settings, holder), count)
    return explore(explorer, progress=lambda done, seconds: progress(done))


Step = Literal["restart", "end"]
"""A part of a campaign: one restart of the store, or the clean exit of the last process at the end."""


@dataclass
class _Made:
    """Hold the result of one step."""

    tally: RestartTally
    broken: GuaranteeBroken | None = None


@dataclass(frozen=True, slots=True)
class _RestartJob:
    """Carry out steps, each on the store that the previous one left."""

    below: str | None
    seed: int
    settings: Settings
    holder: Sequence[str]

    @contextmanager
    def opened(self) -> Iterator[Callable[[Step, Control], _Made]]:
        """Return the function that carries out a step in this process. No holder outlives it."""
        with (
            scratch_directory("tornpage-restart-", below=self.below) as base,
            closing(_Restarts(f"{base}/store", self.settings, self.holder, self.seed)) as restarts,
        ):
            yield restarts.carry_out


class _Explorer:
    """Present the restarts of one store as parts of a campaign."""

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "in parts"

    def __init__(self, job: _RestartJob, count: int) -> None:
        self.job = job
        self._count = count

    def parts(self) -> Iterator[Step]:
        """Yield the restarts, and the end."""
        yield from repeat("restart", self._count)
        yield "end"

    def known(self, part: Step) -> _Made | None:
        """Return None, since no results are kept."""
        return None

    def tally(self) -> RestartTally:
        """Return empty counters."""
        return RestartTally()

    def count(self, made: _Made) -> int:
        """Return the number of restarts."""
        return made.tally.restarts

    def take(self, result: RestartResult, part: Step, made: _Made | Died[Step]) -> bool:
        """Take the result of a step, up to the first broken promise."""
        assert isinstance(made, _Made)
        result.tally.add(made.tally)
        if made.broken is None:
            return True
        result.meet(signature(made.broken), made.broken)
        return False

    def canary(self) -> str:
        """Return an empty string. A refused process and a killed one serve as the canary."""
        return ""

    def conclude(self, result: RestartResult) -> None:
        """Report whether no process was killed, or none refused."""
        tally = result.tally
        result.silent = [name for name, number in (("kill", tally.killed), ("refused", tally.refused)) if not number]

    def shrink(self, failure: GuaranteeBroken, budget: Budget, watch: Watch) -> tuple[GuaranteeBroken | None, bool]:
        """Return the broken promise unchanged, since equal seeds give it again."""
        return failure, False

    def describe(self, failure: GuaranteeBroken) -> str:
        """Return the broken promise."""
        return str(failure)


class _Answer(dict[str, Any]):
    """Hold an answer of a holder. Raises HarnessError for a missing value."""

    def __missing__(self, name: str) -> Any:
        raise HarnessError(f"the answer of the holder has no {name!r}: {dict(self)}")


class _Holder:
    """Run one process that holds a store, or was refused."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, asked: object) -> dict[str, Any]:
        """Send a line and return the answer. Raises HarnessError without a valid answer."""
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
        """Stop the process. It is killed afterwards."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._process.kill()
        self._reap()

    def leave(self) -> None:
        """Wait until the process has ended by itself.

        Raises HarnessError if it fails or does not end.
        """
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
        """Return whether the process has not been reaped."""
        return self._process.returncode is None


class _Restarts:
    """Hold the store of a run and its processes; `_expected` is what was acknowledged."""

    def __init__(self, directory: str, settings: Settings, holder: Sequence[str], seed: int) -> None:
        self._directory = directory
        default = Settings()
        changed = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name != "bug"}
        changed = {name: value for name, value in changed.items() if value != getattr(default, name)}
        self._asked = {"directory": directory, "settings": changed, "bug": settings.bug}
        self._command = holder
        self._tally = RestartTally()
        self._rng = random.Random(f"restarts {seed}")
        self._expected: Served = []
        self._holders: list[_Holder] = []
        self._first: _Holder | None = None

    def carry_out(self, step: Step, control: Control) -> _Made:
        """Carry out a step. The store is opened before the first one."""
        self._tally = RestartTally()
        try:
            first = self._first or self._opened("the first process", was_clean=True)
            if step == "restart":
                self._first = self._restart(first)
            else:
                self._close(first)
        except GuaranteeBroken as broken:
            return _Made(self._tally, broken)
        except KeyboardInterrupt:
            raise Interrupted(_Made(self._tally)) from None
        return _Made(self._tally)

    def _restart(self, first: _Holder) -> _Holder:
        """Refuse a second process, kill the first, let a fresh one close; return its successor."""
        self._put(first)
        first.pause()
        self._second_is_refused()
        first.kill()
        self._tally.killed += 1
        self._marker_is(True, "after a kill")
        following = self._opened("a fresh process after a kill", was_clean=False)
        self._put(following)
        self._close(following)
        first = self._opened("a fresh process after a clean exit", was_clean=True)
        self._tally.restarts += 1
        return first

    def close(self) -> None:
        """Kill the processes that still run."""
        for holder in self._holders:
            if holder.lives:
                holder.kill()

    def _start(self) -> tuple[_Holder, dict[str, Any]]:
        """Start a process; return what it reports of the store."""
        with held_interrupts():
            self._holders.append(holder := _Holder(self._command))
        self._tally.processes += 1
        return holder, holder.ask(self._asked)

    def _opened(self, who: str, *, was_clean: bool) -> _Holder:
        """Check contracts 1, 2, 7 and 14: the lock is free, and acknowledged messages are served."""
        holder, said = self._start()
        if "refused" in said:
            raise GuaranteeBroken(
                14, f"{who} is refused although no process holds the store", "an open store", said["refused"]
            )
        if said["compiled"]:
            raise HarnessError("a process that is to be killed has loaded the compiler")
        if said["read_only"] is not None:
            raise GuaranteeBroken(7, f"{who} opens the store read-only", "read-write", said["read_only"])
        if said["serves"] != self._expected:
            counts = f"{len(self._expected)} messages", f"{len(said['serves'])} messages"
            raise GuaranteeBroken(2, f"{who} serves other messages than those acknowledged", *counts)
        self._marker_is(True, f"while {who} has the store open, {'clean' if was_clean else 'unclean'} before")
        return holder

    def _put(self, holder: _Holder) -> None:
        for _ in range(1 + self._rng.randrange(6)):
            body_bytes, fill = self._rng.choice((40, 400, 900, 1400)), self._rng.randrange(1 << 16)
            said = holder.ask({"body_bytes": body_bytes, "fill": fill})
            if said["status"] != "PUT_OK":
                raise GuaranteeBroken(8, "a put into an open store is refused", "PUT_OK", said["status"])
            self._expected.append(said["put"])
            self._tally.messages += 1

    def _second_is_refused(self) -> None:
        """Check contract 14: a second process is refused and changes nothing."""
        before = _seen(self._directory)
        second, said = self._start()
        if "refused" not in said:
            raise GuaranteeBroken(14, "a second process opens the store while the first one runs")
        second.leave()
        if _seen(self._directory) != before:
            raise GuaranteeBroken(14, "a second process is refused but has already touched the store")
        self._tally.refused += 1

    def _close(self, holder: _Holder) -> None:
        reason = holder.ask("close")["read_only"]
        if reason is not None:
            raise GuaranteeBroken(2, "a close is not clean", "a clean exit", reason)
        holder.leave()
        self._marker_is(False, "after a clean exit")

    def _marker_is(self, due: bool, when: str) -> None:
        """Check contract 7: the abort marker shows how the last process ended."""
        if os.path.lexists(f"{self._directory}/abort") != due:
            words = {True: "present", False: "absent"}
            raise GuaranteeBroken(7, f"the abort marker is wrong {when}", words[due], words[not due])


def _seen(directory: str) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, time and content of every file, and the times of the directories."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for path, _, names in os.walk(directory):
        stat = os.stat(path)
        found[path] = (stat.st_ino, stat.st_mtime_ns, b"")
        for name in names:
            stat = os.stat(f"{path}/{name}")
            with open(f"{path}/{name}", "rb") as file:
                found[f"{path}/{name}"] = (stat.st_ino, stat.st_mtime_ns, file.read())
    return found
