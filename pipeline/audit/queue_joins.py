"""Join log and queues on Spark: units and records that do not fit, in runs.

Each function returns one table, and `suspicions_of` combines them. `pipeline.audit.queue_compare` makes the same
comparison on purpose in another language. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from tornpage.pipeline.audit.findings import FINDINGS_MAX
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan
from tornpage.pipeline.audit.suspicions import Suspicion
from tornpage.pipeline.rows.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "chosen",
    "current_units",
    "doubtful_records",
    "light_restarts",
    "missing_units",
    "runs",
    "strange_units",
    "suspicions_of",
    "usual_delays",
    "wrong_units",
]

QUEUE = ["store", "topic", "queue_id"]
_SUSPICION = [*QUEUE, "code", "queue_offset", "offset", "found", "expected", "other"]
_BROADCAST_ROWS = 200_000
_EXCUSABLE = ("CQ_MISSING", "CQ_WRONG_OFFSET", "CQ_DUPLICATE")


def suspicions_of(
    spark: SparkSession, tables: Mapping[str, DataFrame], plans: Sequence[StorePlan], facts: Sequence[StoreFacts]
) -> list[Suspicion]:
    """Return the runs of units and records that do not fit.

    `tables` are those of `pipeline.audit.work`. One join of everything finds the suspect records. The rest works on
    these alone.
    """
    store_facts, queue_facts = _facts_tables(spark, plans, facts)
    audited = f.col("store").isin([plan.number for plan in plans if plan.has_queues])
    all_expected = tables["wanted"].where(audited)
    all_units = current_units(tables["units"], queue_facts)
    with chosen(doubtful_records(all_units, all_expected)) as doubtful:
        key = [*QUEUE, "offset"]
        units = all_units.join(doubtful, key, "left_semi")
        expected = all_expected.join(doubtful, key, "left_semi")
        records = tables["records"].join(doubtful.select("store", "offset"), ["store", "offset"], "left_semi")
        strange = strange_units(units, expected, records)
        single = missing_units(expected, units).unionByName(strange).unionByName(wrong_units(units, expected))
        found = runs(single, store_facts, queue_facts, light_restarts(all_expected)).collect()
    return [Suspicion(**row.asDict()) for row in found]


@contextmanager
def chosen(rows: DataFrame) -> Iterator[DataFrame]:
    """Compute some rows once, on disk; few of them are sent to all workers for a join."""
    kept = rows.persist(StorageLevel.DISK_ONLY)
    try:
        yield f.broadcast(kept) if kept.count() <= _BROADCAST_ROWS else kept
    finally:
        kept.unpersist()


def doubtful_records(units: DataFrame, expected: DataFrame) -> DataFrame:
    """Return queue and offset of records whose unit is missing, unwanted, or different.

    Of two units of one record one has the wrong queue offset, so both are checked. The due time of a delayed message is
    judged by the others of its level, so all of these are checked.
    """
    key = [*QUEUE, "offset"]
    fits = (
        (f.col("size") == f.col("wanted_size"))
        & (f.col("queue_offset") == f.col("wanted_offset"))
        & (f.col("tags_code") == f.col("wanted_code"))
        & ~f.col("is_delayed")
    )
    pairs = units.join(expected, key, "full_outer")
    return pairs.where(~f.coalesce(fits, f.lit(False))).select(*key).distinct()


def current_units(units: DataFrame, queue_facts: DataFrame) -> DataFrame:
    """Return the units whose records are still in the log."""
    columns = [*QUEUE, "offset", "queue_offset", "size", "tags_code", "ext_address"]
    known = units.join(f.broadcast(queue_facts), QUEUE)
    return known.where(f.col("queue_offset") >= f.col("first_current")).select(*columns)


def missing_units(expected: DataFrame, units: DataFrame) -> DataFrame:
    """Return the records without a unit."""
    missing = expected.join(units.select(*QUEUE, "offset"), [*QUEUE, "offset"], "left_anti")
    return _suspicion(missing.withColumn("queue_offset", f.col("wanted_offset")), f.lit("CQ_MISSING"))


def strange_units(units: DataFrame, expected: DataFrame, records: DataFrame) -> DataFrame:
    """Return the units that point to no record, or to a record of another queue."""
    strange = units.join(expected.select(*QUEUE, "offset"), [*QUEUE, "offset"], "left_anti")
    owner = f.concat_ws("/", f.col("topic"), f.col("queue_id"))
    owners = records.select("store", "offset", owner.alias("owner"))
    is_own = f.col("owner") == f.concat_ws("/", f.col("topic"), f.col("queue_id"))
    code = f.when(f.col("owner").isNull(), "CQ_POINTS_NOWHERE").when(is_own, "CQ_UNWANTED").otherwise("CQ_WRONG_QUEUE")
    other = f.when(~is_own, f.col("owner"))
    return _suspicion(strange.join(owners, ["store", "offset"], "left"), code, other=other)


def wrong_units(units: DataFrame, expected: DataFrame) -> DataFrame:
    """Return the units that differ from their record in their own queue."""
    pairs = units.join(expected, [*QUEUE, "offset"])
    wrong_size = f.col("size") != f.col("wanted_size")
    wrong_offset = f.col("queue_offset") != f.col("wanted_offset")
    best_first = Window.partitionBy(*QUEUE, "offset").orderBy(wrong_size, wrong_offset, "queue_offset")
    due = f.try_add("timestamp", "delay_ms")
    wanted_code = f.when(f.col("is_delayed"), due).otherwise(f.col("wanted_code"))
    judged = (
        pairs.withColumn("rank", f.row_number().over(best_first))
        .join(f.broadcast(usual_delays(pairs)), QUEUE, "left")
        .withColumn("wanted_code", wanted_code)
    )
    code = (
        f.when(f.col("rank") > 1, "CQ_DUPLICATE")
        .when(wrong_size, "CQ_WRONG_SIZE")
        .when(wrong_offset, "CQ_WRONG_OFFSET")
        .when(f.col("tags_code").isNull(), "CQ_EXT_UNREADABLE")
        .when(~f.col("tags_code").eqNullSafe(f.col("wanted_code")), "CQ_WRONG_TAGS_CODE")
    )
    sides = {
        "CQ_WRONG_SIZE": ("size", "wanted_size"),
        "CQ_WRONG_OFFSET": ("queue_offset", "wanted_offset"),
        "CQ_WRONG_TAGS_CODE": ("tags_code", "wanted_code"),
    }
    found, wanted = f.when(f.col("code") == "CQ_EXT_UNREADABLE", f.col("ext_address")), f.when(f.lit(False), 0)
    for name, (one, other) in sides.items():
        found = found.when(f.col("code") == name, f.col(one).cast("long"))
        wanted = wanted.when(f.col("code") == name, f.col(other).cast("long"))
    wrong = judged.withColumn("code", code).where(f.col("code").isNotNull())
    return _suspicion(wrong, f.col("code"), found=found, expected=wanted)


def usual_delays(pairs: DataFrame) -> DataFrame:
    """Return the delay that most units of a delay level's queue have.

    It is in whole seconds, and not stored.
    """
    delay = f.try_subtract("tags_code", "timestamp")  # null where it exceeds 64 bits, which would end the job
    counted = pairs.where(f.col("is_delayed")).groupBy(*QUEUE, delay.alias("delay_ms")).count()
    possible = counted.where((f.col("delay_ms") >= 0) & (f.col("delay_ms") % 1000 == 0))
    commonest = f.min_by("delay_ms", f.struct(-f.col("count"), f.col("delay_ms")))
    return possible.groupBy(*QUEUE).agg(commonest.alias("delay_ms"))


def light_restarts(expected: DataFrame) -> DataFrame:
    """Return per light queue the physical offset from which its offsets stop rising."""
    before = Window.partitionBy(*QUEUE).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    highest = f.max("wanted_offset").over(before)
    light = expected.where("is_light").withColumn("highest", highest)
    return light.where("wanted_offset <= highest").groupBy(*QUEUE).agg(f.min("offset").alias("restarted_at"))


def runs(single: DataFrame, store_facts: DataFrame, queue_facts: DataFrame, restarts: DataFrame) -> DataFrame:
    """Return suspicions of one kind with consecutive queue offsets as one.

    There is at most one more per code than is listed. Those that are damage come first.
    """
    ends = queue_facts.select(*QUEUE, "next_offset")
    after_last = f.col("queue_offset") >= f.coalesce(f.col("next_offset"), f.lit(0))
    beyond = (
        f.when(f.col("code") == "CQ_MISSING", after_last)
        .when(f.col("code") == "CQ_POINTS_NOWHERE", f.col("offset") >= f.col("log_end"))
        .otherwise(f.lit(False))
    )
    excused = f.col("code").isin(*_EXCUSABLE) & f.coalesce(f.col("offset") >= f.col("restarted_at"), f.lit(False))
    marked = (
        single.join(f.broadcast(store_facts), "store")
        .join(f.broadcast(ends), QUEUE, "left")
        .join(f.broadcast(restarts), QUEUE, "left")
        .select(
            *_SUSPICION,
            (f.col("offset") >= f.col("settled_end")).alias("late"),
            beyond.alias("beyond"),
            excused.alias("excused"),
            (excused | f.when(f.col("may_move"), beyond).otherwise(f.col("offset") >= f.col("settled_end"))).alias(
                "mild"
            ),
        )
    )
    kind = [*QUEUE, "code", "late", "beyond", "excused", "mild", "other"]
    number = f.row_number().over(Window.partitionBy(*kind).orderBy("queue_offset", "offset"))
    first = [f.min_by(name, f.struct("queue_offset", "offset")).alias(name) for name in ("offset", "found", "expected")]
    grouped = (
        marked.withColumn("run", f.col("queue_offset").cast("decimal(20,0)") - number)
        .groupBy(*kind, "run")
        .agg(f.count("*").alias("items"), *first, f.min("queue_offset").alias("queue_offset"))
    )
    in_order = Window.partitionBy("store", "code").orderBy("mild", "topic", "queue_id", "queue_offset", "late", "run")
    listed = grouped.withColumn("place", f.row_number().over(in_order)).where(f.col("place") <= FINDINGS_MAX + 1)
    return listed.select(
        *QUEUE, "code", "queue_offset", "items", "offset", "late", "beyond", "excused", "found", "expected", "other"
    )


def _suspicion(rows: DataFrame, code: Column, **columns: Column) -> DataFrame:
    """Return rows as suspicions about single units or records."""
    nothing: dict[str, Any] = {"found": "long", "expected": "long", "other": "string"}
    rest = [columns.get(name, f.lit(None)).cast(kind).alias(name) for name, kind in nothing.items()]
    return rows.select(*QUEUE, code.alias("code"), "queue_offset", "offset", *rest)


def _facts_tables(
    spark: SparkSession, plans: Sequence[StorePlan], facts: Sequence[StoreFacts]
) -> tuple[DataFrame, DataFrame]:
    stores = [
        (plan.number, fact.log_end, fact.settled_end, fact.may_move) for plan, fact in zip(plans, facts, strict=True)
    ]
    queues = [
        (plan.number, *key, fact.first_current.get(key), next_offset)
        for plan, fact in zip(plans, facts, strict=True)
        for key, next_offset in fact.next_offset.items()
    ]
    store_columns = {"store": "int", "log_end": "bigint", "settled_end": "bigint", "may_move": "boolean"}
    queue_columns = {
        "store": "int",
        "topic": "string",
        "queue_id": "int",
        "first_current": "bigint",
        "next_offset": "bigint",
    }
    return spark.createDataFrame(stores, ddl(store_columns)), spark.createDataFrame(queues, ddl(queue_columns))
