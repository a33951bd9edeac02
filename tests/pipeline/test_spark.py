"""Test that the audit on Spark equals the one without Spark.

The stores are sound, damaged and made-up.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.pipeline.handmade import (
    DUE_MS,
    STORED_MS,
    HandmadeStore,
    copied,
    damage_after_tears,
    overwrite,
    undamaged,
    write_deleted,
)
from tests.support.pipeline.plants import PLANTS, plant
from tests.support.properties.handmade import golden_dirs, properties_of
from tornpage.pipeline.audit.audit import audit_plan
from tornpage.pipeline.audit.audit_spark import audit_each, audit_joined
from tornpage.pipeline.audit.queue_joins import doubtful_records, missing_units, strange_units
from tornpage.pipeline.audit.stores import plan_store
from tornpage.pipeline.audit.work import do_task, open_work, plan_tasks
from tornpage.pipeline.rows.dispatch import SCHEDULE_TOPIC
from tornpage.pipeline.rows.parquet_rows import TABLES
from tornpage.pipeline.rows.schemas import ddl
from tornpage.pipeline.spark.interrupts import apart
from tornpage.pipeline.spark.watching import watched
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import iter_items, look

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.deep  # its joins take a minute and more

# ---- the audit ---------------------------------------------------------------------------------------------------


def damaged_stores(root: Path) -> list[Path]:
    """Return stores with every finding code of queues."""
    stores = []
    for number, unit in enumerate((struct.pack(">qiq", 1 << 40, 9, 0), bytes(20), struct.pack(">qiq", 0, 5, 9))):
        stores.append(copied("01-plain-ascii", root / f"unit-{number}"))
        overwrite(stores[-1] / "consumequeue/TopicTest/0/00000000000000000000", 140, unit)
    stores.append(copied("01-plain-ascii", root / "page"))
    overwrite(stores[-1] / "commitlog/00000000000000000000", 4096, bytes(4096))
    stores.append(copied("03-rollover-blanks-retention", root / "files"))
    queue = stores[-1] / "consumequeue/RollTopic/1"
    (queue / "00000000000000000800").unlink()
    (queue / "00000000000000000400").write_bytes(bytes(201))
    (stores[-1] / "commitlog/00000000000000098304").write_bytes(bytes(5000))
    return [*stores, made_up(root / "made-up"), alone(root / "alone")]


def made_up(root: Path) -> Path:
    store = HandmadeStore(root)
    own = [store.put(queue_offset=number) for number in range(9)]
    other = store.put("U", 1, 0, tags_code=-(2**63))
    store.unit("T", 0, 1, own[1][0], own[1][1] + 1)
    store.unit("T", 0, 2, *other)
    store.unit("T", 0, 3, *own[0])
    store.unit("T", 0, 4, *own[5])
    store.unit("T", 0, 5, *own[4])
    for number in range(4):
        due = STORED_MS + DUE_MS + (1 if number == 2 else 0)
        store.put(SCHEDULE_TOPIC, 2, number, properties=properties_of(("DELAY", "3")), tags_code=due)
    for number, unit in enumerate((0, 1, 2, None)):
        names = properties_of(("INNER_MULTI_DISPATCH", "%LMQ%a"), ("INNER_MULTI_QUEUE_OFFSET", str(number % 2)))
        offset, size = store.put(queue_offset=9 + number, properties=names)
        if unit is not None:
            store.unit("%LMQ%a", 0, unit, offset, size)
    return store.write()


def alone(root: Path) -> Path:
    store = HandmadeStore(root)
    store.put(dispatched=False)
    return store.write()


PLANT_NUMBERS = {kind: number for number, kind in enumerate(PLANTS)}


def planted_stores(root: Path) -> list[Path]:
    """Return a store for each kind of damage, at a place drawn with a fixed seed."""
    stores = []
    for number, kind in enumerate(PLANTS):
        name = ("01-plain-ascii", "03-rollover-blanks-retention", "06-index-files-collisions")[number % 3]
        stores.append(copied(name, root / f"planted-{number}"))
        plant(stores[-1], kind, random.Random(number).randrange)
    return stores


def of_deleted_topics(root: Path) -> Path:
    """Return a store with a deleted topic that has a unit again.

    It also has half of a transaction with a unit.
    """
    store = HandmadeStore(root)
    store.put("Gone", 0, 0, dispatched=False)
    store.put("Gone", 0, 1)
    store.put("T", 0, 0, sys_flag=4)
    offset, _ = store.put("Gone", 0, 0)
    write_deleted(store.write(), {"Gone": offset})
    return root


def many_keys(root: Path) -> Path:
    """Return a store whose records have keys, one of them twice, and no index."""
    store = HandmadeStore(root)
    for number in range(3):
        store.put(queue_offset=number, properties=properties_of(("KEYS", "a b a")))
    return store.write()


def far_numbers(root: Path) -> Path:
    """Return a store with differences that need more than 64 bits.

    They are between times, queue offsets and due times.
    """
    store = HandmadeStore(root)
    delayed = {"topic": SCHEDULE_TOPIC, "properties": properties_of(("DELAY", "1"))}
    for number, (stored_ms, due_ms) in enumerate(((-(2**63), 2**63 - 1), (2**63 - 1, 0), (-1000, 0), (-1000, 0))):
        store.put(queue_offset=number, tags_code=due_ms, stored_ms=stored_ms, **delayed)  # type: ignore[arg-type]
    for number in (-(2**63), 2**63 - 1, 1 - 2**63):
        store.put("Far", queue_offset=number, dispatched=False)
    for number, stored_ms in enumerate((-(2**63), 2**63 - 1)):
        store.put("Keys", queue_offset=number, properties=properties_of(("KEYS", "k")), stored_ms=stored_ms)
    return store.write()


def test_no_number_is_too_far_for_a_join(spark: SparkSession, tmp_path: Path) -> None:
    """Spark ends a job at a difference of more than 64 bits.

    Arrays continued with a wrong one.
    """
    indexed = copied("06-index-files-collisions", tmp_path / "indexed")
    for item in [located for located in iter_items(look(indexed)) if isinstance(located.item, Record)][::3]:
        file = next(each for each in look(indexed).files if each.label == item.file)
        overwrite(file.path, item.item.offset - file.base_offset + 56, struct.pack(">q", -(2**63)))
    plans = [plan_store(number, store) for number, store in enumerate((far_numbers(tmp_path / "far"), indexed))]
    plain = [audit_plan(plan) for plan in plans]
    open_work(tmp_path / "work", plans, resume=False, overwrite=False)
    assert audit_joined(spark, plans, tmp_path / "work").audits == plain
    assert {finding.code for finding in plain[0].findings} >= {"CQ_MISSING", "CQ_WRONG_TAGS_CODE"}
    assert "IX_WRONG_TIME" in {finding.code for finding in plain[1].findings}


def test_spark_and_plain_audit_agree(spark: SparkSession, tmp_path: Path) -> None:
    planted = planted_stores(tmp_path)
    stores = [planted[PLANT_NUMBERS["offset in a unit"]], planted[PLANT_NUMBERS["hash in an entry"]]]
    plans = [plan_store(number, store) for number, store in enumerate([*stores, made_up(tmp_path / "made-up")])]
    plain = [audit_plan(plan) for plan in plans]
    open_work(tmp_path / "work", plans, resume=False, overwrite=False)
    assert audit_joined(spark, plans, tmp_path / "work").audits == plain
    assert audit_each(spark, plans) == plain
    assert [audited.verdict for audited in plain] == ["broken"] * 3


def test_spark_and_plain_audit_agree_on_a_topic_used_again(spark: SparkSession, tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path / "store")
    for number in range(5):
        store.put("T", 0, number, dispatched=False)
    for number in range(3):
        store.put("T", 0, number)
    plans = [plan_store(0, store.write())]
    plain = [audit_plan(plan) for plan in plans]
    open_work(tmp_path / "work", plans, resume=False, overwrite=False)
    assert audit_joined(spark, plans, tmp_path / "work").audits == plain
    assert "CQ_TOPIC_REUSED" in {each.code for each in plain[0].findings}
    assert plain[0].verdict == "holds"


def test_spark_and_plain_audit_agree_on_every_store(spark: SparkSession, tmp_path: Path) -> None:
    golden = [path / "store" for path in golden_dirs()]
    stores = [*golden, *damaged_stores(tmp_path), *planted_stores(tmp_path)]
    stores += [of_deleted_topics(tmp_path / "deleted"), many_keys(tmp_path / "keys")]
    plans = [plan_store(number, store) for number, store in enumerate(stores)]
    plain = [audit_plan(plan) for plan in plans]
    open_work(tmp_path / "work", plans, resume=False, overwrite=False)
    joined = audit_joined(spark, plans, tmp_path / "work").audits
    for store, one, other in zip(stores, joined, plain, strict=True):
        assert one == other, store
    codes = {finding.code for audited in joined for finding in audited.findings}
    assert codes >= {
        "CQ_DUPLICATE",
        "CQ_EXT_UNREADABLE",
        "CQ_GAP",
        "CQ_LIGHT_RESTARTED",
        "CQ_MISSING",
        "CQ_NOT_CONTIGUOUS",
        "CQ_NO_QUEUES",
        "CQ_POINTS_NOWHERE",
        "CQ_SHORT_FILE",
        "CQ_UNWANTED",
        "CQ_WRONG_OFFSET",
        "CQ_WRONG_QUEUE",
        "CQ_WRONG_SIZE",
        "CQ_WRONG_TAGS_CODE",
        "IX_BROKEN",
        "IX_KEY_MISSING",
        "IX_NO_INDEX",
        "IX_POINTS_NOWHERE",
        "IX_WRONG_KEY",
        "IX_WRONG_TIME",
    }
    sound = {str(path / "store") for path in undamaged()}
    assert {audited.verdict for audited in joined if audited.store in sound} == {"holds"}


def test_the_limit_of_findings_hides_no_damage_from_joins(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a store held, because tears of earlier topics had used up the limit."""
    for module in ("suspicions", "queue_compare", "queue_joins"):
        monkeypatch.setattr(f"tornpage.pipeline.audit.{module}.FINDINGS_MAX", 3)
    plans = [plan_store(0, damage_after_tears(tmp_path / "store", tears=7))]
    open_work(tmp_path / "work", plans, resume=False, overwrite=False)
    joined = audit_joined(spark, plans, tmp_path / "work").audits
    assert joined == [audit_plan(plans[0])]
    assert joined[0].verdict == "broken"


