"""The progress of Spark: the tasks of its jobs, polled from its status tracker.

The work names its stages. A job belongs to the stage in which its thread began it. Spark does not know later jobs of a
stage before they begin, so the number of tasks can grow.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Stage", "Tell", "unwatched", "watched"]

Stage = Callable[[str, int], None]
"""Called with the name of the stage that begins, and its number of tasks, 0 if unknown."""

Tell = Callable[[str, int, int, bool], None]
"""Called with the stage, its tasks done, its known tasks, and whether these are all."""

_ASK_EVERY_S = 0.25


def unwatched(name: str, tasks: int) -> None:
    """Begin a stage without progress reports."""


@contextlib.contextmanager
def watched(spark: SparkSession, tell: Tell) -> Iterator[Stage]:
    """Yield the function that begins a stage, for the thread that calls Spark.

    `tell` is called by another thread.
    """
    watch = _Watch(spark, tell)
    thread = threading.Thread(target=watch.run, name="spark-watch")
    thread.start()
    try:
        yield watch.begin
    finally:
        watch.is_over.set()
        thread.join()


class _Watch:
    """Polls the status tracker four times a second."""

    def __init__(self, spark: SparkSession, tell: Tell) -> None:
        self._context = spark.sparkContext
        self._tell = tell
        self._stage = ("", 0)
        self._over: dict[int, int] = {}
        """Tasks of the finished jobs."""
        self.is_over = threading.Event()

    def begin(self, name: str, tasks: int) -> None:
        """Begin a stage, in the thread that calls Spark."""
        self._context.setJobGroup(name, name)
        self._stage = (name, tasks)

    def run(self) -> None:
        """Report the progress until the work is over."""
        while not self.is_over.wait(_ASK_EVERY_S):
            name, expected = self._stage
            if not name:
                continue
            try:
                done, known = self._tasks(name)
            except Exception:  # however an interrupt stops the session: the caller of Spark reports the error
                return
            self._tell(name, done, max(known, expected), expected > 0)

    def _tasks(self, group: str) -> tuple[int, int]:
        """Return the finished tasks and all tasks of the jobs of a group."""
        tracker = self._context.statusTracker()
        done = known = 0
        for job in tracker.getJobIdsForGroup(group):
            if job not in self._over:
                info = tracker.getJobInfo(job)
                stages = [tracker.getStageInfo(stage) for stage in info.stageIds] if info is not None else []
                job_done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
                if info is None or info.status == "RUNNING":
                    done += job_done
                    known += sum(stage.numTasks for stage in stages if stage is not None)
                    continue
                self._over[job] = job_done  # without tasks that it could leave out
            done += self._over[job]
            known += self._over[job]
        return done, known
