"""Test the readers on Spark: formats, bulk reading and streams equal the plain readers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.impl.stores import caught_up
from tests.support.pipeline.handmade import copied, overwrite
from tests.support.properties.handmade import golden_dirs
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message
from tornpage.pipeline.readers.asking import Ask
from tornpage.pipeline.readers.planning import plan
from tornpage.pipeline.readers.reading import read_task
from tornpage.pipeline.readers.tables import FORMATS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.deep  # a session and its readers take ten seconds to start

LOG = "rocketmq-commitlog"


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    from tornpage.pipeline.readers.sources import register

    register(spark)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield spark


def here(name: str, stores: list[str], **options: str) -> list[dict[str, Any]]:
    ask = Ask.of(name, {"paths": json.dumps(stores), **options})
    return [row for task in plan(ask) for batch in read_task(task, ask) for row in batch.to_pylist()]


def plain(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = row.asDict(recursive=True)
    found |= {name: bytes(value) for name, value in found.items() if isinstance(value, bytearray)}
    return found | {name: value.astimezone(UTC) for name, value in found.items() if isinstance(value, datetime)}


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {"table": table, "columns": "*"}) for name in FORMATS for table in FORMATS[name]]
    + [(LOG, {"splitBytes": "4000", "columns": "store,offset,topic"})],
)
def test_formats_and_bulk_reading_give_the_rows_that_are_read_here(
    registered: SparkSession, tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    from tornpage.pipeline.readers.sources import read_table

    damaged = copied("01-plain-ascii", tmp_path / "damaged")
    overwrite(damaged / "commitlog/00000000000000000000", 4096, bytes(500))
    overwrite(damaged / "consumequeue/TopicTest/0/00000000000000000000", 140, bytes(20))
    (damaged / "checkpoint").write_bytes(b"short")
    stores = [*(str(path / "store") for path in golden_dirs()), str(damaged)]
    wanted = here(name, stores, **options)
    for row in wanted:
        if "properties" in row:
            row["properties"] = dict(row["properties"])
    bulk = read_table(registered, name, *stores, **options)
    assert [plain(row) for row in bulk.collect()] == wanted
    loaded = registered.read.format(name).options(**options).load(stores)
    assert loaded.schema == bulk.schema
    for field in loaded.schema:
        column = FORMATS[name][options.get("table", "rows")][field.name]
        assert (field.dataType.simpleString(), field.metadata["comment"]) == (column.kind, column.meaning)
        assert field.metadata.get("unit", "") == column.unit
    nullable = {field.name for field in bulk.schema if field.nullable}
    assert nullable == {each for each in bulk.columns if FORMATS[name][options.get("table", "rows")][each].is_nullable}
    assert [plain(row) for row in loaded.collect()] == wanted


def test_a_wrong_option_is_told_by_its_one_line(registered: SparkSession) -> None:
    store = str(golden_dirs()[0] / "store")
    with pytest.raises(Exception, match="has no column 'offst' in its rows; there is offset"):
        registered.read.format(LOG).option("columns", "offst").load(store)
    headers = registered.readStream.format("rocketmq-index").option("table", "headers").load(store)
    with pytest.raises(Exception, match="the table headers is read as a batch only; follow rows or problems"):
        headers.writeStream.format("noop").start().processAllAvailable()


def test_a_store_without_files_has_no_rows(registered: SparkSession, tmp_path: Path) -> None:
    for name in FORMATS:
        assert registered.read.format(name).load(str(tmp_path)).collect() == []


CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=16384,
    mapped_file_size_consume_queue=400,
    max_hash_slot_num=16,
    max_index_num=41,
)


def test_a_stream_follows_a_store_at_work_and_resumes(registered: SparkSession, tmp_path: Path) -> None:
    root, offsets = tmp_path / "store", []
    root.mkdir()
    stream = registered.readStream.format(LOG).option("maxBytesPerTrigger", "5000").load(str(root))

    def run(trigger: dict[str, Any]) -> Any:
        writer = stream.select("offset").writeStream.format("parquet")
        writer = writer.option("path", str(tmp_path / "rows")).option("checkpointLocation", str(tmp_path / "state"))
        return writer.trigger(**trigger).start()

    with MessageStore.open(str(root), CONFIG) as store:
        for _ in range(50):
            offsets.append(store.put(Message("T", b"x" * 300)).offset)
        first = run({"availableNow": True})
        first.awaitTermination()
        second = run({"processingTime": "0 seconds"})

        def write() -> None:
            for _ in range(120):
                offsets.append(store.put(Message("T", b"y" * 300)).offset)

        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
        second.processAllAvailable()
        second.stop()
    found = sorted(row["offset"] for row in registered.read.parquet(str(tmp_path / "rows")).collect())
    assert found == offsets


@pytest.mark.parametrize(
    ("name", "options"),
    [("rocketmq-consumequeue", {}), ("rocketmq-index", {"slots": "16"}), ("rocketmq-checkpoint", {})],
)
def test_streams_of_what_is_made_from_the_log_end_with_the_rows_of_a_batch(
    registered: SparkSession, tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    root = tmp_path / "store"
    stream = registered.readStream.format(name).options(**options)

    def run(trigger: dict[str, Any]) -> Any:
        writer = stream.load(str(root)).writeStream.format("parquet").option("path", str(tmp_path / "rows"))
        return writer.option("checkpointLocation", str(tmp_path / "state")).trigger(**trigger).start()

    with MessageStore.open(str(root), CONFIG) as store:

        def write(count: int) -> None:
            for number in range(count):
                store.put(Message("T", b"x" * 300, queue_id=number % 3, properties={"KEYS": f"k{number}"}))
            caught_up(store)

        write(50)
        run({"availableNow": True}).awaitTermination()
        following = run({"processingTime": "0 seconds"})
        writer = threading.Thread(target=write, args=(120,))
        writer.start()
        writer.join()
        following.processAllAvailable()
        following.stop()
    run({"availableNow": True}).awaitTermination()
    found = [plain(row) for row in registered.read.parquet(str(tmp_path / "rows")).collect()]
    wanted = here(name, [str(root)], **options)
    if name == "rocketmq-checkpoint":
        assert wanted[0] in found
        assert len({tuple(row.values()) for row in found}) == len(found) > 1
    else:
        assert len(wanted) == 170
        assert sorted(map(str, found)) == sorted(map(str, wanted))


def test_plain_session_without_an_interpreter_of_its_own_reads_a_store_by_sql(tmp_path: Path) -> None:
    """The workers of a plain session ran the `python3` of the PATH, which had no such package."""
    store = copied("01-plain-ascii", tmp_path / "store")
    program = f"""