def test_no_join_copies_a_table_to_all_workers_because_its_files_are_small(spark: SparkSession, tmp_path: Path) -> None:
    """Regression: all records were copied to each worker.

    2.3 million of them have 9 MB in Parquet, and some hundred in the map of a join.
    """
    store, work = copied("06-index-files-collisions", tmp_path / "store"), tmp_path / "work"
    plan = plan_store(0, store)
    open_work(work, [plan], resume=False, overwrite=False)
    assert all(do_task(task, work) for task in plan_tasks(plan))
    tables = {name: spark.read.schema(ddl(kinds)).parquet(str(work / name)) for name, kinds in TABLES.items()}
    wanted, units, records = (tables[name] for name in ("wanted", "units", "records"))
    joins = {
        "missing units": missing_units(wanted, units),
        "strange units": strange_units(units, wanted, records),
        "doubtful records": doubtful_records(units, wanted),
    }
    for name, table in joins.items():
        planned = table._jdf.queryExecution().executedPlan().toString()
        assert "SortMergeJoin" in planned, name
        assert "BroadcastExchange" not in planned, name


def test_tasks_are_counted_stage_by_stage(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.pipeline.spark.watching._ASK_EVERY_S", 0.02)
    plans = [plan_store(0, copied("03-rollover-blanks-retention", tmp_path / "store"))]
    open_work(tmp_path / "work", plans, resume=False, overwrite=False)
    told: list[tuple[str, int, int, bool]] = []
    with watched(spark, lambda *said: told.append(said)) as stage:
        joined = apart(spark, lambda: audit_joined(spark, plans, tmp_path / "work", stage))
    assert joined.audits == [audit_plan(plans[0])]
    stages = ("reading", "comparing queues", "comparing the index")
    assert tuple(dict.fromkeys(name for name, *_ in told)) == stages
    assert {known for name, _, known, _ in told if name == "reading"} == {joined.figures["tasks"]}
    for name in stages:
        done = [done for stage, done, _, _ in told if stage == name]
        assert done == sorted(done), name
        assert done[-1] > 0, name
    assert all(done <= known for _, done, known, _ in told)
    assert {is_all for name, *_, is_all in told if name == "reading"} == {True}
    assert {is_all for name, *_, is_all in told if name != "reading"} == {False}


def test_rows_that_are_there_are_not_read_again(spark: SparkSession, tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    plans = [plan_store(0, store)]
    open_work(tmp_path / "work", plans, resume=False, overwrite=False)
    assert audit_joined(spark, plans, tmp_path / "work").audits[0].verdict == "holds"
    overwrite(store / "consumequeue/RollTopic/0/00000000000000000800", 12, b"\x01")
    plans = [plan_store(0, store)]
    open_work(tmp_path / "work", plans, resume=True, overwrite=False)
    again = audit_joined(spark, plans, tmp_path / "work")
    assert [finding.code for finding in again.audits[0].findings] == ["CQ_WRONG_TAGS_CODE"]
    assert again.figures["tasks_done_before"] == again.figures["tasks"] - 1
    assert again.figures["joins_done_before"] == 0
    open_work(tmp_path / "work", plans, resume=True, overwrite=False)
    third = audit_joined(spark, plans, tmp_path / "work")
    assert third.figures["joins_done_before"] == 1
    assert third.audits == again.audits
