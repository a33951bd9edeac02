"""Query the store with Spark.

Each query returns a number of messages, which is compared with that of the walk. Most queries read through
`spark.read.format`, the others through `read_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tornpage.pipeline.readers.sources import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ONE_TOPIC", "QUERIES", "Query"]

_LOG, _QUEUES, _INDEX = "rocketmq-commitlog", "rocketmq-consumequeue", "rocketmq-index"
ONE_TOPIC = "Topic07"
_MINUTE_MS = 60_000

Query = Callable[["SparkSession", str, Path], int]
"""Takes the session, the path of the store, and a directory for files; returns a number of messages."""


def _log(spark: SparkSession, store: str, columns: str = "") -> DataFrame:
    reader = spark.read.format(_LOG)
    return (reader.option("columns", columns) if columns else reader).load(store)


def _count_offsets(spark: SparkSession, store: str, _: Path) -> int:
    return _log(spark, store, "offset").count()


def _count_usual(spark: SparkSession, store: str, _: Path) -> int:
    return _log(spark, store).count()


def _sum_of_counts(grouped: DataFrame) -> int:
    return sum(row["count"] for row in grouped.collect())


def _by_topic(spark: SparkSession, store: str, _: Path) -> int:
    return _sum_of_counts(_log(spark, store, "topic").groupBy("topic").count())


def _by_topic_bulk(spark: SparkSession, store: str, _: Path) -> int:
    return _sum_of_counts(read_table(spark, _LOG, store, columns="topic").groupBy("topic").count())


def _by_topic_usual(spark: SparkSession, store: str, _: Path) -> int:
    return _sum_of_counts(_log(spark, store).groupBy("topic").count())


def _topic_sums(spark: SparkSession, store: str, _: Path) -> int:
    sums = read_table(spark, _LOG, store, table="topics", columns="topic,messages")
    return sum(row["sum(messages)"] for row in sums.groupBy("topic").agg({"messages": "sum"}).collect())


def _by_minute(spark: SparkSession, store: str, _: Path) -> int:
    rows = _log(spark, store, "topic,store_timestamp")
    minute = (rows["store_timestamp"] / _MINUTE_MS).cast("bigint").alias("minute")
    return _sum_of_counts(rows.groupBy("topic", minute).count())


def _join(spark: SparkSession, store: str, _: Path) -> int:
    queues = spark.read.format(_QUEUES).option("columns", "offset,size").load(store)
    return _log(spark, store, "offset,size").join(queues, ["offset", "size"]).count()


def _one_topic(spark: SparkSession, store: str, _: Path) -> int:
    return _log(spark, store).where(f"topic = '{ONE_TOPIC}'").count()


def _one_topic_by_queues(spark: SparkSession, store: str, _: Path) -> int:
    return spark.read.format(_QUEUES).load(store).where(f"topic = '{ONE_TOPIC}'").count()


def _parquet(spark: SparkSession, table: DataFrame, place: Path) -> int:
    table.write.mode("overwrite").parquet(str(place / "rows"))
    return spark.read.parquet(str(place / "rows")).count()


def _parquet_usual(spark: SparkSession, store: str, place: Path) -> int:
    return _parquet(spark, _log(spark, store), place)


_WITH_BODIES = "offset,size,topic,queue_id,queue_offset,store_timestamp,keys,properties,body"


def _parquet_bodies(spark: SparkSession, store: str, place: Path) -> int:
    return _parquet(spark, _log(spark, store, _WITH_BODIES), place)


def _parquet_bodies_bulk(spark: SparkSession, store: str, place: Path) -> int:
    return _parquet(spark, read_table(spark, _LOG, store, columns=_WITH_BODIES), place)


def _bodies(spark: SparkSession, store: str, _: Path) -> int:
    from pyspark.sql import functions as F  # noqa: N812

    rows = read_table(spark, _LOG, store, columns="body,body_size")
    found = rows.agg(F.count("body"), F.sum(F.length("body") - F.col("body_size"))).collect()[0]
    return int(found[0]) if found[1] == 0 else -1


def _units(spark: SparkSession, store: str, _: Path) -> int:
    return spark.read.format(_QUEUES).load(store).count()


def _entries(spark: SparkSession, store: str, _: Path) -> int:
    return spark.read.format(_INDEX).load(store).count()


def _stream(spark: SparkSession, store: str, place: Path) -> int:
    """Write the log as a stream, once up to its end, and count the rows written."""
    rows, state = str(place / "streamed"), str(place / "state")
    read = spark.readStream.format(_LOG).option("columns", "offset,topic").load(store)
    kept = read.writeStream.format("parquet").option("path", rows).option("checkpointLocation", state)
    kept.trigger(availableNow=True).start().awaitTermination()
    return spark.read.parquet(rows).distinct().count()


QUERIES: Mapping[str, Query] = {
    "count_offsets": _count_offsets,
    "by_topic": _by_topic,
    "by_topic_bulk": _by_topic_bulk,
    "topic_sums": _topic_sums,
    "by_minute": _by_minute,
    "join": _join,
    "parquet_usual": _parquet_usual,
    "count_usual": _count_usual,
    "by_topic_usual": _by_topic_usual,
    "one_topic": _one_topic,
    "one_topic_by_queues": _one_topic_by_queues,
    "bodies": _bodies,
    "parquet_bodies": _parquet_bodies,
    "parquet_bodies_bulk": _parquet_bodies_bulk,
    "units": _units,
    "entries": _entries,
    "stream": _stream,
}
