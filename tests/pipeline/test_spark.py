"""On Spark as without: the audit of sound, damaged and made-up stores, campaigns, and sweeps of the simulator.

All of them in one file, whose tests share a process and with it the session, which takes longer to start than most of
them to run.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.audit import audit, audit_store
from pipeline.campaign import campaign, complete_shards, plan_shards, read_rows, result_hash, run_serial
from pipeline.dispatch import SCHEDULE_TOPIC
from pipeline.schemas import LOG_COLUMNS, QUEUE_COLUMNS
from pipeline.sources import commit_log, consume_queue, log_rows, queue_rows
from pipeline.stores import plan_store
from pipeline.sweep import sweep
from properties.case import Settings
from tests.pipeline.handmade import DUE_MS, STORED_MS, HandmadeStore, copied, overwrite, undamaged
from tests.properties.decode.handmade import golden_dirs, properties_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# ---- the audit ---------------------------------------------------------------------------------------------------


def damaged_stores(root: Path) -> list[Path]:
    """Return stores with every code of queues in them."""
    stores = []
    for number, unit in enumerate((struct.pack(">qiq", 1 << 40, 9, 0), bytes(20), struct.pack(">qiq", 0, 5, 9))):
        stores.append(copied("01-plain-ascii", root / f"unit-{number}"))
        overwrite(stores[-1] / "consumequeue/TopicTest/0/00000000000000000000", 140, unit)
    stores.append(copied("01-plain-ascii", root / "page"))
    overwrite(stores[-1] / "commitlog/00000000000000000000", 4096, bytes(4096))
    stores.append(copied("03-rollover-blanks-retention", root / "files"))
    queue = stores[-1] / "consumequeue/RollTopic/1"
    (queue / "00000000000000000800").unlink()
    (queue / "00000000000000000400").write_bytes(bytes(201))
    (stores[-1] / "commitlog/00000000000000098304").write_bytes(bytes(5000))
    return [*stores, made_up(root / "made-up"), alone(root / "alone")]


def made_up(root: Path) -> Path:
    store = HandmadeStore(root)
    own = [store.put(queue_offset=number) for number in range(9)]
    other = store.put("U", 1, 0, tags_code=-(2**63))
    store.unit("T", 0, 1, own[1][0], own[1][1] + 1)
    store.unit("T", 0, 2, *other)
    store.unit("T", 0, 3, *own[0])
    store.unit("T", 0, 4, *own[5])
    store.unit("T", 0, 5, *own[4])
    for number in range(4):
        due = STORED_MS + DUE_MS + (1 if number == 2 else 0)
        store.put(SCHEDULE_TOPIC, 2, number, properties=properties_of(("DELAY", "3")), tags_code=due)
    for number, unit in enumerate((0, 1, 2, None)):
        names = properties_of(("INNER_MULTI_DISPATCH", "%LMQ%a"), ("INNER_MULTI_QUEUE_OFFSET", str(number % 2)))
        offset, size = store.put(queue_offset=9 + number, properties=names)
        if unit is not None:
            store.unit("%LMQ%a", 0, unit, offset, size)
    return store.write()


def alone(root: Path) -> Path:
    store = HandmadeStore(root)
    store.put(dispatched=False)
    return store.write()


def test_spark_and_plain_audit_agree_on_every_store(spark: SparkSession, tmp_path: Path) -> None:
    golden = [path / "store" for path in golden_dirs()]
    stores = [*golden, *damaged_stores(tmp_path)]
    found = audit(spark, stores)
    for store, audited in zip(stores, found, strict=True):
        assert audited == audit_store(store), store
    codes = {finding.code for audited in found for finding in audited.findings}
    assert codes >= {
        "CQ_DUPLICATE",
        "CQ_EXT_UNREADABLE",
        "CQ_GAP",
        "CQ_LIGHT_RESTARTED",
        "CQ_MISSING",
        "CQ_NOT_CONTIGUOUS",
        "CQ_NO_QUEUES",
        "CQ_POINTS_NOWHERE",
        "CQ_SHORT_FILE",
        "CQ_WRONG_OFFSET",
        "CQ_WRONG_QUEUE",
        "CQ_WRONG_SIZE",
        "CQ_WRONG_TAGS_CODE",
    }
    sound = {str(path / "store") for path in undamaged()}
    assert {audited.verdict for audited in found if audited.store in sound} == {"holds"}


def test_stores_without_queues_need_no_join(spark: SparkSession, tmp_path: Path) -> None:
    [audited] = audit(spark, [alone(tmp_path / "store")])
    assert [finding.code for finding in audited.findings] == ["CP_MISSING", "CQ_NO_QUEUES"]


def test_tables_hold_the_rows_that_are_read_here(spark: SparkSession) -> None:
    plan = plan_store(0, golden_dirs()[-1] / "store")
    log = commit_log(spark, plan.log_parts)
    assert log.columns == list(LOG_COLUMNS)
    here = [row._asdict() for part in plan.log_parts for row in log_rows(part)]
    assert [row.asDict(recursive=True) for row in log.collect()] == here
    queues = consume_queue(spark, plan.queue_parts)
    assert queues.columns == list(QUEUE_COLUMNS)
    assert [tuple(row) for row in queues.collect()] == [row for part in plan.queue_parts for row in queue_rows(part)]


def test_missing_file_is_a_row_and_not_a_failed_job(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_store(0, copied("03-rollover-blanks-retention", tmp_path / "store"))
    plan.log_parts[2].path.unlink()
    rows = commit_log(spark, plan.log_parts).filter("error is not null").collect()
    assert [(row["file"], row["error_kind"]) for row in rows] == [(plan.log_parts[2].label, "FileNotFoundError")]


def test_workers_have_a_safe_path_and_our_interpreter(spark: SparkSession) -> None:
    import sys

    def ask(_: int) -> tuple[str, bool, str]:
        import sys

        return sys.executable, sys.flags.safe_path, sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]

    [said] = spark.sparkContext.parallelize([0], 1).map(ask).collect()
    assert said == (sys.executable, True, "pipeline.daemon")


# ---- campaigns ---------------------------------------------------------------------------------------------------


def test_spark_gives_the_rows_of_the_serial_run(spark: SparkSession, tmp_path: Path) -> None:
    shards = plan_shards(2, states=5, seed=3, settings=Settings())
    rows = campaign(spark, shards[:1], tmp_path)
    assert complete_shards(tmp_path) == {0}
    rows = campaign(spark, shards, tmp_path)
    files = sorted((tmp_path / "histories").glob("*.parquet"))
    assert len(files) == 2
    assert result_hash(rows) == result_hash(run_serial(shards))
    assert campaign(spark, shards, tmp_path) == read_rows(tmp_path, shards) == rows
    assert sorted((tmp_path / "histories").glob("*.parquet")) == files


# ---- sweeps: the rows of the simulator itself, in order, and a failing point as a row ----------------------------


def points() -> list[Any]:
    """Return a grid of twelve points; skip while there is no simulator."""
    pytest.importorskip("sim.sweep", reason="the simulator is not there")
    from impl.policy import AllocationPolicy, FlushDiskType, FlushPolicy
    from sim.device import PRESETS
    from sim.sweep import grid
    from sim.workload import OpenPoisson, Sizes

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
    from sim.sweep import run_point

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
