"""Find the points of a sweep that no other point of the same device and load beats.

A point beats another if it is better in latency or in loss, and no worse in the other. The search exists in Spark and
as a plain function. Each is the differential test of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.rows.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pareto", "pareto_in_spark", "points_frame"]

ALIKE = ("device", "load")
"""Columns that are equal in comparable points."""
LATENCY = "put_p99_us"
LOSS = "at_risk_messages_p99"


def pareto(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the unbeaten points in their order; failed points are left out."""
    kinds: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if "error" not in row:
            kinds.setdefault(tuple(row[name] for name in ALIKE), []).append(row)
    return sorted(int(row["point"]) for some in kinds.values() for row in some if not any(_beats(o, row) for o in some))


def _beats(other: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    no_worse = other[LATENCY] <= row[LATENCY] and other[LOSS] <= row[LOSS]
    return bool(no_worse and (other[LATENCY] < row[LATENCY] or other[LOSS] < row[LOSS]))


def points_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return the points that did not fail as a frame, with the columns of `pareto`."""
    kinds = {"point": "bigint", **dict.fromkeys(ALIKE, "string"), LATENCY: "double", LOSS: "bigint"}
    done = [tuple(row[name] for name in kinds) for row in rows if "error" not in row]
    return spark.createDataFrame(done, ddl(kinds))


def pareto_in_spark(rows: DataFrame) -> list[int]:
    """Return the same as `pareto`, from a frame of points."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    least = rows.groupBy(*ALIKE, LATENCY).agg(sql.min(LOSS).alias(LOSS))
    quicker = Window.partitionBy(*ALIKE).orderBy(LATENCY).rowsBetween(Window.unboundedPreceding, -1)
    before = least.withColumn("before", sql.min(LOSS).over(quicker))
    front = before.filter(sql.col("before").isNull() | (sql.col(LOSS) < sql.col("before"))).drop("before")
    return sorted(row["point"] for row in rows.join(front, [*ALIKE, LATENCY, LOSS]).select("point").collect())
