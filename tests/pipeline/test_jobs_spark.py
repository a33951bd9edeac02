"""Test that campaigns, sweeps and bulk reading in Spark tasks equal the serial run.

A dead worker loses only its own piece. The tests that need a session in the usual run are in this one file, whose tests
share a process: starting a session takes longer than most of them.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.properties.handmade import golden_dirs
from tornpage.pipeline.audit.audit_spark import _in_tasks
from tornpage.pipeline.campaign.aggregates import counted_here, counted_in_spark
from tornpage.pipeline.campaign.campaign import (
    campaign,
    complete_shards,
    read_rows,
    result_hash,
    rows_of_shard,
    run_serial,
)
from tornpage.pipeline.rows.outputs import OutputTaken
from tornpage.pipeline.spark.agreement import VersionsDiffer, versions
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.pipeline.spark.session import JobFailed
from tornpage.pipeline.sweep.pareto import pareto, pareto_in_spark, points_frame
from tornpage.pipeline.sweep.sweep import Row as PointRow
from tornpage.pipeline.sweep.sweep import prepare_sweep, run_some, stored_points, sweep
from tornpage.properties.explore.crashes.campaign import Plan
from tornpage.properties.explore.crashes.rows import Row
from tornpage.properties.explore.crashes.shards import Shard
from tornpage.properties.program.case import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# ---- campaigns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TellsAndWaits:
    """Run a shard; the worker of shard 1 writes its process id into a pipe and waits forever."""

    told: Path
    never: Path

    def __call__(self, shard: Shard) -> list[Row]:
        if shard.number == 1:
            self.told.write_text(str(os.getpid()))
            self.never.read_text()
        return rows_of_shard(shard)


def pipes(directory: Path) -> TellsAndWaits:
    run = TellsAndWaits(directory / "told", directory / "never")
    os.mkfifo(run.told)
    os.mkfifo(run.never)
    return run


def kill_who_tells(told: Path) -> int:
    process = int(told.read_text())
    os.kill(process, signal.SIGKILL)
    return process


@pytest.mark.slow
def test_killed_worker_is_a_row_and_a_resumed_campaign_ends_as_the_serial_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    shards = [*Plan(Settings(), seed=3, states=8, shard_states=4).shards()]
    run, out = pipes(tmp_path), tmp_path / "run"
    with ThreadPoolExecutor(1) as killer:
        killed = killer.submit(kill_who_tells, run.told)
        rows = campaign(spark, shards, out, run=run)
        assert killed.result() != os.getpid()
    [death] = [row for row in rows if row["verdict"] == "harness"]
    assert (death["kind"], death["shard"], death["states"]) == ("shard", 1, 0)
    assert death["sentence"].startswith("the worker of shard 1 died (its process ended): nothing is known")
    assert complete_shards(out) == {0}
    serial = run_serial(shards)
    assert counted_in_spark(spark, out, [0]) == counted_here([row for row in rows if row["shard"] == 0])
    assert result_hash(rows) != result_hash(serial)

    files = sorted((out / "histories").iterdir())
    first = files[0].stat().st_mtime_ns
    rows = campaign(spark, shards, out)
    assert result_hash(rows) == result_hash(serial)
    assert counted_in_spark(spark, out, [0, 1]) == counted_here(serial)
    assert campaign(spark, shards, out) == read_rows(out, shards) == rows
    assert sorted((out / "histories").iterdir()) == files
    assert files[0].stat().st_mtime_ns == first


def raises_at_two(number: int) -> int:
    if number == 2:
        raise LookupError("two")
    return -number


def test_work_that_raises_is_an_answer(spark: SparkSession) -> None:
    found: dict[int, int | Death] = {}
    do_each(spark, [1, 2, 3], raises_at_two, found.__setitem__)
    assert found == {1: -1, 2: Death("LookupError: two"), 3: -3}
    do_each(spark, [], raises_at_two, found.__setitem__)


def test_workers_with_other_code_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {**versions(), "code of tornpage": "0" * 12}
    monkeypatch.setattr("tornpage.pipeline.spark.jobs.versions", lambda: other)
    with pytest.raises(VersionsDiffer, match=r"code of tornpage [0-9a-f]{12}, here 000000000000; install there"):
        do_each(spark, [1], raises_at_two, lambda piece, answer: None)


@dataclass(frozen=True, slots=True)
class Nowhere:
    """Work that a worker cannot even load."""

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, ("nowhere_at_all",)

    def __call__(self, piece: int) -> int:
        return piece


def test_a_module_that_workers_lack_is_one_line(spark: SparkSession) -> None:
    with pytest.raises(VersionsDiffer, match="workers have no module nowhere_at_all; install there"):
        do_each(spark, [1], Nowhere(), lambda piece, answer: None)


def no_room(number: int) -> int:
    raise OSError(28, "No space left on device")


def test_a_job_of_an_audit_that_failed_is_one_line(spark: SparkSession) -> None:
    """The error of a worker was shown as the traces of two languages."""
    with pytest.raises(JobFailed, match=r"^the job failed: OSError: \[Errno 28\] No space left on device; .*--work"):
        _in_tasks(spark, [1], no_room)


# ---- sweeps: the rows of the simulator itself, in order, and a failing point as a row ----------------------------


def points() -> list[Any]:
    """Return a grid of twelve points; skip while there is no simulator."""
    pytest.importorskip("tornpage.sim.sweep", reason="the simulator is not there")
    from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
    from tornpage.sim.device.device import PRESETS
    from tornpage.sim.sweep import grid
    from tornpage.sim.workload import OpenPoisson, Sizes

    return grid(
        flushes=[FlushPolicy(FlushDiskType.SYNC_FLUSH), FlushPolicy(FlushDiskType.ASYNC_FLUSH)],
        allocations=[AllocationPolicy(files_ahead=1), AllocationPolicy(files_ahead=0)],
        devices=[PRESETS["vm-ext4"]],
        workloads=[OpenPoisson(rate, Sizes.of(512)) for rate in (1000.0, 2000.0, 4000.0)],
        file_bytes=[1 << 14],
        messages=200,
    )


def test_rows_are_those_of_the_simulator(spark: SparkSession, tmp_path: Path) -> None:
    grid = points()
    from tornpage.sim.sweep import run_point

    rows = sweep(spark, grid, tmp_path)
    assert rows == [run_point(point) for point in grid]

    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    assert pq.read_table(tmp_path / "points.parquet").to_pylist() == rows


def test_failing_point_is_a_row(spark: SparkSession) -> None:
    grid = points()
    object.__setattr__(grid[1], "seed", "none")
    rows = sweep(spark, grid[:3])
    assert [sorted(row) == ["error", "point"] for row in rows] == [False, True, False]
    assert rows[1]["point"] == 1
    assert sweep(spark, []) == []


def dies_at_two(some: Sequence[Any]) -> list[PointRow]:
    if any(point.index == 2 for point in some):
        os.kill(os.getpid(), signal.SIGKILL)
    return run_some(some)


def test_a_sweep_whose_worker_died_goes_on_with_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    grid = points()
    prepare_sweep(tmp_path, grid, resume=False)
    first = sweep(spark, grid, tmp_path, run=dies_at_two)
    failed = [row["point"] for row in first if "error" in row]
    assert 2 in failed
    assert len(failed) < len(grid)
    assert first[2]["error"] == "the worker died: its process ended"
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()}
    assert sweep(spark, grid, tmp_path) == run_some(grid) == stored_points(tmp_path)
    again = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()}
    assert {name for name, time in again.items() if kept[name] != time} == {f"{number:06}.json" for number in failed}
    with pytest.raises(OutputTaken, match="--resume"):
        prepare_sweep(tmp_path, grid, resume=False)
    with pytest.raises(OutputTaken, match=r"another sweep \(other grid, points\)"):
        prepare_sweep(tmp_path, grid[1:], resume=True)


def test_no_point_beats_those_of_the_front(spark: SparkSession) -> None:
    drawn = random.Random(7)
    names = ("point", "device", "load", "put_p99_us", "at_risk_messages_p99")
    rows: list[dict[str, Any]] = [
        dict(zip(names, (n, "ab"[n % 2], "load", float(drawn.randrange(9)), drawn.randrange(9)), strict=True))
        for n in range(80)
    ]
    rows.append({"point": 80, "error": "none"})
    front = pareto(rows)
    assert pareto_in_spark(points_frame(spark, rows)) == front
    plain = [row for row in rows if row["point"] in front and row["device"] == "a"]
    assert len({row["put_p99_us"] for row in plain}) == len({row["at_risk_messages_p99"] for row in plain}) > 1
    assert pareto([]) == pareto_in_spark(points_frame(spark, [])) == []


# ---- workers, and the bulk reader; formats and streams are in test_readers_spark.py ------------------------------


def test_workers_have_a_safe_path_and_our_interpreter(spark: SparkSession) -> None:
    import sys

    def ask(_: int) -> tuple[str, bool, str]:
        import sys

        return sys.executable, sys.flags.safe_path, sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]

    [said] = spark.sparkContext.parallelize([0], 1).map(ask).collect()
    assert said == (sys.executable, True, "tornpage.pipeline.spark.daemon")


@pytest.mark.slow
def test_bulk_reading_gives_the_rows_that_are_read_here(spark: SparkSession) -> None:
    from tests.pipeline.test_readers import rows
    from tornpage.pipeline.readers.sources import read_table

    stores = [path / "store" for path in golden_dirs()]
    found = read_table(spark, "rocketmq-commitlog", *map(str, stores), splitBytes="20000").collect()
    assert [row.asDict() for row in found] == rows("rocketmq-commitlog", *stores)
