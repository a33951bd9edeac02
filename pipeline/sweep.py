"""A grid of the simulator in Spark tasks: one point, one row of plain values, in the order of the points.

A point that fails is a row with `error`, not a failed job. With `out` the rows are also written to `points.parquet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

    from sim.sweep import Point

__all__ = ["POINTS_PER_TASK_MAX", "Row", "sweep", "write_rows"]

Row = dict[str, Any]
"""The columns of `sim.sweep.run_point`; of a failed point `point` and `error`."""

POINTS_PER_TASK_MAX = 8


def sweep(spark: SparkSession, points: Sequence[Point], out: Path | None = None) -> list[Row]:
    """Run the points; return their rows in order. Equal points give the rows of `sim.sweep.run_point`."""
    if not points:
        return []
    planned = spark.sparkContext.broadcast(list(points))
    tasks = max(min(spark.sparkContext.defaultParallelism, len(points)), -(-len(points) // POINTS_PER_TASK_MAX))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for numbers in batches:
            chosen = numbers.column(0).to_pylist()
            rows = [json.dumps(_run(planned.value[number])) for number in chosen]
            yield pa.RecordBatch.from_pydict({"number": pa.array(chosen, pa.int64()), "row": rows})

    numbered = spark.range(0, len(points), 1, tasks).mapInArrow(task, "number bigint, row string").collect()
    rows = [json.loads(row["row"]) for row in sorted(numbered, key=lambda row: row["number"])]
    if out is not None:
        write_rows(rows, out)
    return rows


def write_rows(rows: Sequence[Row], out: Path) -> Path:
    """Write rows to `points.parquet` in `out`, which is made; return its path. Columns: the union over all rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    out.mkdir(parents=True, exist_ok=True)
    columns = dict.fromkeys(name for row in rows for name in row)
    path = out / "points.parquet"
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in columns}), path)
    return path


def _run(point: Point) -> Row:
    from sim.sweep import run_point

    try:
        return dict(run_point(point))
    except Exception as error:
        return {"point": point.index, "error": f"{type(error).__name__}: {error}"}
