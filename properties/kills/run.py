"""Real processes on a real disk, killed by SIGKILL at a chosen step, and what their stores hold afterwards.

A process kill loses nothing that a put had returned (contract 2), and leaves a prefix (1), no cut bytes (3), a store
that opens read-write (7), twice alike (6). Each cycle forks a child that opens the store, carries out a program and
kills itself when its n-th step begins; some go on with what was left, without a judge in between.

A program is drawn from the seed and rehearsed once without a kill, to know how many steps it has; its cycles then die
at steps drawn from all of them: while it opens, puts, flushes, closes, opens again. Equal seeds give equal cycles.

What it leaves out: tears inside a page (the kernel keeps every byte stored before the kill), threads of the store.
"""

import os
import random
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import perf_counter
from types import FrameType

from impl.components import Components
from properties.cases.case import (
    Close,
    CommitOffset,
    FailSync,
    FailWrite,
    Operation,
    QueryOffsets,
    RefuseFile,
    Settings,
)
from properties.cases.translation import layout_of, services_of
from properties.cases.workload import draw_operation, draw_settings
from properties.kills.child import KillMode
from properties.kills.cycle import Child, Cycle, KillPoint, KillReport, KillViolation, PlannedLife
from properties.kills.judged import Judged
from properties.planted import components_of
from properties.verdict import HarnessError

__all__ = [
    "KILL_SETTINGS",
    "KillMode",
    "KillPoint",
    "KillReport",
    "KillViolation",
    "memory_directory",
    "replay_kill",
    "run_kills",
]

KILL_SETTINGS = Settings(file_bytes=4096)
"""One page per log file, so that a program of a few puts rolls over several times."""

CYCLES_PER_PROGRAM = 25
OPERATIONS_MIN, OPERATIONS_SPREAD = 10, 8
LATER_OPERATIONS = 5
ANOTHER_LIFE_SHARE = 0.15
LIVES_MAX = 3
VIOLATIONS_MAX = 10
WORKPLACES = ("even", "odd")
_MEMORY = "/dev/shm"
_ROOM_BYTES = 256 << 20


def memory_directory() -> str | None:
    """Return a directory on a file system in memory that has room; None where there is none.

    A kill takes nothing from the page cache, so what dies there dies as on a disk, and no cycle waits for a disk.
    """
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES and os.access(_MEMORY, os.W_OK | os.X_OK)
    except OSError:
        return None
    return _MEMORY if has_room else None


def run_kills(
    count: int,
    *,
    seed: int,
    mode: KillMode = "step",
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    components: Components | None = None,
    progress: Callable[[int], None] = lambda cycles: None,
) -> KillReport:
    """Kill `count` processes, in a new directory that goes away unless a promise was broken.

    It is made below `directory`, or in memory where there is room, else in the usual place for temporary files.

    `settings.bug` names a planted bug; `components`, if given, replaces the parts it stands for. Ends after
    VIOLATIONS_MAX violations, and at SIGINT after the cycle under way. Raises HarnessError in a process with several
    threads, which must not fork. `progress` is called with the number of cycles after each.
    """
    cycles = range(count)
    return _run(cycles, progress, seed=seed, mode=mode, directory=directory, settings=settings, components=components)


def replay_kill(
    seed: int,
    cycle: int,
    *,
    mode: KillMode = "step",
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    components: Components | None = None,
) -> KillReport:
    """Repeat one cycle of a run with the same seed, mode and settings, its rehearsal included."""
    cycles = range(cycle, cycle + 1)
    return _run(
        cycles, lambda _: None, seed=seed, mode=mode, directory=directory, settings=settings, components=components
    )


