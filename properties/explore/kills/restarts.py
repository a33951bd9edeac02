"""Fresh interpreters that hold a store, one after the other: lock, abort marker and restart of real processes.

In each restart one process has the store open and puts; a second one is refused, and changes nothing (contract 14). The
first is killed by SIGKILL: the lock is free, the marker says that the exit was unclean (7), and a fresh process serves
all that was acknowledged (2), in its order (1). It puts, and closes: the marker is gone, and the next serves the same.

The second process looks at a first one that is stopped (SIGSTOP), so that no file changes meanwhile. Left out are
kills inside a verb, which run.py has.
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
    """What was done: how often a process was refused and one was killed, and how many there were in all."""

    restarts: int = 0
    refused: int = 0
    killed: int = 0
    processes: int = 0
    messages: int = 0

    def add(self, other: "RestartTally") -> None:
        """Count what a part has counted."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


RestartResult = CampaignResult[RestartTally, GuaranteeBroken]
"""What a campaign of restarts found."""


def run_restarts(
    count: int,
    *,
    seed: int,
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    holder: Sequence[str] = HOLDER,
    progress: Callable[[int], None] = lambda restarts: None,
) -> RestartResult:
    """Restart a store `count` times, in a new directory below `directory` (else in memory), which goes away.

    `settings.bug` names a planted bug; `holder` is the command of a process that holds a store as holder.py does. Ends
    with the first broken promise, or at an interrupt. Raises HarnessError when a holder says what none may, or nothing.
    `progress` is called with the number of restarts after each.
    """
    below = memory_directory() if directory is None else os.fspath(directory)
    explorer = _Explorer(_RestartJob(below, seed, settings, holder), count)
    return explore(explorer, progress=lambda done, seconds: progress(done))


Step = Literal["restart", "end"]
"""A part of a campaign: one restart of the store, or the clean exit of the process that has it at the end."""


@dataclass
class _Made:
    """What one step came to."""

    tally: RestartTally
    broken: GuaranteeBroken | None = None


@dataclass(frozen=True, slots=True)
class _RestartJob:
    """Carries out steps, each on the store that the one before has left."""

    below: str | None
    seed: int
    settings: Settings
    holder: Sequence[str]

    @contextmanager
    def opened(self) -> Iterator[Callable[[Step, Control], _Made]]:
        """Return what carries out a step in this process; no process of a holder outlives it."""
        with (
            scratch_directory("tornpage-restart-", below=self.below) as base,
            closing(_Restarts(f"{base}/store", self.settings, self.holder, self.seed)) as restarts,
        ):
            yield restarts.carry_out


class _Explorer:
    """Restarts of one store as parts of a campaign."""

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
        """Know none."""
        return None

    def tally(self) -> RestartTally:
        """Return counters of nothing."""
        return RestartTally()

    def count(self, made: _Made) -> int:
        """Count restarts."""
        return made.tally.restarts

    def take(self, result: RestartResult, part: Step, made: _Made | Died[Step]) -> bool:
        """Take a step in, up to the first broken promise."""
        assert isinstance(made, _Made)
        result.tally.add(made.tally)
        if made.broken is None:
            return True
        result.meet(signature(made.broken), made.broken)
        return False

    def canary(self) -> str:
        """Return nothing: a process that is refused and one that is killed show what is due."""
        return ""

    def conclude(self, result: RestartResult) -> None:
        """Say whether a process was killed, and whether one was refused."""
        tally = result.tally
        result.silent = [name for name, number in (("kill", tally.killed), ("refused", tally.refused)) if not number]

    def small(self, failure: GuaranteeBroken, budget: Budget, watch: Watch) -> tuple[GuaranteeBroken | None, bool]:
        """Return the broken promise as it is: equal seeds give it again."""
        return failure, False

    def told(self, failure: GuaranteeBroken) -> str:
        """Return the broken promise."""
        return str(failure)


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
    """The store of a run and the processes that held it; `_expected` is what was acknowledged."""

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
        """Refuse a second process, kill the first, let a fresh one close; return the one after it."""
        self._put(first)
        first.pause()
        self._second_is_refused()
        first.kill()
        self._tally.killed += 1
        self._marker_is(True, "after a kill")
        following = self._opened("a fresh process behind a kill", was_clean=False)
        self._put(following)
        self._close(following)
        first = self._opened("a fresh process behind a clean exit", was_clean=True)
        self._tally.restarts += 1
        return first

    def close(self) -> None:
        """Kill the processes that live."""
        for holder in self._holders:
            if holder.lives:
                holder.kill()

    def _start(self) -> tuple[_Holder, dict[str, Any]]:
        """Start a process; return what it says of the store."""
        with held_interrupts():
            self._holders.append(holder := _Holder(self._command))
        self._tally.processes += 1
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
            self._tally.messages += 1

    def _second_is_refused(self) -> None:
        """Contract 14: a process that comes while the store is open is told so, and touches nothing."""
        before = _seen(self._directory)
        second, said = self._start()
        if "refused" not in said:
            raise GuaranteeBroken(14, "a second process opens the store while the first one lives")
        second.leave()
        if _seen(self._directory) != before:
            raise GuaranteeBroken(14, "a second process is refused and has touched the store already")
        self._tally.refused += 1

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
