"""Run one directory from its first process to its judgement, and report all cycles."""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

import mmh3

from tornpage.model.operations import Operation
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.model.state import CommitLog
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.explore.kills.child import EXIT_COMPLETED, EXIT_FAILED, HANG_SECONDS, KillMode, Session
from tornpage.properties.explore.kills.judge import (
    LegalLogs,
    legal_after,
    marker_is_right,
)
from tornpage.properties.explore.kills.judged import Judged
from tornpage.properties.explore.kills.progress import Progress
from tornpage.properties.explore.kills.snapshot import Snapshot, digest_of, snapshot_of
from tornpage.properties.explore.kills.zygote import Zygote
from tornpage.properties.judge.rulings import require
from tornpage.properties.program.case import Settings

__all__ = ["Cycle", "FirstSessions", "KillPoint", "KillReport", "KillViolation", "PlannedSession"]

SESSION_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class KillPoint:
    """Describe where a process died: session `life`, operation `verb`, step `step`.

    Operation 0 opens the store, operation n is number n - 1 of the program. `name` is the operation in flight, or
    "rest" if it had returned.
    """

    program: int
    life: int
    verb: int
    step: int
    name: str


@dataclass(frozen=True, slots=True)
class KillViolation:
    """Hold one broken promise.

    `cycle` is -1 in a rehearsal. `verb` and `step` say where the last process of the cycle was to die (-1 means
    nowhere). `kept` is a directory with `killed` (as that process left it) and `store` (as the judges left it).
    """

    seed: int
    cycle: int
    program: int
    life: int
    verb: int
    step: int
    contract: int
    sentence: str
    kept: str


@dataclass
class KillReport:
    """Report what a run did.

    `lives` counts processes without rehearsals, `killed` and `completed` how they ended. `points` and `outcomes`
    (hashes of the disk after a kill) hold distinct values. `killed_in` counts the operations in flight. `judged` counts
    the directories that were judged; a byte-identical one is judged only once. `recovered_twice` counts those whose
    recovered files were recovered again.
    """

    seed: int
    mode: KillMode
    cycles: int = 0
    lives: int = 0
    killed: int = 0
    completed: int = 0
    judged: int = 0
    recovered_twice: int = 0
    points: set[KillPoint] = field(default_factory=set)
    outcomes: set[bytes] = field(default_factory=set)
    killed_in: Counter[str] = field(default_factory=Counter)
    violations: list[KillViolation] = field(default_factory=list)

    def add(self, other: "KillReport") -> None:
        """Add the report of another part of the run."""
        self.cycles += other.cycles
        self.lives += other.lives
        self.killed += other.killed
        self.completed += other.completed
        self.judged += other.judged
        self.recovered_twice += other.recovered_twice
        self.points |= other.points
        self.outcomes |= other.outcomes
        self.killed_in += other.killed_in
        self.violations += other.violations

    @property
    def result_hash(self) -> str:
        """Return a hash of everything that the seed decides: kill points, disks, counts, failures."""
        found = [(v.cycle, v.life, v.verb, v.step, v.contract) for v in self.violations]
        counts = (self.cycles, self.lives, self.killed, self.completed, self.judged, self.recovered_twice)
        points, verbs = sorted(map(astuple, self.points)), sorted(self.killed_in.items())
        return mmh3.hash_bytes(repr((points, sorted(self.outcomes), verbs, found, counts)).encode()).hex()


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """Plan what a process does and where it dies; with `verb` -1 it survives."""

    operations: tuple[Operation, ...]
    verb: int = -1
    step: int = 0


