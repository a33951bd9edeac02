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
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import groupby
from time import perf_counter
from types import FrameType

from impl.parts import Parts
from properties.contract import HarnessError
from properties.explore.kills.child import KillMode
from properties.explore.kills.cycle import KillPoint, KillReport, KillViolation
from properties.explore.kills.program import CYCLES_PER_PROGRAM, VIOLATIONS_MAX
from properties.explore.kills.workers import StopWord, run_here, run_in_workers
from properties.planted import parts_of
from properties.program.case import Settings

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
    components: Parts | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda cycles: None,
) -> KillReport:
    """Kill `count` processes, in a new directory that goes away unless a promise was broken.

    It is made below `directory`, or in memory where there is room, else in the usual place for temporary files.

    `settings.bug` names a planted bug; `components`, if given, replaces the parts it stands for. So many `workers` take
    programs in turn; the report is the same for any number of them. Ends after the program in which there are
    VIOLATIONS_MAX violations, and at SIGINT after the cycle under way. Raises HarnessError in a process with several
    threads, which must not fork. `progress` is called with the number of cycles behind each program.
    """
    return _run(
        range(count),
        progress,
        seed=seed,
        mode=mode,
        directory=directory,
        settings=settings,
        components=components,
        workers=workers,
    )


def replay_kill(
    seed: int,
    cycle: int,
    *,
    mode: KillMode = "step",
    directory: str | os.PathLike[str] | None = None,
    settings: Settings = KILL_SETTINGS,
    components: Parts | None = None,
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
    components: Parts | None,
    workers: int = 1,
) -> KillReport:
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        raise HarnessError(f"this process has {threads} threads; fork from one that has a single thread")
    programs = [tuple(each) for _, each in groupby(cycles, lambda number: number // CYCLES_PER_PROGRAM)]
    base = tempfile.mkdtemp(prefix="tornpage-kill-", dir=directory or memory_directory())
    report, stop = KillReport(seed, mode), StopWord()
    job = partial(
        run_here,
        base=base,
        seed=seed,
        mode=mode,
        settings=settings,
        components=components or parts_of(settings.bug),
        stop=stop,
    )
    count = min(workers, len(programs))
    started = perf_counter()
    try:
        with _interrupts(stop) as interrupted:
            parts = run_in_workers(count, programs, job, stop) if count > 1 else job("here", programs)
            with closing(parts):
                for part in parts:
                    report.add(part)
                    progress(report.cycles)
                    if len(report.violations) >= VIOLATIONS_MAX:
                        break
            report.interrupted = interrupted.is_set()
    finally:
        with suppress(OSError):
            os.rmdir(base)  # stays when a violation was kept in it
    report.seconds = perf_counter() - started
    return report


@contextmanager
def _interrupts(stop: StopWord) -> Iterator[threading.Event]:
    """Yield an event that SIGINT sets; it says the word besides, and raises nothing in the middle of a cycle."""
    interrupted = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        stop.say()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
