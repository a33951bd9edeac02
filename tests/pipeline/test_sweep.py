"""Sweeps: the rows of the simulator itself, in order, and a failing point as a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.sweep import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


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
