"""Join log and index on Spark: keys without an entry, entries without a key, in runs.

`pipeline.audit.index_compare` makes the same comparison on purpose in another language. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from tornpage.pipeline.audit.findings import FINDINGS_MAX
from tornpage.pipeline.audit.index_compare import SECONDS_MAX, IndexSuspicion
from tornpage.pipeline.audit.queue_joins import chosen
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan
from tornpage.pipeline.rows.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["doubtful_keys", "entry_runs", "has_right_seconds", "index_suspicions_of", "judged_entries", "missing_keys"]

_PAIR = ["store", "offset", "hash"]
_PLACE = ["store", "file", "number"]


def index_suspicions_of(
    spark: SparkSession, tables: Mapping[str, DataFrame], plans: Sequence[StorePlan], facts: Sequence[StoreFacts]
) -> list[IndexSuspicion]:
    """Return what does not fit; `tables` are those of `pipeline.audit.work`.

    One join of everything finds the suspect keys. The rest works on these alone.
    """
    stores, files, gaps = _facts_tables(spark, plans, facts)
    all_entries = tables["entries"].join(f.broadcast(stores), "store").where("offset >= log_min").drop("log_min")
    with chosen(doubtful_keys(all_entries, tables["keys"], files)) as doubtful:
        entries = all_entries.join(doubtful, _PAIR, "left_semi")
        keys = tables["keys"].join(doubtful, _PAIR, "left_semi")
        records = tables["records"].join(doubtful.select("store", "offset"), ["store", "offset"], "left_semi")
        wrong = entry_runs(judged_entries(entries, keys, records, files))
        found = wrong.unionByName(missing_keys(keys, entries, gaps)).collect()
    return [IndexSuspicion(**row.asDict()) for row in found]


def doubtful_keys(entries: DataFrame, keys: DataFrame, files: DataFrame) -> DataFrame:
    """Return the keys of records that do not have exactly one entry with the right seconds.

    A key that a record has twice counts once.
    """
    asked = keys.groupBy(*_PAIR).agg(f.count("*").alias("asked"), f.first("timestamp").alias("timestamp"))
    said = (
        entries.join(f.broadcast(files), ["store", "file"])
        .groupBy(*_PAIR)
        .agg(*(f.first(name).alias(name) for name in ("begin", "seconds", "number")), f.count("*").alias("said"))
    )
    fits = (f.col("asked") == 1) & (f.col("said") == 1) & (f.col("hash") >= 0) & has_right_seconds()
    pairs = asked.join(said, _PAIR, "full_outer")
    return pairs.where(~f.coalesce(fits, f.lit(False))).select(*_PAIR)


def has_right_seconds() -> Column:
    """Return whether an entry states the seconds since the begin of its file.

    The seconds of entry 1 are not used.
    """
    begin = f.greatest(f.col("begin"), f.lit(0))  # so that no difference exceeds 64 bits, which would end the job
    since = f.floor((f.greatest(f.col("timestamp"), begin) - begin) / 1000)
    seconds = f.when(f.col("begin") > 0, f.least(f.lit(SECONDS_MAX), since)).otherwise(f.lit(0))
    return (f.col("number") == 1) | (f.col("seconds") == seconds)


def judged_entries(entries: DataFrame, keys: DataFrame, records: DataFrame, files: DataFrame) -> DataFrame:
    """Return the entries that do not fit, each with the code of its first error."""
    repeat = f.row_number().over(Window.partitionBy(*_PAIR).orderBy("file", "number"))
    asked = keys.groupBy(*_PAIR).agg(f.count("*").alias("asked"), f.first("timestamp").alias("timestamp"))
    known = entries.withColumn("repeat", repeat).join(asked, _PAIR, "left").join(f.broadcast(files), ["store", "file"])
    code = (
        f.when(f.col("asked").isNull(), "IX_WRONG_KEY")
        .when(f.col("repeat") > f.col("asked"), "IX_DUPLICATE")
        .when(~has_right_seconds(), "IX_WRONG_TIME")
    )
    wrong = known.withColumn("code", code).where(f.col("code").isNotNull()).select(*_PLACE, "offset", "code")
    begins = records.select("store", "offset", f.lit(True).alias("is_there"))
    nowhere = f.when(f.col("is_there").isNull(), "IX_POINTS_NOWHERE").otherwise(f.col("code"))
    return wrong.join(begins, ["store", "offset"], "left").withColumn("code", nowhere).drop("is_there")


def entry_runs(wrong: DataFrame) -> DataFrame:
    """Return consecutive entries of a file with one code as one.

    There is at most one more per code than is listed.
    """
    in_order = Window.partitionBy("store", "code", "file").orderBy("number")
    grouped = (
        wrong.withColumn("run", f.col("number") - f.row_number().over(in_order))
        .groupBy("store", "code", "file", "run")
        .agg(
            f.count("*").alias("items"),
            f.min_by("offset", "number").alias("offset"),
            f.min("number").alias("number"),
        )
    )
    return _listed(grouped, ["file", "number"])


def missing_keys(keys: DataFrame, entries: DataFrame, gaps: DataFrame) -> DataFrame:
    """Return consecutive keys of the log without an entry as one.

    An unreadable file may have some of them.
    """
    found = entries.where("hash >= 0").groupBy(*_PAIR).agg(f.count("*").alias("said"))
    repeat = f.row_number().over(Window.partitionBy(*_PAIR).orderBy("place"))
    missing = (
        keys.withColumn("repeat", repeat)
        .join(found, _PAIR, "left")
        .where(f.col("repeat") > f.coalesce(f.col("said"), f.lit(0)))
    )
    is_in_gap = (missing["store"] == gaps["store"]) & missing["offset"].between(gaps["begin"], gaps["end"])
    missing = missing.join(f.broadcast(gaps), is_in_gap, "left_anti")
    in_order = Window.partitionBy("store").orderBy("place")
    grouped = (
        missing.withColumn("run", f.col("place") - f.row_number().over(in_order))
        .groupBy("store", "run")
        .agg(f.count("*").alias("items"), f.min_by("offset", "place").alias("offset"))
        .select("store", f.lit("IX_KEY_MISSING").alias("code"), f.lit(-1).alias("file"), "offset", "items")
        .withColumn("number", f.lit(0).cast("long"))
    )
    return _listed(grouped, ["offset"])


def _listed(grouped: DataFrame, order: list[str]) -> DataFrame:
    rank = f.row_number().over(Window.partitionBy("store", "code").orderBy(*order))
    listed = grouped.withColumn("rank", rank).where(f.col("rank") <= FINDINGS_MAX + 1)
    return listed.select("store", "code", "file", "number", "offset", "items")


def _facts_tables(
    spark: SparkSession, plans: Sequence[StorePlan], facts: Sequence[StoreFacts]
) -> tuple[DataFrame, DataFrame, DataFrame]:
    stores = [(plan.number, fact.log_min) for plan, fact in zip(plans, facts, strict=True)]
    files = [(plan.number, part.number, part.header.begin_timestamp) for plan in plans for part in plan.index.parts]
    gaps = [(plan.number, begin, end) for plan in plans for begin, end in plan.index.gaps]
    return (
        spark.createDataFrame(stores, ddl({"store": "int", "log_min": "bigint"})),
        spark.createDataFrame(files, ddl({"store": "int", "file": "int", "begin": "bigint"})),
        spark.createDataFrame(gaps, ddl({"store": "int", "begin": "bigint", "end": "bigint"})),
    )
