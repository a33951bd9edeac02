"""Kill real processes on a real disk at a chosen step, and judge their stores.

A process kill loses nothing that a put had acknowledged (contract 2). It leaves a prefix (1), no cut bytes (3), and a
store that opens read-write (7) and recovers twice alike (6). Each cycle has a session that opens the store, carries out
a program and dies when its n-th step begins. Some cycles continue on the files left by the kill, without a judge in
between. One process runs the first sessions of several cycles, and one SIGKILL ends them in the middle of their calls.

A program is drawn from the seed and rehearsed once without a kill to count its steps. Its cycles then die at steps
drawn from all of them: during an open, put, flush, close, or another open. Equal seeds give equal cycles.

Left out are tears inside a page, because the kernel keeps every byte stored before the kill, and threads of the store.
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
from tornpage.properties.explore.kills.program import CYCLES_PER_PROGRAM, TOGETHER, VIOLATIONS_MAX, ProgramRunner
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
"""The result of a campaign of kills."""

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
    together: int = TOGETHER,
    progress: Callable[[int], None] = lambda cycles: None,
) -> KillResult:
    """Kill `count` processes in a new directory, which is removed unless a promise was broken.

    It is made below `directory`, or in memory if there is room, else in the usual place for temporary files.
    `settings.bug` names a planted bug; `components`, if given, replace its parts. The `workers` take programs in turn.
    One process runs the first sessions of up to `together` cycles of a program, and one SIGKILL ends them. A result
    without violations depends on neither number. The run ends after the program in which VIOLATIONS_MAX violations
    are reached, and at SIGINT after the running cycles. `progress` is called with the number of finished cycles after
    each program. Raises HarnessError in a process with several threads, which must not fork.
    """
    return _run(range(count), progress, directory, seed, mode, settings, components, workers, together)


def replay_kill(
    seed: int,
    cycle: int,
    *,
    mode: KillMode = "step",
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    components: Parts | None = None,
) -> KillResult:
    """Repeat one cycle of a run with the same seed, mode and settings, and its rehearsal."""
    return _run(range(cycle, cycle + 1), lambda _: None, directory, seed, mode, settings, components, 1, 1)


def _run(
    cycles: range,
    progress: Callable[[int], None],
    directory: str | os.PathLike[str] | None,
    seed: int,
    mode: KillMode,
    settings: Settings,
    components: Parts | None,
    workers: int,
    together: int,
) -> KillResult:
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        raise HarnessError(f"this process has {threads} threads; fork from one that has a single thread")
    programs = [tuple(each) for _, each in groupby(cycles, lambda number: number // CYCLES_PER_PROGRAM)]
    base = tempfile.mkdtemp(prefix="tornpage-kill-", dir=directory or memory_directory())
    job = _ProgramJob(base, seed, mode, settings, components or parts_of(settings.bug), together)
    explorer = _Explorer(job, programs)
    count = max(1, min(workers, len(programs)))
    try:
        return explore(explorer, workers=count, progress=lambda done, seconds: progress(done))
    finally:
        _keep_only(base, explorer.kept)


def _keep_only(base: str, kept: Sequence[str]) -> None:
    """Remove directories without a violation.

    Stopped workers, or workers past the last program, left them.
    """
    for name in os.listdir(base):
        if f"{base}/{name}" not in kept:
            shutil.rmtree(f"{base}/{name}", ignore_errors=True)
    with suppress(OSError):
        os.rmdir(base)  # the directory is kept while it contains a violation


@dataclass(frozen=True, slots=True)
class _ProgramJob:
    """Carry out the cycles of programs."""

    base: str
    seed: int
    mode: KillMode
    settings: Settings
    components: Parts
    together: int

    @contextmanager
    def opened(self) -> Iterator[Callable[[Cycles, Control], KillReport]]:
        """Return the function that carries out a program here.

        A stop request ends it after the running cycles.
        """
        name = f"worker{os.getpid()}"
        with ProgramRunner(self.base, name, self.settings, self.components, together=self.together) as runner:

            def carry_out(cycles: Cycles, control: Control) -> KillReport:
                report = KillReport(self.seed, self.mode)
                runner.run(cycles, report, control.is_stopped)
                return report

            yield carry_out


class _Explorer:
    """Present programs as parts of a campaign."""

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
        """Return None, since no results are kept."""
        return None

    def tally(self) -> KillReport:
        """Return an empty report."""
        return KillReport(self.job.seed, self.job.mode)

    def count(self, made: KillReport) -> int:
        """Return the number of cycles."""
        return made.cycles

    def take(self, result: KillResult, part: Cycles, made: KillReport | Died[Cycles]) -> bool:
        """Take the result of a program, up to the one with enough violations.

        Raises HarnessError if its worker ended without one.
        """
        if isinstance(made, Died):
            raise HarnessError(f"a worker ended before its program {part[0] // CYCLES_PER_PROGRAM}: it {made.how}")
        result.tally.add(made)
        for violation in made.violations:
            self.kept.append(violation.kept)
            result.meet(violation, violation)
        return len(result.found) < VIOLATIONS_MAX

    def canary(self) -> str:
        """Return an empty string. A rehearsed kill shows by itself that the harness kills."""
        return ""

    def conclude(self, result: KillResult) -> None:
        """Report whether no process was killed at all."""
        result.result_hash = result.tally.result_hash
        result.silent = [] if result.tally.killed else ["kill"]

    def shrink(self, failure: KillViolation, budget: Budget, watch: Watch) -> tuple[KillViolation | None, bool]:
        """Return the violation unchanged, since its directory is kept."""
        return failure, False

    def describe(self, failure: KillViolation) -> str:
        """Return the broken guarantee and its directory."""
        return f"{failure.sentence} (kept in {failure.kept})"
