"""Jobs in processes of their own, so that one that hangs or dies is an answer, and not the end of the rest.

A server process imports once what jobs need, and is forked for each job: a job starts in some milliseconds, with
nothing left over from the one before. Jobs do not hear of an interrupt; who runs them does, and ends them.
"""

import multiprocessing
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from time import monotonic
from typing import Any, Generic, Literal, TypeVar

from properties.interrupts import born_deaf

__all__ = ["Answer", "Apart", "alone"]

Key = TypeVar("Key")

_PRELOAD = ("properties.score.trials",)
"""What the server imports: all that a trial or a hunt needs."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Key]):
    """What became of a job: one that `hung` was ended at its limit; `why` has what one that `died` ended with."""

    key: Key
    end: Literal["answered", "died", "hung"]
    value: Any = None
    why: str = ""


@dataclass(slots=True)
class _Running(Generic[Key]):
    key: Key
    process: ForkServerProcess
    ours: Connection
    ends_at: float


@dataclass
class Apart(Generic[Key]):
    """Runs up to `workers` jobs at once, each `function(*arguments)` with a limit of seconds."""

    function: Callable[..., Any]
    workers: int
    _running: list[_Running[Key]] = field(default_factory=list)

    @property
    def has_room(self) -> bool:
        """Whether another job may start."""
        return len(self._running) < self.workers

    @property
    def busy(self) -> int:
        """How many jobs are running."""
        return len(self._running)

    def start(self, key: Key, arguments: Sequence[Any], *, limit_s: float) -> None:
        """Start a job."""
        context = multiprocessing.get_context("forkserver")
        with born_deaf():  # the server, and so are its children; the job is known before an interrupt ends it
            context.set_forkserver_preload(list(_PRELOAD))
            forkserver.ensure_running()
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(theirs, self.function, tuple(arguments)), daemon=True)
            process.start()
            theirs.close()
            self._running.append(_Running(key, process, ours, monotonic() + limit_s))

    def finished(self, *, timeout_s: float) -> Iterator[Answer[Key]]:
        """Yield what has ended, waiting so long for the first one at most."""
        first_end = min((job.ends_at for job in self._running), default=0.0)
        wait([job.ours for job in self._running], max(0.0, min(timeout_s, first_end - monotonic())))
        for job in list(self._running):
            if job.ours.poll():
                yield self._end(job, _answer_of(job))
            elif monotonic() >= job.ends_at:
                yield self._end(job, Answer(job.key, "hung", why="no answer within its limit"))

    def stop(self) -> None:
        """End all jobs."""
        for job in list(self._running):
            self._end(job, Answer(job.key, "died"))

    def _end(self, job: _Running[Key], answer: Answer[Key]) -> Answer[Key]:
        self._running.remove(job)
        if answer.end != "answered":
            job.process.kill()
        job.process.join()
        job.process.close()
        job.ours.close()
        return answer


def alone(function: Callable[..., Any], arguments: Sequence[Any], *, limit_s: float) -> Answer[str]:
    """Run one job, and return what became of it."""
    apart: Apart[str] = Apart(function, workers=1)
    try:
        apart.start("", arguments, limit_s=limit_s)
        while True:
            for answer in apart.finished(timeout_s=limit_s):
                return answer
    finally:
        apart.stop()


def _answer_of(job: _Running[Key]) -> Answer[Key]:
    try:
        end, value = job.ours.recv()
        return Answer(job.key, "answered", value) if end == "answered" else Answer(job.key, "died", why=value)
    except (EOFError, OSError):  # nothing, or half a message
        job.process.join()
        return Answer(job.key, "died", why=f"ended with exit code {job.process.exitcode}")


def _child(answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        said = pickle.dumps(("answered", function(*arguments)))
    except Exception as error:  # whatever ends a job is its answer
        said = pickle.dumps(("died", f"{type(error).__name__}: {error}"))
    with suppress(BrokenPipeError):  # who asked has gone
        answer.send_bytes(said)
