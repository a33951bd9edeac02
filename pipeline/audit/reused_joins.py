"""Recognise topics that were deleted and used again, by joins.

The rule is that of `pipeline.reused_topics`, in another language on purpose. Only topics with a record that lacks its
unit are looked at, so that a sound store costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tornpage.pipeline.audit.suspicions import Suspicion

__all__ = ["reused_topics_of", "without_reused_topics"]

_TOPIC = ["store", "topic"]


def reused_topics_of(tables: Mapping[str, DataFrame], suspicions: Iterable[Suspicion]) -> dict[tuple[int, str], int]:
    """Return the offset of the first record after the deletion, by store and topic."""
    topics = {(each.store, each.topic) for each in suspicions if each.code == "CQ_MISSING"}
    if not topics:
        return {}
    wanted = tables["wanted"].where(~f.col("is_light") & _is_one_of(topics))
    units = tables["units"].select(
        "store",
        "topic",
        "queue_id",
        "offset",
        f.col("queue_offset").alias("wanted_offset"),
        f.col("size").alias("wanted_size"),
    )
    place = ["store", "topic", "queue_id", "offset", "wanted_offset", "wanted_size"]
    first = wanted.join(units, place, "left_semi").groupBy(*_TOPIC).agg(f.min("offset").alias("first"))
    is_old = f.col("offset") < f.col("first")
    queues = (
        wanted.join(f.broadcast(first), _TOPIC)
        .groupBy(*_TOPIC, "queue_id", "first")
        .agg(
            f.max(f.when(is_old, f.col("wanted_offset"))).alias("greatest"),
            f.min(f.when(~is_old, f.col("wanted_offset"))).alias("least"),
        )
    )
    found = queues.where("least = 0 and least <= greatest").select(*_TOPIC, "first").distinct().collect()
    return {(row["store"], row["topic"]): row["first"] for row in found}


def without_reused_topics(
    tables: Mapping[str, DataFrame], reused: Mapping[tuple[int, str], int]
) -> dict[str, DataFrame]:
    """Return the tables without the units that records of deleted topics ask for."""
    is_deleted = reduce(
        or_,
        (
            (f.col("store") == store) & (f.col("topic") == topic) & (f.col("offset") < first)
            for (store, topic), first in reused.items()
        ),
    )
    return {**tables, "wanted": tables["wanted"].where(~is_deleted)}


def _is_one_of(topics: Iterable[tuple[int, str]]) -> Column:
    return reduce(or_, ((f.col("store") == store) & (f.col("topic") == topic) for store, topic in topics))