def _run(
    cycles: range,
    progress: Callable[[int], None],
    *,
    seed: int,
    mode: KillMode,
    directory: str | os.PathLike[str] | None,
    settings: Settings,
    components: Components | None,
) -> KillReport:
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        raise HarnessError(f"this process has {threads} threads; fork from one that has a single thread")
    base = tempfile.mkdtemp(prefix="tornpage-kill-", dir=directory or memory_directory())
    report = KillReport(seed, mode)
    started = perf_counter()
    try:
        with _interrupts() as interrupted:
            runner = _Runner(base, settings, components or components_of(settings.bug), report)
            runner.run(cycles, interrupted, progress)
    finally:
        with suppress(OSError):
            os.rmdir(base)  # stays when a violation was kept in it
    report.seconds = perf_counter() - started
    return report


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Yield an event that SIGINT sets, instead of raising KeyboardInterrupt in the middle of a cycle."""
    interrupted = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True, slots=True)
class _Program:
    """Settings and operations of all cycles of one program, and how many steps each verb had in its rehearsal."""

    number: int
    settings: Settings
    operations: tuple[Operation, ...]
    steps: tuple[int, ...] = ()

    def draw_point(self, rng: random.Random) -> tuple[int, int]:
        """Draw a verb and one of its steps in the rehearsal.

        A verb with many steps is drawn more often, by their square root: open and close, with all the queues to look
        at and to flush, have so many that hardly a process would die while it puts.
        """
        (verb,) = rng.choices(range(len(self.steps)), weights=[steps**0.5 for steps in self.steps])
        return verb, 1 + rng.randrange(self.steps[verb])

    def draw_later_point(self, rng: random.Random, operations: int) -> tuple[int, int]:
        """Draw where a life that was not rehearsed dies: half of them while they open what a kill left."""
        verb = 0 if rng.random() < 0.5 else rng.randrange(operations + 1)
        return verb, 1 + rng.randrange(max(1, self.steps[0]) if verb == 0 else max(1, *self.steps[1:]))


class _Runner:
    """Carries out the cycles of one run; the first process of a cycle runs while the cycle before it is judged."""

    def __init__(self, base: str, settings: Settings, components: Components, report: KillReport) -> None:
        self._base = base
        self._settings = settings
        self._components = components
        self._report = report
        self._children = (Child(), Child())
        self._judged = Judged(components)
        self._program: _Program | None = None
        self._started: Cycle | None = None

    def run(self, cycles: range, interrupted: threading.Event, progress: Callable[[int], None]) -> None:
        """Run the cycles in order, until told to stop or enough promises are broken."""
        try:
            for number in cycles:
                cycle = self._draw_cycle(number)
                if cycle is not None:
                    cycle.start()
                self._finish_started()
                progress(self._report.cycles)
                self._started = cycle
                if interrupted.is_set() or len(self._report.violations) >= VIOLATIONS_MAX:
                    break
            self._finish_started()
        finally:
            self._report.interrupted = interrupted.is_set()
            self._report.judged, self._report.recovered_twice = self._judged.count, self._judged.twice
            for child in self._children:
                child.discard()
            for name in WORKPLACES:
                shutil.rmtree(f"{self._base}/{name}", ignore_errors=True)

    def _finish_started(self) -> None:
        started, self._started = self._started, None
        if started is not None:
            self._report.cycles += 1
            started.finish()

    def _draw_cycle(self, number: int) -> Cycle | None:
        """Return a cycle; None when the rehearsal of its program came to nothing, which is reported."""
        if self._program is None or self._program.number != number // CYCLES_PER_PROGRAM:
            self._finish_started()
            self._program = self._rehearse(number // CYCLES_PER_PROGRAM)
        program = self._program
        if not any(program.steps):
            return None
        rng = random.Random(f"kill {self._report.seed} {self._report.mode} cycle {number}")
        lives = [PlannedLife(program.operations, *program.draw_point(rng))]
        while len(lives) < LIVES_MAX and rng.random() < ANOTHER_LIFE_SHARE:
            operations = _draw_operations(rng, LATER_OPERATIONS, program.settings)
            lives.append(PlannedLife(operations, *program.draw_later_point(rng, len(operations))))
        return self._cycle(number, program, lives)

    def _rehearse(self, number: int) -> _Program:
        rng = random.Random(f"kill {self._report.seed} program {number}")
        settings = replace(draw_settings(self._settings, rng), log_paths=1)  # the judge of kills reads one directory
        operations = _draw_operations(rng, OPERATIONS_MIN + rng.randrange(OPERATIONS_SPREAD), settings)
        rehearsal = self._cycle(-1, _Program(number, settings, operations), [PlannedLife(operations)])
        rehearsal.start()
        rehearsal.finish()
        progress = self._children[1].progress
        steps = tuple(max(0, progress.steps_of(verb)) for verb in range(len(operations) + 1))
        return _Program(number, settings, operations, steps)

    def _cycle(self, number: int, program: _Program, lives: list[PlannedLife]) -> Cycle:
        return Cycle(
            number,
            program.number,
            lives,
            settings=program.settings,
            components=self._components,
            base=self._base,
            workplace=WORKPLACES[number % 2],
            child=self._children[number % 2],
            judged=self._judged,
            report=self._report,
        )


def _draw_operations(rng: random.Random, count: int, settings: Settings) -> tuple[Operation, ...]:
    """Draw a life that ends with a clean close; syncs and writes that fail, progress, and what is delivered after a
    delay belong to another layer.
    """
    services = tuple(name for name in services_of(layout_of(settings)) if name != "schedule")
    operations: list[Operation] = []
    closed = False
    while len(operations) < count or closed:
        operation = draw_operation(rng, closed=closed, services=services)
        if not isinstance(operation, FailSync | FailWrite | RefuseFile | CommitOffset | QueryOffsets):
            closed = isinstance(operation, Close)
            operations.append(operation)
    return (*operations, Close())
