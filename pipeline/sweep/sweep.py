"""Run a grid of the simulator in Spark tasks: one row of plain values per point.

Rows are in the order of the points. A point that fails, or whose worker dies, is a row with `error`, not a failed job.
This process writes the output directory, which workers need not see: `sweep.json` (the grid), `points/NNNNNN.json` (the
row of each finished point), and `points.parquet` (all rows). Finished points are not run again, except those with an
error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.rows.outputs import OutputTaken, claim, read_json, whole
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.pipeline.tables.described import SWEEP_TABLE, described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tornpage.sim.sweep import Point

__all__ = ["POINTS_PER_TASK_MAX", "Row", "prepare_sweep", "stored_points", "sweep", "write_rows"]

Row = dict[str, Any]
"""The columns of `sim.sweep.run_point`; a failed point has `point` and `error`."""

POINTS_PER_TASK_MAX = 8

Run = Callable[[Sequence["Point"]], list[Row]]
"""The work on some points; a function of a module, since workers import it by its name."""


def run_some(points: Sequence[Point]) -> list[Row]:
    """Run points one after the other; return a row for each."""
    return [_run(point) for point in points]


def sweep(
    spark: SparkSession,
    points: Sequence[Point],
    out: Path | None = None,
    *,
    run: Run = run_some,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Row]:
    """Run the points that `out` does not have yet; return the rows of all, in order.

    Equal points give the rows of `sim.sweep.run_point`. `progress` is called with the number of finished points. Raises
    SparkUnavailable, OutputTaken if the content of `out` cannot be read, OSError, and the errors of Spark.
    """
    rows = {} if out is None else {row["point"]: row for row in stored_points(out) if "error" not in row}
    todo = [point for point in points if point.index not in rows]
    per_task = max(1, min(POINTS_PER_TASK_MAX, -(-len(todo) // max(1, spark.sparkContext.defaultParallelism))))

    def keep(some: Sequence[Point], answer: list[Row] | Death) -> None:
        if isinstance(answer, Death):
            answer = [{"point": point.index, "error": f"the worker died: {answer.how}"} for point in some]
        rows.update({row["point"]: row for row in answer})
        progress(len(rows))
        if out is not None:
            for row in answer:
                _write_point(row, out / "points" / f"{row['point']:06}.json")

    do_each(spark, [todo[start : start + per_task] for start in range(0, len(todo), per_task)], run, keep)
    found = [rows[point.index] for point in points]
    if out is not None and found:
        write_rows(found, out)
    return found


def prepare_sweep(out: Path, points: Sequence[Point], *, resume: bool) -> None:
    """Make the directory, or check that it belongs to the same grid.

    Raises OutputTaken and OSError.
    """
    asked = {"points": len(points), "grid": hashlib.sha256(repr(list(points)).encode()).hexdigest()}
    claim(out, asked, name="sweep.json", what="sweep", resume=resume)


def stored_points(out: Path) -> list[Row]:
    """Return the rows of the points that have ended so far, in order.

    Raises OutputTaken and OSError.
    """
    paths = [path for path in (out / "points").glob("*.json") if path.stem.isdecimal()]
    return [_stored_point(path) for path in sorted(paths, key=lambda path: int(path.stem))]


def _stored_point(path: Path) -> Row:
    try:
        row: Row = read_json(path)
        if row["point"] != int(path.stem):
            raise ValueError("it belongs to another point")
    except (KeyError, TypeError) as error:
        raise OutputTaken(f"{path} is not a row of a point; remove it, and --resume runs the point again") from error
    except ValueError as error:
        raise OutputTaken(f"{path} cannot be read: {error}; remove it, and --resume runs the point again") from error
    return row


def write_rows(rows: Sequence[Row], out: Path) -> Path:
    """Write rows to `points.parquet` in `out`, which is made; return its path.

    Columns are the union over all rows.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    columns = dict.fromkeys(name for row in rows for name in row)
    path = out / "points.parquet"
    with whole(path) as unfinished:
        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
        pq.write_table(table.cast(described(table.schema, SWEEP_TABLE)), unfinished)
    return path


def _write_point(row: Row, path: Path) -> None:
    with whole(path) as unfinished:
        unfinished.write_text(json.dumps(row))


def _run(point: Point) -> Row:
    from tornpage.sim.sweep import run_point

    try:
        return dict(run_point(point))
    except Exception as error:
        return {"point": point.index, "error": f"{type(error).__name__}: {error}"}
