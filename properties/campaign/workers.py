"""Carry out the parts of a campaign in one or several processes, in their order.

A worker receives one part after the other over a pipe. It ignores an interrupt, which a terminal sends to all
processes. The parent turns the interrupt into a stop request, and the worker then ends its part early. A worker that
dies loses only its part, and another worker takes its place. A worker whose parent is gone ends. Workers are new
interpreters (`spawn`), or copies of this process (`fork`) for parts that fork themselves.

`JobPool` gives each part its own process with a time limit, so that a part that hangs, dies or raises still has a
result. Results arrive in the order of completion. A server process imports the needed modules once and is forked for
each part.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess, SpawnProcess
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, Generic, Literal, Protocol, TypeVar

from tornpage.properties.interrupts import born_deaf, held_interrupts

__all__ = ["Control", "Died", "Interrupted", "Job", "JobPool", "Launcher", "PartProgress", "Plain", "Work"]

Launcher = Literal["spawn", "fork"]

_TELL_EVERY_S = 0.2
_LOOK_UP_EVERY_S = 0.2
_AHEAD = 32
"""Parts per worker that may be ahead of the first part without a result, so that a slow part leaves no worker idle."""

_CLOCK_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_READY = "ready"
_SPAWN = multiprocessing.get_context("spawn")
_SERVER = multiprocessing.get_context("forkserver")

Part = TypeVar("Part")
Made = TypeVar("Made")
PartIn = TypeVar("PartIn", contravariant=True)
MadeOut = TypeVar("MadeOut", covariant=True)


@dataclass(frozen=True, slots=True)
class PartProgress:
    """Report the progress of part `number`: its count, and the seed of its current run."""

    number: int
    count: int
    at: str


Watch = Callable[[PartProgress], None]
"""Called from time to time while parts are carried out."""


@dataclass(frozen=True, slots=True)
class Control:
    """Give a part its controls: whether time is over, whether to stop, how to report progress."""

    is_over: Callable[[], bool]
    is_stopped: Callable[[], bool]
    tell: Callable[[int, str], None]


class Job(Protocol[PartIn, MadeOut]):
    """Carry out parts. With the launcher `spawn` a job must be picklable."""

    def opened(self) -> AbstractContextManager[Callable[[PartIn, Control], MadeOut]]:
        """Return the function that carries out parts in this process while the context is open."""


@dataclass(frozen=True, slots=True)
class Plain(Generic[Part, Made]):
    """Call a function with each part."""

    function: Callable[[Part], Made]

    @contextmanager
    def opened(self) -> Iterator[Callable[[Part, Control], Made]]:
        """Return the function that calls it."""
        yield lambda part, control: self.function(part)


@dataclass(frozen=True, slots=True)
class Died(Generic[Part]):
    """Describe a worker that ended by itself or at its time limit, with part and last run."""

    part: Part
    at: str
    how: str
    is_hung: bool = False


class Interrupted(KeyboardInterrupt):
    """Interrupt a part, and carry what the part had made so far."""

    def __init__(self, made: object) -> None:
        super().__init__()
        self.made = made


@dataclass(frozen=True, slots=True)
class _Raised:
    """Carry the exception that a part raised in a worker."""

    error: Exception


class _Interrupts:
    """Count interrupts instead of raising them in the middle of a message."""

    def __init__(self) -> None:
        self.count = 0
        self._is_main = threading.current_thread() is threading.main_thread()  # no other thread is interrupted

    def __enter__(self) -> "_Interrupts":
        if self._is_main:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


def _is_past(until: float | None) -> bool:
    return until is not None and perf_counter() >= until


# ---- the worker ------------------------------------------------------------------------------------------------------


def _work(parent: Connection, job: Job[Any, Any], foreign: tuple[Connection, ...]) -> None:
    """Carry out the parts that arrive, until None arrives or the parent is gone."""
    for pipe in foreign:
        pipe.close()  # inherited by a fork: an open copy would hide that the parent is gone
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # a worker reports through its pipe alone
    try:
        with job.opened() as carry_out:
            parent.send(_READY)
            while (task := parent.recv()) is not None:
                number, part, until = task
                teller = _ProgressReporter(parent, number)
                stopped = parent.poll  # anything that arrives now is the stop request or the parent's end
                parent.send(_made(carry_out, part, Control(partial(_is_past, until), stopped, teller.tell)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _made(carry_out: Callable[[Any, Control], object], part: object, control: Control) -> object:
    try:
        return carry_out(part, control)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        raise
    except Exception as error:
        return _Raised(error)


def _work_once(parent: Connection, job: Job[Any, Any], part: object) -> None:
    """Carry out one part and send its result or its exception."""
    control = Control(is_over=lambda: False, is_stopped=lambda: False, tell=lambda count, at: None)
    try:
        with job.opened() as carry_out:
            said = pickle.dumps(carry_out(part, control))
    except Exception as error:
        said = pickle.dumps(Died(part, "", f"{type(error).__name__}: {error}"))
    with suppress(BrokenPipeError):  # the parent has gone
        parent.send_bytes(said)


@dataclass
class _ProgressReporter:
    """Report the progress of a part at intervals, and each new run at once."""

    parent: Connection
    number: int
    told_at: float = 0.0
    told_of: str = ""

    def tell(self, count: int, at: str) -> None:
        """Report progress if it is due."""
        now = perf_counter()
        if at != self.told_of or now - self.told_at >= _TELL_EVERY_S:
            self.told_at, self.told_of = now, at
            self.parent.send(PartProgress(self.number, count, at))


# ---- the parent ------------------------------------------------------------------------------------------------------


class _Fork:
    """Fork this process to do some work, with the interface of a spawned process.

    multiprocessing refuses to fork in its own daemon processes, in which a campaign may run.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.exitcode: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            try:
                work()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)

    def join(self) -> None:
        """Wait until the process ends."""
        if self.exitcode is None:
            self.exitcode = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def kill(self) -> None:
        """Kill the process."""
        if self.exitcode is None:
            os.kill(self._pid, signal.SIGKILL)


