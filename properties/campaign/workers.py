"""The parts of a campaign, carried out by this process or by several, with results in the order of the parts.

A worker asks for one part after the other over a pipe. It ignores an interrupt, which a terminal sends to all its
processes: the parent turns it into a stop request, and the worker ends the part where it is. A worker that dies loses
its part and nothing else; another one takes its place. A worker whose parent is gone ends. Workers are new interpreters
(`spawn`), or copies of this process (`fork`) for parts that fork themselves.
"""

import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from time import perf_counter
from types import FrameType
from typing import Any, Generic, Literal, Protocol, TypeVar

from properties.interrupts import born_deaf, held_interrupts

__all__ = ["Control", "Died", "Interrupted", "Job", "Launcher", "Told", "Work"]

Launcher = Literal["spawn", "fork"]

_TELL_EVERY_S = 0.2
_LOOK_UP_EVERY_S = 0.2
_AHEAD = 32
"""Parts per worker that may be ahead of the first one without a result, so that a slow part leaves no worker idle."""

_READY = "ready"

Part = TypeVar("Part")
Made = TypeVar("Made")
PartIn = TypeVar("PartIn", contravariant=True)
MadeOut = TypeVar("MadeOut", covariant=True)


@dataclass(frozen=True, slots=True)
class Told:
    """How far part `number` has come: what it has counted, and the seed of the run it is at."""

    number: int
    count: int
    at: str


Watch = Callable[[Told], None]
"""Called now and then while parts are carried out."""


@dataclass(frozen=True, slots=True)
class Control:
    """What the carrier of a part asks, often, and tells: whether time is over, whether to stop, how far it is."""

    is_over: Callable[[], bool]
    is_stopped: Callable[[], bool]
    tell: Callable[[int, str], None]


class Job(Protocol[PartIn, MadeOut]):
    """What the parts are carried out with. With the launcher `spawn` it has to be picklable."""

    def opened(self) -> AbstractContextManager[Callable[[PartIn, Control], MadeOut]]:
        """Return what carries out parts in this process, for as long as it is open."""


@dataclass(frozen=True, slots=True)
class Died(Generic[Part]):
    """A worker that ended by itself, the part it had, and the last run it told of."""

    part: Part
    at: str
    how: str


class Interrupted(KeyboardInterrupt):
    """An interrupt of a part, with what the part had made by then."""

    def __init__(self, made: object) -> None:
        super().__init__()
        self.made = made


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a part raised in a worker."""

    error: Exception


class _Interrupts:
    """Counts interrupts, which otherwise would be raised in the middle of a message."""

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
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # a worker speaks through its pipe alone
    try:
        with job.opened() as carry_out:
            parent.send(_READY)
            while (task := parent.recv()) is not None:
                number, part, until = task
                teller = _Teller(parent, number)
                stopped = parent.poll  # whatever arrives now is the stop request, or the parent's end
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


@dataclass
class _Teller:
    """Tells the parent now and then how far a part has come, and of each new run at once."""

    parent: Connection
    number: int
    told_at: float = 0.0
    told_of: str = ""

    def tell(self, count: int, at: str) -> None:
        """Tell, if it is time."""
        now = perf_counter()
        if at != self.told_of or now - self.told_at >= _TELL_EVERY_S:
            self.told_at, self.told_of = now, at
            self.parent.send(Told(self.number, count, at))


# ---- the parent ------------------------------------------------------------------------------------------------------


@dataclass
class _Worker(Generic[Part]):
    """One process, and the part it has: `number` is -1 without one."""

    process: Any
    pipe: Connection
    number: int = -1
    part: Part | None = None
    at: str = ""
    is_ready: bool = False

    def say(self, message: object) -> None:
        """Send a message; a worker that is gone is noticed where its pipe is read."""
        try:
            self.pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return

    def end(self) -> str:
        """Return how it ended."""
        self.process.join()
        code = self.process.exitcode or 0
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


@dataclass
class Work(Generic[Part, Made]):
    """The parts of a plan, carried out by `workers` processes until `seconds` have passed.

    `known` returns what an earlier run made of a part, or None. `holds_interrupts` turns an interrupt of a run without
    workers into a stop request too. `interrupted` and `out_of_time` say what ended it.
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
        """Yield what was made of each part, in order. Raises what a part raises.

        A caller that closes this early stops the workers; a second interrupt kills them.
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
            tell=lambda count, at: self.watch(Told(number, count, at)),
        )

    # ---- other processes -----------------------------------------------------------------------------------------

    def _elsewhere(self, interrupts: _Interrupts) -> Iterator[tuple[Part, Made | Died[Part]]]:
        while self.pool and interrupts.count < 2:
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

    def _start(self) -> None:
        context: Any = multiprocessing.get_context(self.launcher)
        ours, theirs = context.Pipe()
        foreign = (ours, *(worker.pipe for worker in self.pool)) if self.launcher == "fork" else ()
        process = context.Process(target=_work, args=(theirs, self.job, foreign), daemon=True)
        with born_deaf() if self.launcher == "spawn" else held_interrupts():
            process.start()
        theirs.close()  # so that the pipe ends when the worker does
        self.pool.append(_Worker(process, ours))

    def hear(self, worker: _Worker[Part]) -> None:
        """Take one message of a worker, or its end."""
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):  # it may have died in the middle of a message
            self._lose(worker)
            return
        if isinstance(said, Told):
            worker.at = said.at
            self.watch(said)
        elif isinstance(said, str):
            if self.until is None and self.seconds is not None:
                self.until = perf_counter() + self.seconds  # to start a worker is not to explore
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
        """Note a worker that died, with its part or with the next one, and start another."""
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
        """Return the next part that no earlier run has carried out, and note what is known of those before it."""
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
        """Give a worker the next part, let it wait, or send it home."""
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
        """Ask workers with a part to end it where they are; end the others, which may still be starting."""
        if self.is_stopped:
            return
        self.is_stopped = True
        for worker in self.pool:
            worker.say(None)
        self._kill([worker for worker in self.pool if worker.part is None])

    def _drain(self, interrupts: _Interrupts) -> None:
        """Wait for workers that were stopped; what they still make counts no more."""
        while self.pool and interrupts.count < 2:
            for worker in [each for each in self.pool if each.pipe in wait([w.pipe for w in self.pool], 1.0)]:
                try:
                    said = worker.pipe.recv()
                except (EOFError, OSError):
                    said = None
                if not isinstance(said, Told):
                    if said is not None and not isinstance(said, _Raised) and worker.part is not None:
                        self._ended[worker.number] = worker.part, said
                    worker.process.join()
                    worker.pipe.close()
                    self.pool.remove(worker)
        self._kill(list(self.pool))

    def ended(self) -> list[tuple[Part, Made | Died[Part]]]:
        """Return what became of parts whose results the caller did not take."""
        return list(self._ended.values())

    def _kill(self, workers: list[_Worker[Part]]) -> None:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
            self.pool.remove(worker)
