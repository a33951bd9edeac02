"""Audits on Spark: many stores side by side, or one store of any size by joins.

The directories of the stores and the work directory must be visible to the driver and to all workers. Answers are in
the order of the stores and equal to those of `pipeline.audit.audit.audit_store`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tornpage.pipeline.audit.audit import StoreAudit, audit_plan, audited
from tornpage.pipeline.audit.index_compare import IndexSuspicion
from tornpage.pipeline.audit.index_joins import index_suspicions_of
from tornpage.pipeline.audit.queue_joins import suspicions_of
from tornpage.pipeline.audit.reused_joins import reused_topics_of, without_reused_topics
from tornpage.pipeline.audit.reused_topics import reused_finding
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan, facts_of
from tornpage.pipeline.audit.suspicions import Suspicion
from tornpage.pipeline.audit.work import (
    Comparison,
    Outline,
    do_task,
    keep_comparison,
    kept_comparison,
    outlines,
    plan_tasks,
)
from tornpage.pipeline.rows.parquet_rows import TABLES
from tornpage.pipeline.rows.schemas import ddl
from tornpage.pipeline.spark.agreement import differing, missing_module, require_seen, unseen, versions
from tornpage.pipeline.spark.jobs import reason_of, spark_failures
from tornpage.pipeline.spark.session import JobFailed, SparkUnavailable, kept_log
from tornpage.pipeline.spark.watching import Stage, unwatched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["JoinedAudit", "audit_each", "audit_joined"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class JoinedAudit:
    """Audits with their costs: seconds of reading and of joining, tasks done and skipped."""

    audits: list[StoreAudit]
    figures: dict[str, float]


def audit_each(spark: SparkSession, plans: Sequence[StorePlan], stage: Stage = unwatched) -> list[StoreAudit]:
    """Audit stores in tasks, each whole in the memory of one worker."""
    stage("stores", len(plans))
    return _in_tasks(spark, list(plans), audit_plan, _stores(plans))


def audit_joined(spark: SparkSession, plans: Sequence[StorePlan], work: Path, stage: Stage = unwatched) -> JoinedAudit:
    """Audit stores by joins over the rows that tasks write to `work`, prepared by `open_work`."""
    tasks = [task for plan in plans for task in plan_tasks(plan)]
    started = time.perf_counter()
    stage("reading", len(tasks))
    done = _in_tasks(spark, tasks, lambda task: do_task(task, work), [*_stores(plans), work])
    read = time.perf_counter()
    found = outlines(work, tasks)
    outline = [found.get(plan.number, Outline([], [], [])) for plan in plans]
    facts = [facts_of(plan, each.log, each.queues) for plan, each in zip(plans, outline, strict=True)]
    comparison = kept_comparison(work, tasks, facts)
    is_kept = comparison is not None
    if comparison is None:
        try:
            comparison = _compared(spark, {name: _table(spark, work, name) for name in TABLES}, plans, facts, stage)
        except spark_failures() as error:
            raise _one_line(error) from error
        keep_comparison(comparison, work, tasks, facts)
    for number, topic, offset in comparison.reused:
        at = [plan.number for plan in plans].index(number)
        facts[at].findings.append(reused_finding(plans[at].name, topic, offset))
    suspicions: dict[int, list[Suspicion]] = defaultdict(list)
    index: dict[int, list[IndexSuspicion]] = defaultdict(list)
    for queue_suspicion in comparison.queues:
        suspicions[queue_suspicion.store].append(queue_suspicion)
    for index_suspicion in comparison.index:
        index[index_suspicion.store].append(index_suspicion)
    audits = [
        audited(plan, fact, each.queues, each.index, suspicions[plan.number], index[plan.number])
        for plan, fact, each in zip(plans, facts, outline, strict=True)
    ]
    figures = {
        "read_s": read - started,
        "join_s": time.perf_counter() - read,
        "tasks": len(tasks),
        "tasks_done_before": done.count(False),
        "joins_done_before": int(is_kept),
    }
    return JoinedAudit(audits, figures)


def _compared(
    spark: SparkSession,
    tables: dict[str, DataFrame],
    plans: Sequence[StorePlan],
    facts: Sequence[StoreFacts],
    stage: Stage,
) -> Comparison:
    """Join log, queues and index of all stores."""
    queues: list[Suspicion] = []
    reused: dict[tuple[int, str], int] = {}
    if any(plan.has_queues for plan in plans):
        stage("comparing queues", 0)
        queues = suspicions_of(spark, tables, plans, facts)
        reused = reused_topics_of(tables, queues)
        if reused:
            queues = suspicions_of(spark, without_reused_topics(tables, reused), plans, facts)
    stage("comparing the index", 0)
    index = index_suspicions_of(spark, tables, plans, facts)
    return Comparison(queues, index, [(number, topic, at) for (number, topic), at in sorted(reused.items())])


def _one_line(error: Exception) -> SparkUnavailable:
    """Return the cause of a failed job, where its log is, and the remedy."""
    if (other := missing_module(error) or unseen(error)) is not None:
        return other
    log = kept_log()
    place = "" if log is None else f"; the log of Spark's Java process is {log}"
    return JobFailed(f"the job failed: {reason_of(error)}{place}; with --work and --resume the next run continues it")


def _table(spark: SparkSession, work: Path, name: str) -> DataFrame:
    return spark.read.schema(ddl(TABLES[name])).parquet(str(work / name))


def _stores(plans: Sequence[StorePlan]) -> list[Path]:
    return [plan.view.store_dir for plan in plans]


def _in_tasks(
    spark: SparkSession, tasks: list[Task], do: Callable[[Task], Answer], places: Sequence[Path] = ()
) -> list[Answer]:
    """Run each task in a worker, one Spark task each; return the answers in order.

    Raises VersionsDiffer, PathUnseen if a worker does not see one of the directories `places`, and JobFailed.
    """
    if not tasks:
        return []
    wanted = versions()

    def run(numbers: Iterable[int]) -> Iterator[tuple[int, Any]]:
        todo, expected = planned.value
        require_seen(places)
        for number in numbers:
            mine = versions()
            yield (number, do(todo[number])) if differing(mine, expected) is None else (-1, mine)

    try:
        planned = spark.sparkContext.broadcast((tasks, wanted))
        said = dict(spark.sparkContext.parallelize(range(len(tasks)), len(tasks)).mapPartitions(run).collect())
    except spark_failures() as error:
        raise _one_line(error) from error
    if -1 in said:
        raise differing(said[-1], wanted) or AssertionError("equal versions")
    return [said[number] for number in range(len(tasks))]
