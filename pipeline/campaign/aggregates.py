"""Sum up a campaign, in Spark over its Parquet files and as plain functions of its rows.

Each is the differential test of the other. Small results are added up here, large ones in Spark.

    activation   per fault, rule and judge: armed, fired, mattered, summed over all histories and shards
    discovery    after each history: the states, disk images and recovered logs counted so far. Images are shared
                 between histories only as a whole: a history whose images were all seen before adds none
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.rows.schemas import HISTORY_COLUMNS, ddl
from tornpage.properties.explore.crashes.rows import Row, order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Counted", "activation", "counted_here", "counted_in_spark", "discovery"]

KINDS = ("armed", "fired", "mattered")
SEEN = {"images": "distinct_images", "recovered": "distinct_recovered"}


@dataclass(frozen=True, slots=True)
class Counted:
    """Activation and discovery of a campaign."""

    activation: list[dict[str, Any]]
    discovery: list[dict[str, int]]


def counted_here(rows: Sequence[Row]) -> Counted:
    """Add up the rows of a campaign."""
    return Counted(activation(rows), discovery(rows))


def counted_in_spark(spark: SparkSession, out: Path, shards: Sequence[int]) -> Counted:
    """Add up the rows of some shards in a campaign's directory."""
    rows = spark.read.schema(ddl(HISTORY_COLUMNS)).parquet(str(out.absolute() / "histories"))
    kept = rows.filter(rows["shard"].isin(list(shards)))
    return Counted(_activation_of(kept), _discovery_of(kept))


def activation(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a row per fault, rule and judge, in the order of their names."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for row in rows:
        for kind, count in counts.items():
            count.update(row[kind])
    names = sorted({name for count in counts.values() for name in count})
    return [{"fault": name, **{kind: count[name] for kind, count in counts.items()}} for name in names]


def _activation_of(rows: DataFrame) -> list[dict[str, Any]]:
    """Return the same as `activation`, from rows."""
    from pyspark.sql import functions as sql

    nothing = sql.lit(0).cast("bigint")
    counted = [
        rows.select(sql.explode(kind).alias("fault", "count")).select(
            "fault", *((sql.col("count") if each == kind else nothing).alias(each) for each in KINDS)
        )
        for kind in KINDS
    ]
    together = counted[0].unionAll(counted[1]).unionAll(counted[2])
    summed = together.groupBy("fault").agg(*(sql.sum(kind).alias(kind) for kind in KINDS))
    return [row.asDict() for row in summed.orderBy("fault").collect()]


def discovery(rows: Sequence[Row]) -> list[dict[str, int]]:
    """Return a row per history, in order, with the sums so far.

    They are `states`, `distinct_images` and `distinct_recovered`.
    """
    told: list[dict[str, int]] = []
    so_far = dict.fromkeys(("states", *SEEN.values()), 0)
    known: dict[str, set[str]] = {name: set() for name in SEEN}
    for row in sorted((row for row in rows if row["kind"] == "history"), key=order):
        so_far["states"] += row["states"]
        for name, total in SEEN.items():
            if row[f"{name}_hash"] not in known[name]:
                known[name].add(row[f"{name}_hash"])
                so_far[total] += row[name]
        told.append(dict(so_far))
    return told


def _discovery_of(rows: DataFrame) -> list[dict[str, int]]:
    """Return the same as `discovery`, from rows."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    number = sql.split("seed", ":")[1].cast("bigint")
    histories = rows.filter("kind = 'history'").withColumn("number", number)
    in_order = Window.orderBy("shard", "number").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    for name in SEEN:
        first = sql.row_number().over(Window.partitionBy(f"{name}_hash").orderBy("shard", "number")) == 1
        histories = histories.withColumn(f"new_{name}", sql.when(first, sql.col(name)).otherwise(0))
    told = histories.select(
        "shard",
        "number",
        sql.sum("states").over(in_order).alias("states"),
        *(sql.sum(f"new_{name}").over(in_order).alias(total) for name, total in SEEN.items()),
    )
    kept = told.orderBy("shard", "number").select("states", *SEEN.values())
    return [row.asDict() for row in kept.collect()]
