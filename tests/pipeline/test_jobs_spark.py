"""Test that campaigns, sweeps and bulk reading in Spark tasks equal the serial run.

A dead worker loses only its own piece. The tests that need a session in the usual run are in this one file, whose tests
share a process: starting a session takes longer than most of them.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.properties.handmade import golden_dirs
from tornpage.pipeline.audit.audit_spark import _in_tasks
from tornpage.pipeline.campaign import targets
from tornpage.pipeline.campaign.campaign import CrashCampaign, prepare_output, rows_of_shard
from tornpage.pipeline.campaign.files import CampaignFiles, SharedPlace, shared_place
from tornpage.pipeline.campaign.summary import summary_in_spark, summary_of, summary_of_rows
from tornpage.pipeline.campaign.turns import Turn, TurnEnd, campaign, run_serial, take_turn
from tornpage.pipeline.rows.outputs import OutputTaken
from tornpage.pipeline.spark.agreement import VersionsDiffer, versions
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.pipeline.spark.session import JobFailed
from tornpage.pipeline.sweep.pareto import pareto, pareto_in_spark, points_frame
from tornpage.pipeline.sweep.sweep import Row as PointRow
from tornpage.pipeline.sweep.sweep import prepare_sweep, run_some, stored_points, sweep
from tornpage.pipeline.tables.described import SWEEP_TABLE
from tornpage.properties.explore.crashes.campaign import Plan
from tornpage.properties.explore.crashes.rows import result_hash
from tornpage.properties.explore.foreign.campaign import TargetPlan
from tornpage.properties.program.case import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


TOY = Path(__file__).parents[2] / "examples" / "toy_store.py"

# ---- campaigns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TellsAndWaits:
    """Take turns; the second turn of shard 1 tells its process id and waits forever."""

    told: Path
    never: Path

    def __call__(self, kind: Any, place: SharedPlace, turn: Turn[Any, Any]) -> TurnEnd[Any] | Death:
        if turn.shard.number == 1 and turn.progress.runs:
            self.told.write_text(str(os.getpid()))
            self.never.read_text()
        return take_turn(kind, place, turn)


def take_turn_elsewhere(kind: Any, place: SharedPlace, turn: Turn[Any, Any]) -> TurnEnd[Any] | Death:
    """Take a turn on a machine that has another directory of this name."""
    return take_turn(kind, replace(place, mark="another"), turn)


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
def test_a_worker_killed_inside_a_shard_loses_a_turn_and_the_resumed_campaign_ends_as_the_serial_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    states = 300
    shards = [*Plan(Settings(), seed=3, states=2 * states, shard_states=states).shards()]
    serial = [row for shard in shards for row in rows_of_shard(shard)]
    take, out = pipes(tmp_path), tmp_path / "run"
    files = CampaignFiles(out)
    prepare_output(out, shards, resume=False)
    with ThreadPoolExecutor(1) as killer, shared_place(out) as place:
        killed = killer.submit(kill_who_tells, take.told)
        campaign(spark, CrashCampaign(), shards, place, take=take, keep_every_s=0.0)
        assert killed.result() != os.getpid()
        [death] = [row for row in files.rows([0, 1]) if row["verdict"] == "harness"]
        assert (death["kind"], death["shard"], death["states"]) == ("shard", 1, 0)
        assert death["sentence"].startswith("the worker of shard 1 died (its process ended): nothing is known")
        assert files.complete() == {0}
        assert CrashCampaign().progress(files, shards[1]).runs == 1
        assert summary_in_spark(spark, place, [0, 1]).result_hash != result_hash(serial)

        first = (out / "histories/part-shard-000000.parquet").stat().st_mtime_ns
        page = next((out / "progress").iterdir())
        campaign(spark, CrashCampaign(), shards, place, keep_every_s=0.0)
        assert not page.exists()
        assert (out / "histories/part-shard-000000.parquet").stat().st_mtime_ns == first
        found = summary_in_spark(spark, place, [0, 1])
        unseen = summary_in_spark(spark, replace(place, mark="another"), [0, 1])
        rows = spark.read.parquet(str(out / "histories"))
    assert result_hash(files.rows([0, 1])) == result_hash(serial)
    expected = summary_of_rows([serial])
    for summary in (found, unseen, summary_of(files, [0, 1])):
        assert summary.result_hash == result_hash(serial)
        assert summary.activation() == expected.activation()
        assert summary.discovery() == expected.discovery()
        assert summary.levels.exercised() == expected.levels.exercised()
    assert activation_by_sql(rows) == found.activation()
    assert discovery_by_sql(rows) == found.discovery()


@pytest.mark.slow
def test_a_worker_killed_inside_a_shard_of_a_foreign_store_loses_a_turn_of_that_shard_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Regression: the whole shard was lost, whose rows came back to the driver at its end."""
    plan = TargetPlan(Settings(target=f"{TOY}:ToyStore"), states=20)
    shards = targets.target_shards(plan, shards=6, states_per_shard=20)
    kind, take, out = targets.TargetCampaign(), pipes(tmp_path), tmp_path / "run"
    files = CampaignFiles(out, targets.TARGETS)
    targets.prepare_target_output(out, shards, resume=False)
    with ThreadPoolExecutor(1) as killer, shared_place(out) as place:
        killed = killer.submit(kill_who_tells, take.told)
        campaign(spark, kind, shards, place, take=take, keep_every_s=0.0)
        assert killed.result() != os.getpid()
        assert files.complete() == {0, 2, 3, 4, 5}
        (row,) = files.rows([1])
        assert (row["kind"], row["verdict"], row["sentence"]) == ("shard", "harness", "its process ended")
        assert kind.progress(files, shards[1]).runs == 1
        page = next((out / "target-progress").iterdir())
        campaign(spark, kind, shards, place, keep_every_s=0.0)
        assert not page.exists()
    targets.prepare_target_output(tmp_path / "here", shards, resume=False)
    with shared_place(tmp_path / "here") as place:
        run_serial(kind, shards, place)
    resumed, serial = (targets.explored_in(tmp_path / name, shards, is_cut=True) for name in ("run", "here"))
    assert (resumed[1], serial[1]) == ([], [])
    assert resumed[0].result_hash == serial[0].result_hash
    assert resumed[0].tally.lines() == serial[0].tally.lines()