@dataclass
class _Worker(Generic[Part]):
    """Represent one process and its part. `number` is -1 without a part."""

    process: _Fork | SpawnProcess | ForkServerProcess
    pipe: Connection
    number: int = -1
    part: Part | None = None
    at: str = ""
    is_ready: bool = False
    until: float = 0.0
    used_s: float = 0.0
    used_at: float = field(default_factory=perf_counter)

    def say(self, message: object) -> None:
        """Send a message. A worker that is gone is noticed when its pipe is read."""
        try:
            self.pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return

    def end(self) -> str:
        """Wait for the process and return how it ended."""
        self.process.join()
        code = self.process.exitcode or 0
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def kill(self) -> None:
        """Kill the process if it still runs, and close its pipe."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


@dataclass
class Work(Generic[Part, Made]):
    """Carry out the parts of a plan in `workers` processes until `seconds` have passed.

    `known` returns the result of a part from an earlier run, or None. `holds_interrupts` turns an interrupt of a run
    without workers into a stop request as well. `interrupted` and `out_of_time` say what ended the work.
    """

    job: Job[Part, Made]
    parts: Iterator[Part]
    workers: int = 1
    seconds: float | None = None
    launcher: Launcher = "spawn"
    holds_interrupts: bool = False
    watch: Watch = lambda told: None
    known: Callable[[Part], Made | None] = lambda part: None
    interrupted: bool = False
    out_of_time: bool = False
    is_stopped: bool = False
    until: float | None = None
    pool: list[_Worker[Part]] = field(default_factory=list)
    _due: int = 0
    _given: int = 0
    _ended: dict[int, tuple[Part, Made | Died[Part]]] = field(default_factory=dict)
    _held: Part | None = None

    def results(self) -> Generator[tuple[Part, Made | Died[Part]], None, None]:
        """Yield the result of each part in order. Raises what a part raises.

        A caller that closes this early stops the workers. A second interrupt kills them.
        """
        with _Interrupts() if self.workers > 1 or self.holds_interrupts else nullcontext(_Interrupts()) as interrupts:
            if self.workers == 1:
                yield from self._here(interrupts)
                return
            try:
                for _ in range(self.workers):
                    self._start()
                yield from self._elsewhere(interrupts)
            finally:
                self._stop()
                self._drain(interrupts)

    # ---- this process --------------------------------------------------------------------------------------------

    def _here(self, interrupts: _Interrupts) -> Iterator[tuple[Part, Made]]:
        self.until = None if self.seconds is None else perf_counter() + self.seconds
        with self.job.opened() as carry_out:
            for number, part in enumerate(self.parts):
                made = self.known(part)
                if made is None:
                    if number and _is_past(self.until):
                        self.out_of_time = True
                        return
                    try:
                        made = carry_out(part, self._control(number, interrupts))
                    except Interrupted as cut:
                        self.interrupted = True
                        yield part, cut.made  # type: ignore[misc]
                        return
                self.interrupted = interrupts.count > 0
                yield part, made
                if self.interrupted:
                    return

    def _control(self, number: int, interrupts: _Interrupts) -> Control:
        return Control(
            is_over=partial(_is_past, self.until),
            is_stopped=lambda: interrupts.count > 0,
            tell=lambda count, at: self.watch(PartProgress(number, count, at)),
        )

    # ---- other processes -----------------------------------------------------------------------------------------

    def _elsewhere(self, interrupts: _Interrupts) -> Iterator[tuple[Part, Made | Died[Part]]]:
        while self.pool and not self._is_impatient(interrupts):
            if interrupts.count and not self.is_stopped:
                self.interrupted = True
                self._stop()
            ready = wait([worker.pipe for worker in self.pool], _LOOK_UP_EVERY_S)
            for worker in [each for each in self.pool if each.pipe in ready]:
                if worker in self.pool:
                    self.hear(worker)
            while self._due in self._ended:
                yield self._ended.pop(self._due)
                self._due += 1
                self._feed_idle()
        self.interrupted = interrupts.count > 0
        while self._ended:  # after a stop some may be missing
            self._due = min(self._ended)
            yield self._ended.pop(self._due)

    def _is_impatient(self, interrupts: _Interrupts) -> bool:
        """Return whether a second interrupt asks to end at once.

        Parts that hold interrupts are always waited for.
        """
        return interrupts.count > 1 and not self.holds_interrupts

    def _start(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        process: _Fork | SpawnProcess
        if self.launcher == "fork":
            foreign = (ours, *(worker.pipe for worker in self.pool))
            with held_interrupts():
                process = _Fork(partial(_work, theirs, self.job, foreign))
        else:
            process = _SPAWN.Process(target=_work, args=(theirs, self.job, ()), daemon=True)
            with born_deaf():
                process.start()
        theirs.close()  # so that the pipe ends when the worker does
        self.pool.append(_Worker(process, ours))

    def hear(self, worker: _Worker[Part]) -> None:
        """Receive one message of a worker, or notice its end."""
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):  # it may have died in the middle of a message
            self._lose(worker)
            return
        if isinstance(said, PartProgress):
            worker.at = said.at
            self.watch(said)
        elif isinstance(said, str):
            if self.until is None and self.seconds is not None:
                self.until = perf_counter() + self.seconds  # the time to start a worker does not count as exploration
            worker.is_ready = True
            self._feed(worker)
        elif isinstance(said, _Raised):
            raise said.error
        else:
            assert worker.part is not None
            self._ended[worker.number] = worker.part, said
            worker.part = None
            self._feed(worker)

    def _lose(self, worker: _Worker[Part]) -> None:
        """Record a worker that died, with its part or the next one, and start another."""
        self.pool.remove(worker)
        if worker.part is None:
            part = self._next()
            if part is None:
                return
            worker.number, worker.part = self._given, part
            self._given += 1
        self._ended[worker.number] = worker.part, Died(worker.part, worker.at, worker.end())
        if not self.is_stopped:
            self._start()

    def _next(self) -> Part | None:
        """Return the next part without a known result, and record the known ones before it."""
        while self._held is None:
            part = next(self.parts, None)
            if part is None:
                return None
            made = self.known(part)
            if made is None:
                self._held = part
            else:
                self._ended[self._given] = part, made
                self._given += 1
        part, self._held = self._held, None
        return part

    def _feed(self, worker: _Worker[Part]) -> None:
        """Send a worker the next part, let it wait, or tell it to end."""
        if self._given - self._due > _AHEAD * self.workers and not self.is_stopped:
            return
        part = None if self.is_stopped else self._next()
        if part is not None and _is_past(self.until):
            self.out_of_time, self._held, part = True, part, None
        if part is None:
            worker.say(None)
            worker.process.join()
            worker.pipe.close()
            self.pool.remove(worker)
            return
        worker.number, worker.part, worker.at = self._given, part, ""
        self._given += 1
        worker.say((worker.number, part, self.until))

    def _feed_idle(self) -> None:
        for worker in [each for each in self.pool if each.is_ready and each.part is None]:
            self._feed(worker)

    def _stop(self) -> None:
        """Ask workers with a part to end it early. Kill the others, which may still be starting."""
        if self.is_stopped:
            return
        self.is_stopped = True
        for worker in self.pool:
            worker.say(None)
        self._kill([worker for worker in self.pool if worker.part is None])

    def _drain(self, interrupts: _Interrupts) -> None:
        """Wait for workers that were stopped; their results are not yielded any more."""
        while self.pool and not self._is_impatient(interrupts):
            for worker in [each for each in self.pool if each.pipe in wait([w.pipe for w in self.pool], 1.0)]:
                try:
                    said = worker.pipe.recv()
                except (EOFError, OSError):
                    said = None
                if not isinstance(said, PartProgress):
                    if said is not None and not isinstance(said, _Raised) and worker.part is not None:
                        self._ended[worker.number] = worker.part, said
                    worker.process.join()
                    worker.pipe.close()
                    self.pool.remove(worker)
        self._kill(list(self.pool))

    def ended(self) -> list[tuple[Part, Made | Died[Part]]]:
        """Return the results of parts that the caller did not take."""
        return list(self._ended.values())

    def _kill(self, workers: list[_Worker[Part]]) -> None:
        for worker in workers:
            worker.kill()
            self.pool.remove(worker)


# ---- a process for each part -----------------------------------------------------------------------------------------


@dataclass
class JobPool(Generic[Part, Made]):
    """Carry out each part in its own process, for at most `limit_s` seconds of the wall clock.

    A process also counts as hung after `cpu_limit_s` seconds of processor time, and if it uses none in `idle_limit_s`
    seconds. At most `workers` processes run at once. The next part is requested as soon as there is room for it and all
    results so far were taken. The processes ignore an interrupt, and are killed as soon as the caller closes `results`.
    The server imports the modules of `preload`. `tick` is called from time to time while parts are carried out.
    """

    job: Job[Part, Made]
    parts: Iterator[Part]
    workers: int
    limit_s: float
    preload: tuple[str, ...] = ()
    tick: Callable[[], None] = lambda: None
    cpu_limit_s: float | None = None
    idle_limit_s: float | None = None
    pool: list[_Worker[Part]] = field(default_factory=list)

    def results(self) -> Generator[tuple[Part, Made | Died[Part]], None, None]:
        """Yield the result of each part when it ends."""
        try:
            while self._fill():
                self.tick()
                yield from self._ended()
        finally:
            for worker in list(self.pool):
                worker.kill()
                self.pool.remove(worker)

    def _fill(self) -> bool:
        """Start parts while there is room; return whether any is running."""
        while len(self.pool) < self.workers and (part := next(self.parts, None)) is not None:
            self._start(part)
        return bool(self.pool)

    def _start(self, part: Part) -> None:
        with born_deaf():  # the server and its children; the worker is known before an interrupt is raised
            _SERVER.set_forkserver_preload(list(self.preload))
            forkserver.ensure_running()
            ours, theirs = _SERVER.Pipe(duplex=False)
            process = _SERVER.Process(target=_work_once, args=(theirs, self.job, part), daemon=True)
            process.start()
            theirs.close()
            self.pool.append(_Worker(process, ours, part=part, until=perf_counter() + self.limit_s))

    def _ended(self) -> Iterator[tuple[Part, Made | Died[Part]]]:
        """Yield the parts that have ended, after a short wait for the first one."""
        first_limit_s = min(worker.until for worker in self.pool) - perf_counter()
        wait([worker.pipe for worker in self.pool], max(0.0, min(_LOOK_UP_EVERY_S, first_limit_s)))
        for worker in list(self.pool):
            assert worker.part is not None
            made: Made | Died[Part]
            if worker.pipe.poll():
                made = _heard(worker)
            elif how := self._hung(worker):
                made = Died(worker.part, "", how, is_hung=True)
                worker.kill()
            else:
                continue
            self.pool.remove(worker)
            yield worker.part, made

    def _hung(self, worker: _Worker[Part]) -> str:
        """Return how a worker exceeded a limit, or an empty string."""
        if _is_past(worker.until):
            return "no answer within its limit"
        if self.cpu_limit_s is None and self.idle_limit_s is None:
            return ""
        assert isinstance(worker.process, ForkServerProcess)
        now, used = perf_counter(), _processor_s(worker.process.pid, worker.used_s)
        if used - worker.used_s >= _CLOCK_TICK_S:
            worker.used_s, worker.used_at = used, now
        if self.cpu_limit_s is not None and used > self.cpu_limit_s:
            return "no answer within its limit of processor time"
        if self.idle_limit_s is not None and now - worker.used_at > self.idle_limit_s:
            return "no answer and no use of the processor"
        return ""


def _processor_s(pid: int | None, before: float) -> float:
    """Return the processor time of a process, or the value `before` if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return before
    return (int(fields[11]) + int(fields[12])) * _CLOCK_TICK_S


def _heard(worker: _Worker[Part]) -> Any:
    """Return the result of a worker's part.

    Nothing or half a message means that the worker died.
    """
    try:
        made = worker.pipe.recv()
    except (EOFError, OSError):
        assert worker.part is not None
        made = Died(worker.part, "", worker.end())
    worker.process.join()
    worker.pipe.close()
    return made
