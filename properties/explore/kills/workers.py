"""Programs of a run spread over processes: what a program comes to does not depend on who runs it.

Worker n of k runs programs n, n + k and so on, and sends a report for each. Workers are forked, and hear neither an
interrupt nor SIGTERM; they end after the cycle under way once the word to stop is in the page that all share, or nobody
listens any more.
"""

import mmap
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import NoReturn

from impl.parts import Parts
from properties.contract import HarnessError
from properties.explore.kills.child import KillMode
from properties.explore.kills.cycle import KillReport
from properties.explore.kills.program import ProgramRunner
from properties.program.case import Settings

__all__ = ["Cycles", "Job", "StopWord", "run_here", "run_in_workers"]

Cycles = Sequence[int]
"""The numbers of the cycles of one program."""

Reports = Generator[KillReport, None, None]

Job = Callable[[str, Sequence[Cycles]], Reports]
"""Runs programs for somebody of that name, and yields a report for each."""


class StopWord:
    """The word to stop, seen by every process that was forked since."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)

    def say(self) -> None:
        """Stop after the cycle under way."""
        self._page[0] = 1

    def is_said(self) -> bool:
        """Whether it was said."""
        return self._page[0] == 1


def run_here(
    name: str,
    programs: Sequence[Cycles],
    *,
    base: str,
    seed: int,
    mode: KillMode,
    settings: Settings,
    components: Parts,
    stop: StopWord,
) -> Reports:
    """Run programs one after the other and yield the report of each; the word to stop cuts the last one."""
    with ProgramRunner(base, name, settings, components) as runner:
        for cycles in programs:
            report = KillReport(seed, mode)
            runner.run(cycles, report, stop.is_said)
            yield report
            if stop.is_said():
                return


def run_in_workers(count: int, programs: Sequence[Cycles], job: Job, stop: StopWord) -> Reports:
    """Do a job in `count` processes; yield the reports in the order of the programs.

    Without the word to stop none is missing; with it some may be. Who leaves early stops the workers, and what they
    have kept since goes away. Raises HarnessError when a worker ends too early, and what a worker raises.
    """
    workers = _Workers()
    waiting: dict[int, KillReport] = {}
    due = 0
    try:
        for number in range(count):
            workers.fork(number, range(number, len(programs), count), programs, job)
        while workers.are_there:
            waiting.update(workers.hear())
            while due in waiting:
                yield waiting.pop(due)
                due += 1
        if due < len(programs) and not stop.is_said():
            raise HarnessError(f"a worker ended before its program {due}")
        while waiting:
            yield waiting.pop(min(waiting))
    finally:
        stop.say()
        with suppress(HarnessError, OSError):
            while workers.are_there:
                waiting.update(workers.hear())
        for violation in (each for report in waiting.values() for each in report.violations):
            shutil.rmtree(violation.kept, ignore_errors=True)
        workers.join()


class _Workers:
    """Forked processes, and the pipes they speak through."""

    def __init__(self) -> None:
        self._pids: list[int] = []
        self._pipes: list[Connection] = []

    @property
    def are_there(self) -> bool:
        """Whether somebody may still say something."""
        return bool(self._pipes)

    def fork(self, number: int, own: range, programs: Sequence[Cycles], job: Job) -> None:
        """Fork a worker for its own programs."""
        ours, theirs = Pipe(duplex=False)
        pid = os.fork()
        if pid == 0:
            for pipe in (ours, *self._pipes):
                pipe.close()  # else nobody would notice that the parent is gone
            _work(f"worker{number}", own, programs, job, theirs)
        theirs.close()
        self._pids.append(pid)
        self._pipes.append(ours)

    def hear(self) -> Iterator[tuple[int, KillReport]]:
        """Yield what has been said, waiting for the first word."""
        for pipe in [each for each in wait(self._pipes) if isinstance(each, Connection)]:
            try:
                said = pipe.recv()
            except (EOFError, OSError):  # it may have died in the middle of what it said
                self._pipes.remove(pipe)
                pipe.close()
                continue
            if isinstance(said, Exception):
                raise said
            yield said

    def join(self) -> None:
        """Wait for all, who have been told to stop."""
        for pipe in self._pipes:
            pipe.close()
        for pid in self._pids:
            os.waitpid(pid, 0)


def _work(name: str, own: range, programs: Sequence[Cycles], job: Job, parent: Connection) -> NoReturn:
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        with closing(job(name, [programs[number] for number in own])) as reports:
            for said in zip(own, reports, strict=False):
                parent.send(said)
    except BrokenPipeError:
        pass  # nobody is left to be told
    except (HarnessError, OSError) as error:
        parent.send(error)
    except BaseException as error:
        parent.send(HarnessError(f"{name} raises {type(error).__name__}: {error}"))
    finally:
        os._exit(0)