@pytest.mark.slow
def test_rows_of_workers_without_the_directory_are_written_by_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    shards = [*Plan(Settings(), seed=3, states=250, shard_states=250).shards()]
    prepare_output(tmp_path / "run", shards, resume=False)
    with shared_place(tmp_path / "run") as place:
        campaign(spark, CrashCampaign(), shards, place, take=take_turn_elsewhere, keep_every_s=0.0)
    assert result_hash(CampaignFiles(tmp_path / "run").rows([0])) == result_hash(rows_of_shard(shards[0]))


def activation_by_sql(rows: DataFrame) -> list[dict[str, Any]]:
    """Return the activation of a campaign, computed by Spark."""
    from pyspark.sql import functions as sql

    kinds = ("armed", "fired", "mattered")
    nothing = sql.lit(0).cast("bigint")
    counted = [
        rows.select(sql.explode(kind).alias("fault", "count")).select(
            "fault", *((sql.col("count") if each == kind else nothing).alias(each) for each in kinds)
        )
        for kind in kinds
    ]
    together = counted[0].unionAll(counted[1]).unionAll(counted[2])
    summed = together.groupBy("fault").agg(*(sql.sum(kind).alias(kind) for kind in kinds))
    return [row.asDict() for row in summed.orderBy("fault").collect()]


def discovery_by_sql(rows: DataFrame) -> list[dict[str, int]]:
    """Return the discovery curve of a campaign, computed by Spark."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    seen = {"images": "distinct_images", "recovered": "distinct_recovered"}
    number = sql.split("seed", ":")[1].cast("bigint")
    runs = rows.filter("kind = 'history'").withColumn("number", number)
    in_order = Window.orderBy("shard", "number").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    for name in seen:
        first = sql.row_number().over(Window.partitionBy(f"{name}_hash").orderBy("shard", "number")) == 1
        runs = runs.withColumn(f"new_{name}", sql.when(first, sql.col(name)).otherwise(0))
    curve = runs.select(
        "shard",
        "number",
        sql.sum("states").over(in_order).alias("states"),
        *(sql.sum(f"new_{name}").over(in_order).alias(total) for name, total in seen.items()),
    )
    return [row.asDict() for row in curve.orderBy("shard", "number").select("states", *seen.values()).collect()]


def raises_at_two(number: int) -> int:
    if number == 2:
        raise LookupError("two")
    return -number


def test_work_that_raises_is_an_answer(spark: SparkSession) -> None:
    found: dict[int, int | Death] = {}
    do_each(spark, [1, 2, 3], raises_at_two, found.__setitem__)
    assert found == {1: -1, 2: Death("LookupError: two"), 3: -3}
    do_each(spark, [], raises_at_two, found.__setitem__)


def negative(number: int) -> int:
    return -number


def test_pieces_are_taken_as_jobs_end_and_may_be_continued(spark: SparkSession) -> None:
    """A campaign has more shards than fit into a list of jobs, and more turns than shards."""
    taken: list[int] = []
    found: list[int] = []
    most = 0

    def pieces() -> Iterator[int]:
        for number in range(40):
            taken.append(number)
            yield number

    def done(piece: int, answer: int | Death) -> int | None:
        nonlocal most
        assert answer == -piece
        found.append(piece)
        most = max(most, len(taken) - len(found))
        return piece + 1000 if piece < 3 else None

    do_each(spark, pieces(), negative, done)
    assert sorted(found) == [*range(40), 1000, 1001, 1002]
    assert most < 40


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

    table = pq.read_table(tmp_path / "points.parquet")
    assert table.to_pylist() == rows
    assert {*SWEEP_TABLE} == {*table.schema.names, "error"}
    for field in spark.read.parquet(str(tmp_path / "points.parquet")).schema:
        column = SWEEP_TABLE[field.name]
        assert (field.dataType.simpleString(), field.metadata["comment"]) == (column.kind, column.meaning)
        assert field.metadata.get("unit", "") == column.unit


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
