"""Handle Ctrl-C in a process that runs Spark, where PySpark and Py4J do not.

1. An interrupt between the start of the JVM and its first answer leaves a JVM that never ends and holds the standard
   output of this process open.
2. Each new context sets its own handler of SIGINT, which cancels jobs through the connection that is waiting for them.
3. An interrupt in a call to the JVM is logged with its traceback, and the next call may raise Py4JError instead.

So the start is guarded, and long calls run in another thread than the one that receives interrupts.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["apart", "interruptible_start"]

Answer = TypeVar("Answer")


def apart(spark: SparkSession, do: Callable[[], Answer]) -> Answer:
    """Return the result of `do`, which calls Spark, from a thread of its own.

    An interrupt stops the session, waits for that thread, whose next call to Spark fails, and is raised then.
    """
    answer: Future[Answer] = Future()
    try:
        threading.Thread(target=_run, args=(do, answer), name="spark").start()
        return answer.result()
    except KeyboardInterrupt:
        with contextlib.redirect_stderr(io.StringIO()):  # the server of accumulators prints how its socket was closed
            spark.stop()
        raise
    finally:
        if not answer.cancel():  # the thread was started
            wait([answer])


def _run(do: Callable[[], Answer], answer: Future[Answer]) -> None:
    if answer.set_running_or_notify_cancel():
        try:
            answer.set_result(do())
        except BaseException as error:
            answer.set_exception(error)


@contextlib.contextmanager
def interruptible_start() -> Iterator[None]:
    """Kill processes started meanwhile if an interrupt ends this; restore SIGINT's handler.

    Only for the thread that starts a session, while no other one starts processes.
    """
    logging.getLogger().addFilter(_is_ours)
    before = _children()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except KeyboardInterrupt:
        _kill(_children() - before)
        raise
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


def _is_ours(record: logging.LogRecord) -> bool:
    """Return whether a record of the root logger is not Py4J's, which logs interrupts there."""
    return "py4j" not in Path(record.pathname).parts


def _children() -> set[int]:
    """Return the running processes that threads of this one have started."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            found.update(map(int, (task / "children").read_text().split()))
    return found


def _kill(children: set[int]) -> None:
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(child, 0)
