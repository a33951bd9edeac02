"""Measure the rows one after the other, and check each result.

Audits are commands in processes of their own, start of Spark included. Queries with the same number of cores
share a session, which has counted the log once before. Each query runs for some rounds. The round with the median wall
time counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.bench.figures import Machine, Skipped, describe_machine, scratch
from tornpage.bench.spark.queries import QUERIES
from tornpage.bench.spark.shapes import OLD_BYTES, Shape
from tornpage.bench.spark.stores import FILE_BYTES, LargeStore, damage, make_store, store_at
from tornpage.bench.spark.tree import Spent, Tree, watched_tree
from tornpage.pipeline.spark.interrupts import apart
from tornpage.pipeline.spark.jobs import reason_of, spark_failures
from tornpage.properties.contract import HarnessError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Row", "SparkRun", "measure_spark"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row and its rounds."""

    shape: Shape
    rounds: tuple[Spent, ...]
    record_bytes: int

    @property
    def spent(self) -> Spent:
        """Return the round with the median wall time."""
        return sorted(self.rounds, key=lambda spent: spent.wall_s)[(len(self.rounds) - 1) // 2]

    def document(self) -> dict[str, Any]:
        """Return the figures of the row; old figures that are not known are None."""
        spent, (old_wall_s, old_cpu_s, old_mb) = self.spent, self.shape.old
        return {
            "name": self.shape.name,
            "what": self.shape.what,
            "old_wall_s": old_wall_s or None,
            "old_mb_per_s": OLD_BYTES / old_wall_s / 1e6 if old_wall_s else None,
            "old_cpu_s": old_cpu_s or None,
            "old_peak_mb": old_mb or None,
            "wall_s": spent.wall_s,
            "mb_per_s": self.record_bytes / spent.wall_s / 1e6,
            "mb_per_cpu_s": self.record_bytes / max(spent.cpu_s, 0.01) / 1e6,
            "cpu_s": spent.cpu_s,
            "driver_cpu_s": spent.driver_s,
            "jvm_cpu_s": spent.jvm_s,
            "workers_cpu_s": spent.workers_s,
            "peak_mb": max(each.peak_bytes for each in self.rounds) / 1e6,
            "rounds_cpu_s": [each.cpu_s for each in self.rounds],
            "rounds": len(self.rounds),
        }


@dataclass
class SparkRun:
    """The rows of a run.

    `failed` names rows that failed, `skipped` rows that cannot run here, with reasons.
    """

    machine: Machine
    messages: int = 0
    record_bytes: int = 0
    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def measure_spark(
    shapes: Sequence[Shape],
    directory: str,
    *,
    store: str | None = None,
    log_bytes: int,
    rounds: int = 1,
    file_bytes: int = FILE_BYTES,
    progress: Callable[[str], None] = lambda name: None,
) -> SparkRun:
    """Measure rows on a store that is written below `directory`, or on a `store` that exists.

    A store that exists is not damaged, so rows of a damaged store are skipped. `progress` is called with each name
    first. A keyboard interrupt ends the run and keeps its rows. Raises Skipped without room or without a log.
    """
    run = SparkRun(describe_machine(directory))
    try:
        with scratch(directory) as place, watched_tree() as tree:
            _Measuring(run, Path(place), tree, rounds=rounds, progress=progress).all_of(
                shapes, store=store, log_bytes=log_bytes, file_bytes=file_bytes
            )
    except KeyboardInterrupt:
        run.interrupted = True
    return run


class _Measuring:
    """One run: its store and what is known of it."""

    def __init__(self, run: SparkRun, place: Path, tree: Tree, *, rounds: int, progress: Callable[[str], None]) -> None:
        self._run = run
        self._place = place
        self._tree = tree
        self._rounds = rounds
        self._progress = progress
        self._findings: list[Any] | None = None
        self._of_one_topic = 0
        self._is_damaged = False

    def all_of(self, shapes: Sequence[Shape], *, store: str | None, log_bytes: int, file_bytes: int) -> None:
        wanted = {shape.name for shape in shapes}
        if store is None:
            self._progress("make")
            made: list[LargeStore] = []
            path = self._place / "store"
            spent = self._tree.spent(lambda: made.append(make_store(path, log_bytes=log_bytes, file_bytes=file_bytes)))
            self._store = made[0]
            self._run.record_bytes = self._store.record_bytes
            if "make" in wanted:
                self._keep(next(shape for shape in shapes if shape.name == "make"), [spent])
        else:
            self._store = store_at(Path(store))
            self._run.record_bytes = self._store.record_bytes
            self._run.skipped |= {
                shape.name: "the store exists already" for shape in shapes if shape.kind == "make" or shape.is_damaged
            }
        self._run.messages = self._walked()
        left = [shape for shape in shapes if shape.kind != "make" and shape.name not in self._run.skipped]
        for (_, cores), some in groupby(left, key=lambda shape: (shape.kind, shape.cores)):
            with ExitStack() as stack:
                spark: SparkSession | None = None
                for shape in some:
                    self._progress(shape.name)
                    try:
                        if shape.kind == "query" and spark is None:
                            spark = stack.enter_context(self._session(cores))
                        self._measure(shape, spark)
                    except Skipped as reason:
                        self._run.skipped[shape.name] = str(reason)
                    except (HarnessError, OSError) as error:
                        self._run.failed[shape.name] = str(error)
                    except spark_failures() as error:
                        self._run.failed[shape.name] = reason_of(error)

    def _measure(self, shape: Shape, spark: SparkSession | None) -> None:
        if shape.kind == "walk":
            self._keep(shape, [self._spent(lambda: self._check(shape, self._walked())) for _ in range(self._rounds)])
        elif shape.kind == "audit":
            if shape.is_damaged and not self._is_damaged:
                damage(self._store)
                self._is_damaged, self._findings = True, None
            self._keep(shape, [self._spent(lambda: self._audit(shape))])
        elif spark is not None:
            self._keep(shape, [self._one_query(shape, spark) for _ in range(self._rounds)])

    def _spent(self, work: Callable[[], object]) -> Spent:
        return self._tree.spent(work)

    def _keep(self, shape: Shape, rounds: Sequence[Spent]) -> None:
        self._run.rows.append(Row(shape, tuple(rounds), self._store.record_bytes))

    def _walked(self) -> int:
        """Return the number of records that the compiled walk finds."""
        from tornpage.properties.decode.arrays import PIECE_BYTES, walk_arrays
        from tornpage.properties.decode.files import FileSource

        found, size = 0, self._store.file_bytes
        for path in self._store.log_files:
            with FileSource(path, size_bytes_max=size, piece_bytes=PIECE_BYTES) as source:
                for batch in walk_arrays(source, base_offset=int(path.name), file_bytes=size):
                    found += len(batch)
        return found

    def _check(self, shape: Shape, found: int) -> None:
        """Raise HarnessError unless a row has found every message, or every message of one topic."""
        if shape.query.startswith("one_topic"):
            self._of_one_topic = self._of_one_topic or found
        expected = self._of_one_topic if shape.query.startswith("one_topic") else self._run.messages
        if found != expected or not found:
            raise HarnessError(f"{shape.name} found {found:,} of {expected:,} messages")

    def _audit(self, shape: Shape) -> None:
        """Audit the store by the command. Engines that differ in findings raise HarnessError."""
        command = [sys.executable, "-P", "-m", "tornpage", "audit", str(self._store.path), "--engine", shape.engine]
        if shape.work:
            command += ["--work", str(self._place / "work"), *(["--resume"] if shape.work == "resume" else [])]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
        try:
            document = json.loads(done.stdout)
        except ValueError as error:
            raise HarnessError(f"the audit ended with code {done.returncode}: {done.stderr.strip()[-300:]}") from error
        expected = "broken" if shape.is_damaged else "holds"
        if document["verdict"] != expected:
            said = "".join(f": {each['sentence']}" for each in document["findings"] if each.get("code") == "harness")
            raise HarnessError(f"the verdict is {document['verdict']}, and not {expected}{said}")
        findings = sorted(json.dumps(finding, sort_keys=True) for finding in document["findings"])
        if self._findings is None:
            self._findings = findings
        if findings != self._findings:
            raise HarnessError(f"other findings than those of another engine: {len(findings)}")

    def _one_query(self, shape: Shape, spark: SparkSession) -> Spent:
        with scratch(str(self._place)) as place:
            found: list[int] = []

            def work() -> None:
                found.append(QUERIES[shape.query](spark, str(self._store.path), Path(place)))

            spent = apart(spark, lambda: self._spent(work))
        self._check(shape, found[0])
        return spent

    @contextmanager
    def _session(self, cores: int) -> Iterator[SparkSession]:
        """Yield a session that has counted the log once. Raises Skipped without Java or Spark."""
        from tornpage.pipeline.readers.sources import register
        from tornpage.pipeline.spark.session import SparkUnavailable, spark_session

        try:
            session = spark_session("bench", master=f"local[{cores}]", shuffle_partitions=cores)
        except SparkUnavailable as error:
            raise Skipped(str(error)) from error
        with session as spark:
            register(spark)
            apart(spark, lambda: QUERIES["by_topic"](spark, str(self._store.path), self._place))
            yield spark