from pyspark.sql import SparkSession
from tornpage.pipeline.readers.sources import register
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
spark.sql("CREATE TEMPORARY VIEW log USING `rocketmq-commitlog` OPTIONS (path '{store}')")
print("rows", spark.sql("SELECT count(*) FROM log").collect()[0][0])
print("rows", spark.read.format("rocketmq-commitlog").load("{store}").count())
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= {"PATH": "/usr/bin:/bin:" + environment.get("PATH", ""), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.stdout == "rows 60\nrows 60\n", done.stderr[-2000:]


def test_conditions_of_a_query_are_checked_by_the_reader(
    registered: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(copied("03-rollover-blanks-retention", tmp_path / "store"))
    found = registered.read.format(LOG).load(store)
    topic = found.first()["topic"]  # type: ignore[index]
    chosen = found.where(f"topic = '{topic}' and queue_offset >= 3 and body_size > 10")
    wanted = [
        row
        for row in here(LOG, [store])
        if row["topic"] == topic and row["queue_offset"] >= 3 and row["body_size"] > 10
    ]
    assert wanted
    assert [plain(row) for row in chosen.collect()] == wanted
    chosen.explain()
    shown = capsys.readouterr().out
    [condition] = [line for line in shown.splitlines() if "Filter" in line and "RuntimeFilters" not in line]
    assert re.search(r"body_size#\d+ > 10", condition)
    assert "topic" not in condition
    assert "queue_offset" not in condition