class Cycle:
    """Run sessions that live and die on one directory, one after the other.

    `number` is -1 for a rehearsal.
    """

    def __init__(
        self,
        number: int,
        program: int,
        lives: list[PlannedSession],
        *,
        settings: Settings,
        base: str,
        workplace: str,
        zygote: Zygote,
        judged: Judged,
        report: KillReport,
    ) -> None:
        self._number = number
        self._program = program
        self._lives = lives
        self._settings = settings
        self._name = f"seed{report.seed}-{report.mode}-" + (f"cycle{number}" if number >= 0 else f"program{program}")
        self._base = base
        self._directory = f"{base}/{workplace}"
        self._zygote = zygote
        self._judged = judged
        self._report = report
        self._life = 0
        self._left = Snapshot({})

    def prepare(self) -> Session:
        """Make the empty directory and return the first session."""
        os.mkdir(self._directory)
        return self._session()

    def finish(self, first: "_Ended | None") -> None:
        """Judge the end of the first session, run the other ones, then judge what is left.

        Without an end the first session is repeated in a process of its own. A broken promise goes into the report.
        """
        try:
            if first is None:
                shutil.rmtree(self._directory)
                os.mkdir(self._directory)
                first = self._run_alone()
            legal = self._end_session({0: CommitLog()}, first)
            for life in range(1, len(self._lives)):
                self._life = life
                legal = self._end_session(legal, self._run_alone())
            now_ms = self._start_ms() + SESSION_MS
            self._judged.judge(self._directory, self._left, legal, settings=self._settings, now_ms=now_ms)
        except GuaranteeBroken as broken:
            self._report.violations.append(self._violation(broken))
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _start_ms(self) -> int:
        return BORN_TIMESTAMP + self._life * SESSION_MS

    def _session(self) -> Session:
        planned = self._lives[self._life]
        return Session(
            directory=self._directory,
            settings=self._settings,
            operations=planned.operations,
            start_ms=self._start_ms(),
            mode=self._report.mode,
            kill_verb=planned.verb,
            kill_step=planned.step,
        )

    def _run_alone(self) -> "_Ended":
        self._zygote.start([self._session()])
        return _Ended(self._zygote.wait(), self._zygote.progress)

    def _end_session(self, legal: LegalLogs, ended: "_Ended") -> LegalLogs:
        """Return the legal logs of what a session left."""
        status, progress = ended
        operations = self._lives[self._life].operations
        before, self._left = self._left, snapshot_of(self._directory)
        verb = _verb_in_flight(progress, operations)
        killed = _was_killed(status, progress, where=f"verb {progress.begun} ({verb})")
        if self._number >= 0:
            self._tally(verb, killed=killed)
        require(marker_is_right(before, self._left, progress, operations))
        answered = legal_after(legal, progress, operations, settings=self._settings, start_ms=self._start_ms())
        require(answered.ruling)
        return answered.legal

    def _tally(self, verb: str, *, killed: bool) -> None:
        report, planned = self._report, self._lives[self._life]
        report.lives += 1
        if not killed:
            report.completed += 1
            return
        report.killed += 1
        report.killed_in[verb] += 1
        report.points.add(KillPoint(self._program, self._life, planned.verb, planned.step, verb))
        report.outcomes.add(digest_of(self._left))

    def _violation(self, broken: GuaranteeBroken) -> KillViolation:
        planned = self._lives[self._life]
        return KillViolation(
            seed=self._report.seed,
            cycle=self._number,
            program=self._program,
            life=self._life,
            verb=planned.verb,
            step=planned.step,
            contract=broken.contract,
            sentence=str(broken),
            kept=self._keep(),
        )

    def _keep(self) -> str:
        """Keep the directory and a copy of what the last process left; return the new path."""
        kept = f"{self._base}/{self._name}"
        os.makedirs(kept)
        os.rename(self._directory, f"{kept}/store")
        for path, data in self._left.files.items():
            target = f"{kept}/killed/{path}"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)
        return kept


class _Ended(NamedTuple):
    """The end of a session.

    `status` is the wait status that it would have in a process of its own.
    """

    status: int
    progress: Progress


class FirstSessions:
    """The first sessions of cycles of one program.

    One process runs them and one SIGKILL ends them.
    """

    def __init__(self, cycles: Sequence[Cycle], zygote: Zygote) -> None:
        self._cycles = cycles
        self._zygote = zygote
        zygote.start([cycle.prepare() for cycle in cycles])

    def finish(self) -> None:
        """Wait for the end of the process, then finish each cycle."""
        status = self._zygote.wait()
        for cycle, progress in zip(self._cycles, self._zygote.pages_of(len(self._cycles)), strict=True):
            cycle.finish(self._end_of(status, progress))

    def _end_of(self, status: int, progress: Progress) -> _Ended | None:
        """Return the end of a session, or None if it is unknown.

        It is unknown if the process ended in another way than by the planned signal. Each session is repeated then.
        """
        if len(self._cycles) == 1:
            return _Ended(status, progress)
        planned = not os.WIFSIGNALED(status) or os.WTERMSIG(status) == signal.SIGKILL
        if not planned or not (progress.kills or progress.has_ended):
            return None
        own = signal.SIGKILL if progress.kills else (EXIT_FAILED if progress.error else EXIT_COMPLETED) << 8
        return _Ended(own, progress)


def _was_killed(status: int, progress: Progress, *, where: str) -> bool:
    """Return whether the process died where planned. Any other death is a fault of the store.

    Raises HarnessError if the signal came from another process.
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL and progress.kills:
            return True
        if number == signal.SIGKILL:
            raise HarnessError(f"another process killed the process in {where}; is memory short?")
        if number == signal.SIGALRM:
            raise GuaranteeBroken(16, f"{where} did not return within {HANG_SECONDS} s")
        raise GuaranteeBroken(7, f"the process died by {signal.Signals(number).name} in {where}")
    if os.WEXITSTATUS(status) != 0:
        raise GuaranteeBroken(8, f"{where} raises {progress.error or 'nothing, but the process ended'}")
    return False


def _verb_in_flight(progress: Progress, operations: tuple[Operation, ...]) -> str:
    if progress.begun == progress.returned:
        return "rest"
    return "open" if progress.begun <= 0 else operations[progress.begun - 1].op
