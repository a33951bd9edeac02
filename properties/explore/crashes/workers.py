"""Shards in other processes: who runs a shard does not change what it gives.

Each worker is a new interpreter that asks for one shard after the other over a pipe. It is deaf to an interrupt, which
comes to all processes of a terminal: the parent tells it, and it ends after the state it is at, with what it has. A
worker that dies takes its shard with it, and nothing else; another one is started in its place. A worker whose parent
is gone ends.
"""

import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import perf_counter
from types import FrameType

from properties.disk.dirty import choose_tracker
from properties.explore.crashes.shards import HistoryRun, Shard, ShardRun, run_shard
from properties.interrupts import born_deaf

__all__ = ["Counted", "Died", "Watch", "run_here", "run_in_workers"]

_SAY_EVERY_S = 0.2
_LOOK_UP_EVERY_S = 0.2
_READY = "ready"
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Counted:
    """How far a shard has come: states counted, and the history it is at."""

    shard: int
    states: int
    history: str


@dataclass(frozen=True, slots=True)
class Died:
    """A worker that ended by itself, the shard it had, and the last history it told of."""

    shard: Shard
    history: str
    how: str

    @property
    def sentence(self) -> str:
        """Say it."""
        first = next(self.shard.history_seeds())
        return (
            f"the worker that ran shard {self.shard.number} {self.how}: nothing is known of its histories from seed "
            f"{first} on; it was at {self.history or first}"
        )


Watch = Callable[[Counted], None]
"""Called now and then while shards are running."""

Done = Callable[[ShardRun | Died], bool]
"""Called with each shard that has ended; says whether there is reason to go on."""


def _states(run: ShardRun) -> int:
    return sum(history.tally.states for history in run.histories)


def run_here(shards: Iterator[Shard], *, seconds: float | None, watch: Watch, done: Done) -> bool:
    """Run shards one after the other in this process, until so many seconds have passed.

    Returns False if somebody interrupted it: what there was is `done` all the same.
    """
    until = None if seconds is None else perf_counter() + seconds
    with choose_tracker("auto") as tracker:
        for shard in shards:
            run = ShardRun(shard)

            def told(history: HistoryRun, run: ShardRun = run) -> None:
                watch(Counted(run.shard.number, _states(run), history.seed))

            try:
                run_shard(run, tracker=tracker, is_over=partial(_is_past, until), watch=told)
            except KeyboardInterrupt:
                run.cut = True
                done(run)
                return False
            if not done(run) or _is_past(until):
                return True
    return True


def _is_past(until: float | None) -> bool:
    return until is not None and perf_counter() >= until


# ---- the worker ------------------------------------------------------------------------------------------------------


def _work(parent: Connection) -> None:
    """Run the shards that come, until None comes or nobody is there."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # it speaks through its pipe alone
    try:
        with choose_tracker("auto") as tracker:
            parent.send(_READY)
            while (task := parent.recv()) is not None:
                shard, until = task
                run = ShardRun(shard)
                teller = _Teller(parent, run)
                run_shard(
                    run,
                    tracker=tracker,
                    is_over=partial(_is_past, until),
                    is_given_up=parent.poll,  # whatever comes now is the word to stop, or the parent's end
                    watch=teller.tell,
                )
                parent.send(run)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


@dataclass
class _Teller:
    """Tells the parent now and then how far a shard has come, and of each new history at once."""

    parent: Connection
    run: ShardRun
    said_at: float = 0.0
    said_of: str = ""

    def tell(self, history: HistoryRun) -> None:
        """Tell, if it is time."""
        now = perf_counter()
        if history.seed != self.said_of or now - self.said_at >= _SAY_EVERY_S:
            self.said_at, self.said_of = now, history.seed
            self.parent.send(Counted(self.run.shard.number, _states(self.run), history.seed))


# ---- the parent ------------------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    """One process, and the shard it has."""

    process: SpawnProcess
    pipe: Connection
    shard: Shard | None = None
    history: str = ""

    @classmethod
    def start(cls) -> "_Worker":
        pipe, others = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_work, args=(others,), daemon=True)
        with born_deaf():
            process.start()
        others.close()  # so that the pipe ends when the worker does
        return cls(process, pipe)

    def give(self, shard: Shard | None, until: float | None) -> None:
        """Send it a shard, or send it home."""
        self.shard, self.history = shard, ""
        self.say((shard, until) if shard is not None else None)

    def say(self, message: object) -> None:
        try:
            self.pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return  # it is gone, which the pipe says as soon as it is read

    def end(self) -> str:
        """Return how it ended."""
        self.process.join()
        code = self.process.exitcode or 0
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


class _Interrupts:
    """Counts interrupts, which would else fall into the middle of what a worker says."""

    def __init__(self) -> None:
        self.count = 0
        self._is_main = threading.current_thread() is threading.main_thread()  # nobody else is interrupted

    def __enter__(self) -> "_Interrupts":
        if self._is_main:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


@dataclass
class _Pool:
    """The workers, and what they still have to do."""

    shards: Iterator[Shard]
    seconds: float | None
    watch: Watch
    done: Done
    workers: list[_Worker] = field(default_factory=list)
    is_enough: bool = False
    until: float | None = None

    def feed(self, worker: _Worker) -> None:
        """Give a worker the next shard, or send it home."""
        go_on = not self.is_enough and not _is_past(self.until)
        worker.give(next(self.shards, None) if go_on else None, self.until)
        if worker.shard is None:
            worker.process.join()
            self.workers.remove(worker)

    def start(self, count: int) -> None:
        self.workers += [_Worker.start() for _ in range(count)]

    def run(self, interrupts: "_Interrupts") -> None:
        """Read what workers say until all have gone home, or somebody has interrupted twice."""
        while self.workers and interrupts.count < 2:
            if interrupts.count and not self.is_enough:
                self.stop()
            ready = wait([worker.pipe for worker in self.workers], _LOOK_UP_EVERY_S)
            for worker in [each for each in self.workers if each.pipe in ready]:
                if worker in self.workers:
                    self.hear(worker)

    def hear(self, worker: _Worker) -> None:
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):  # it may have died in the middle of what it said
            self.workers.remove(worker)
            shard = worker.shard or next(self.shards, None)  # it may have died before it had one
            if shard is not None:
                self._end(Died(shard, worker.history, worker.end()))
                if not self.is_enough:
                    self.start(1)
            return
        if isinstance(said, Counted):
            worker.history = said.history
            self.watch(said)
            return
        if said == _READY:
            if self.until is None and self.seconds is not None:
                self.until = perf_counter() + self.seconds  # starting a worker is no exploring
            self.feed(worker)
            return
        said.worker = worker.process.pid
        self._end(said)
        self.feed(worker)

    def _end(self, run: ShardRun | Died) -> None:
        if not self.done(run) and not self.is_enough:
            self.is_enough = True
            self.stop()

    def stop(self) -> None:
        """Tell those who have a shard to end it where they are; end the others, who may be long in coming."""
        self.is_enough = True
        for worker in self.workers:
            worker.say(None)
        self.kill([worker for worker in self.workers if worker.shard is None])

    def kill(self, workers: "list[_Worker]") -> None:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
            self.workers.remove(worker)


def run_in_workers(count: int, shards: Iterator[Shard], *, seconds: float | None, watch: Watch, done: Done) -> bool:
    """Run shards in `count` processes; else as `run_here`. A second interrupt ends the workers at once."""
    pool = _Pool(shards, seconds, watch, done)
    with _Interrupts() as interrupts:
        try:
            pool.start(count)
            pool.run(interrupts)
        finally:
            pool.kill(list(pool.workers))
    return not interrupts.count
