"""Real processes on a real disk, killed by SIGKILL at a chosen step, and what their stores hold afterwards.

A process kill loses nothing that a put had returned (contract 2), and leaves a prefix (1), no cut bytes (3), a store
that opens read-write (7), twice alike (6). Each cycle forks a child that opens the store, carries out a program and
kills itself when its n-th step begins; some go on with what was left, without a judge in between.

A program is drawn from the seed and rehearsed once without a kill, to know how many steps it has; its cycles then die
at steps drawn from all of them: while it opens, puts, flushes, closes, opens again. Equal seeds give equal cycles.

What it leaves out: tears inside a page (the kernel keeps every byte stored before the kill), threads of the store.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby

from tornpage.impl.parts import Parts
from tornpage.properties.campaign.engine import Budget, CanaryTime, explore
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Launcher
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.kills.child import KillMode
from tornpage.properties.explore.kills.cycle import KillPoint, KillReport, KillViolation
from tornpage.properties.explore.kills.program import CYCLES_PER_PROGRAM, VIOLATIONS_MAX, ProgramRunner
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings
from tornpage.properties.scratch import memory_directory

__all__ = [
    "KILL_SETTINGS",
    "KillMode",
    "KillPoint",
    "KillReport",
    "KillResult",
    "KillViolation",
    "replay_kill",
    "run_kills",
]

KILL_SETTINGS = Settings(file_bytes=4096)
"""One page per log file, so that a program of a few puts rolls over several times."""

KillResult = CampaignResult[KillReport, KillViolation]
"""What a campaign of kills found."""

Cycles = Sequence[int]
"""The numbers of the cycles of one program."""


def run_kills(
    count: int,
    *,
    seed: int,
    mode: KillMode = "step",
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    components: Parts | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda cycles: None,
) -> KillResult:
    """Kill `count` processes, in a new directory that goes away unless a promise was broken.

    It is made below `directory`, or in memory where there is room, else in the usual place for temporary files.

    `settings.bug` names a planted bug; `components`, if given, replaces the parts it stands for. So many `workers` take
    programs in turn; the result is the same for any number of them. Ends after the program in which there are
    VIOLATIONS_MAX violations, and at SIGINT after the cycle under way. Raises HarnessError in a process with several
    threads, which must not fork. `progress` is called with the number of cycles that are done after each program.
    """
    return _run(range(count), progress, directory, seed, mode, settings, components, workers)


def replay_kill(
    seed: int,
    cycle: int,
    *,
    mode: KillMode = "step",
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    components: Parts | None = None,
) -> KillResult:
    """Repeat one cycle of a run with the same seed, mode and settings, its rehearsal included."""
    return _run(range(cycle, cycle + 1), lambda _: None, directory, seed, mode, settings, components, 1)


def _run(
    cycles: range,
    progress: Callable[[int], None],
    directory: str | os.PathLike[str] | None,
    seed: int,
    mode: KillMode,
    settings: Settings,
    components: Parts | None,
    workers: int,
) -> KillResult:
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        raise HarnessError(f"this process has {threads} threads; fork from one that has a single thread")
    programs = [tuple(each) for _, each in groupby(cycles, lambda number: number // CYCLES_PER_PROGRAM)]
    base = tempfile.mkdtemp(prefix="tornpage-kill-", dir=directory or memory_directory())
    job = _ProgramJob(base, seed, mode, settings, components or parts_of(settings.bug))
    explorer = _Explorer(job, programs)
    count = max(1, min(workers, len(programs)))
    try:
        return explore(explorer, workers=count, progress=lambda done, seconds: progress(done))
    finally:
        _keep_only(base, explorer.kept)


def _keep_only(base: str, kept: Sequence[str]) -> None:
    """Remove what no violation refers to: what workers left that were ended, or that ran ahead of the last program."""
    for name in os.listdir(base):
        if f"{base}/{name}" not in kept:
            shutil.rmtree(f"{base}/{name}", ignore_errors=True)
    with suppress(OSError):
        os.rmdir(base)  # stays while a violation is kept in it


@dataclass(frozen=True, slots=True)
class _ProgramJob:
    """Carries out the cycles of programs."""

    base: str
    seed: int
    mode: KillMode
    settings: Settings
    components: Parts

    @contextmanager
    def opened(self) -> Iterator[Callable[[Cycles, Control], KillReport]]:
        """Return what carries out a program in this process; a stop request cuts it after the cycle under way."""
        with ProgramRunner(self.base, f"worker{os.getpid()}", self.settings, self.components) as runner:

            def carry_out(cycles: Cycles, control: Control) -> KillReport:
                report = KillReport(self.seed, self.mode)
                runner.run(cycles, report, control.is_stopped)
                return report

            yield carry_out


class _Explorer:
    """Programs as parts of a campaign."""

    launcher: Launcher = "fork"
    holds_interrupts = True
    canary_time: CanaryTime = "in parts"

    def __init__(self, job: _ProgramJob, programs: Sequence[Cycles]) -> None:
        self.job = job
        self.kept: list[str] = []
        self._programs = programs

    def parts(self) -> Iterator[Cycles]:
        """Yield the cycles of each program."""
        return iter(self._programs)

    def known(self, part: Cycles) -> KillReport | None:
        """Know none."""
        return None

    def tally(self) -> KillReport:
        """Return a report of nothing."""
        return KillReport(self.job.seed, self.job.mode)

    def count(self, made: KillReport) -> int:
        """Count cycles."""
        return made.cycles

    def take(self, result: KillResult, part: Cycles, made: KillReport | Died[Cycles]) -> bool:
        """Take a program in, up to the one with which there are enough violations. Raises HarnessError without it."""
        if isinstance(made, Died):
            raise HarnessError(f"a worker ended before its program {part[0] // CYCLES_PER_PROGRAM}: it {made.how}")
        result.tally.add(made)
        for violation in made.violations:
            self.kept.append(violation.kept)
            result.meet(violation, violation)
        return len(result.found) < VIOLATIONS_MAX

    def canary(self) -> str:
        """Return nothing: a kill that is rehearsed has shown that it kills."""
        return ""

    def conclude(self, result: KillResult) -> None:
        """Say whether a process was killed at all."""
        result.result_hash = result.tally.result_hash
        result.silent = [] if result.tally.killed else ["kill"]

    def small(self, failure: KillViolation, budget: Budget, watch: Watch) -> tuple[KillViolation | None, bool]:
        """Return the violation as it is: its directory is kept."""
        return failure, False

    def told(self, failure: KillViolation) -> str:
        """Return the broken guarantee and where its directory is."""
        return f"{failure.sentence} (kept in {failure.kept})"
