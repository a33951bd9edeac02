"""Run Spark jobs of one task each, so that a dead worker costs one piece of work.

If all pieces were tasks of one job, the death of one would fail the job, and Spark would end its other tasks. Jobs wait
in Spark's own queue, so that all cores have work. Between two pieces of seconds the cost of a job is not measurable.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from tornpage.pipeline.spark.agreement import differing, missing_module, versions

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["Death", "do_each", "reason_of", "spark_failures"]

_QUEUED_MIN = 16
"""The least number of waiting jobs, for cores of workers that join late."""

_DEATHS = (
    (re.compile(r"Python worker exited unexpectedly"), "its process ended"),
    (re.compile(r"Python worker failed to connect back"), "its process did not start"),
    (re.compile(r"ExecutorLostFailure"), "its executor was lost"),
)

_REASON = re.compile(r"(?:: |Caused by: )?([\w.$]*(?:Error|Exception): .+)")
_OUTER = ("SparkException: Job aborted", "Py4J", "SparkException: Exception thrown in")
"""Parts of errors that only say that something failed."""

_UNANSWERED = re.compile(r"An error occurred while calling [\w.:$]+")
_END_S = 2.0
"""Time in which a Java process that closed its connections ends."""

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Death:
    """The reason why a piece of work failed: its worker died, or the work raised."""

    how: str


@dataclass(frozen=True, slots=True)
class _Other:
    """The worker runs other code than the driver."""

    versions: dict[str, str]


def do_each(
    spark: SparkSession,
    pieces: Iterable[Piece],
    do: Callable[[Piece], Answer],
    done: Callable[[Piece, Answer | Death], Piece | None],
) -> None:
    """Run each piece in a Spark task of its own; call `done` with each result as it comes.

    `done` is called in this thread. It may return another piece, which continues the first one. Only as many pieces are
    taken from the iterator as jobs wait or run. When anything ends this early, jobs are cancelled and workers stop.
    Raises VersionsDiffer if workers run other code, the errors of `done`, and Py4JError or PySparkException if Spark
    itself fails.
    """
    context = spark.sparkContext
    is_over = threading.Event()
    threads = max(_QUEUED_MIN, 2 * context.defaultParallelism)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="job")
    under_way: dict[Future[Answer | Death | _Other], Piece] = {}
    waiting = iter(pieces)

    def submit(some: Iterable[Piece]) -> None:
        for piece in some:
            under_way[pool.submit(_submit, context, piece, do, is_over)] = piece

    try:
        submit(islice(waiting, threads))
        while under_way:
            ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in ended:
                piece, answer = under_way.pop(future), future.result()
                if isinstance(answer, _Other):
                    raise differing(answer.versions, versions()) or AssertionError("equal versions")
                following = done(piece, answer)
                submit([following] if following is not None else [])
            submit(islice(waiting, max(0, threads - len(under_way))))
    finally:
        is_over.set()
        _end(context, pool)


def spark_failures() -> tuple[type[Exception], ...]:
    """Return the errors of calls to Spark when Spark itself fails, for example if it died."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
    except ImportError:  # a missing package is reported as such
        return ()
    return (Py4JError, PySparkException, ConnectionError)


def reason_of(error: BaseException) -> str:
    """Return the reason of a failed job in one line, without tracebacks.

    It is the cause of all others. An error of Spark that only says that something failed counts if there is no other.
    """
    if _is_unanswered(error):
        return f"the Java process of Spark {_java_end()} ({type(error).__name__})"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    reasons = (_REASON.fullmatch(line) for line in lines)
    told = [found[1] for found in reasons if found is not None]
    causes = [each for each in told if not any(part in each for part in _OUTER)]
    plain = [each for each in causes if "SparkException" not in each]
    return next(iter([*plain[:1], *causes[-1:], *told[-1:]]), lines[0])[:300]


def _is_unanswered(error: BaseException) -> bool:
    """Return whether the Java process gave no answer.

    Py4J then raises an error of the connection, or one that names the call and has no trace of Java.
    """
    return (
        isinstance(error, ConnectionError)
        or type(error).__name__ == "Py4JNetworkError"
        or (type(error).__name__ == "Py4JError" and _UNANSWERED.fullmatch(str(error).strip()) is not None)
    )


def _java_end() -> str:
    """Return how the Java process of the session ended, as far as this process knows."""
    unknown = "has ended or does not answer"
    try:
        from pyspark import SparkContext
    except ImportError:
        return unknown
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:  # it was started elsewhere
        return unknown
    try:
        code = process.wait(_END_S)
    except subprocess.TimeoutExpired:
        return unknown
    if code == -signal.SIGKILL:
        return "was killed by SIGKILL, as the kernel does without memory"
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"


def _task(do: Callable[[Piece], Answer], wanted: Mapping[str, str], piece: Piece) -> Answer | Death | _Other:
    """Run a piece in a worker that runs the driver's code.

    Workers import this function by its name, so it is their own.
    """
    mine = versions()
    if differing(mine, wanted) is not None:
        return _Other(mine)
    try:
        return do(piece)
    except Exception as error:
        return Death(f"{type(error).__name__}: {error}")


def _submit(
    context: SparkContext, piece: Piece, do: Callable[[Piece], Answer], is_over: threading.Event
) -> Answer | Death | _Other:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if is_over.is_set():
        return Death("it was not started")
    task = partial(_task, do, versions())
    try:
        [answer] = context.parallelize([piece], 1).map(task).collect()
    except (Py4JJavaError, PySparkException) as error:
        if (other := missing_module(error)) is not None:
            raise other from error
        said = str(error)
        how = next((how for pattern, how in _DEATHS if pattern.search(said)), None)
        if how is None:
            raise
        return Death(how)
    return answer


def _end(context: SparkContext, pool: ThreadPoolExecutor) -> None:
    """Cancel the remaining jobs, and wait for the threads: none may outlive the session."""
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError):
        context.cancelAllJobs()
    pool.shutdown(wait=True, cancel_futures=True)
