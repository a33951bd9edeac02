"""Measure reading and auditing a store, in this process and on Spark.

All measurements read the same kind of store: keyed records of 1,024 random body bytes in log files of at most 1 GiB, in
the page cache. They are compared with the compiled walk alone. MB are 10^6 bytes of log. A Spark figure reads the usual
columns of every record and discards them. Its session is warm, and so is the code of the JVM, which compiles frequent
code while it runs. The cost of starting a session is a figure of its own.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tornpage.bench.figures import Figure, Skipped, figure, file_system_of, scratch
from tornpage.bench.sizes import FULL, Sizes
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, MessageBatch
from tornpage.properties.contract import HarnessError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "audit_mb_per_s_1024",
    "group_by_topic2_over_kernel_1024",
    "kernel_mb_per_s_1024",
    "source2_mb_per_s_1024",
    "spark1_mb_per_s_1024",
    "spark2_mb_per_s_1024",
    "spark2_over_kernel_1024",
    "spark_start_s",
    "task_ms",
    "topics2_over_kernel_1024",
]

_BATCH = 32
_ROOM = 3
"""Room for the store, its queues and index, and other needs of the disk."""

_LOG = "rocketmq-commitlog"


class _Store:
    """A store to read: its path, its log files, and its expected counts."""

    def __init__(self, path: str, records: int) -> None:
        self.path = path
        self.records = records
        self.files = sorted(Path(path, "commitlog").iterdir())
        self.file_bytes = self.files[0].stat().st_size
        self.log_bytes = self.file_bytes * len(self.files)

    def check(self, records: int, reader: str) -> None:
        """Raise HarnessError unless a reader has found every record."""
        if records != self.records:
            raise HarnessError(f"{reader} found {records} of {self.records} records")


def kernel_mb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """MB of log per second through the compiled walk into columns, on one core.

    Files are read and all records checked, without Arrow.
    """
    with store_to_read(directory, sizes) as store:

        def one_round() -> float:
            return store.log_bytes / _seconds_of_kernel(store) / 1e6

        return figure("kernel_mb_per_s_1024", "MB/s", one_round, directory=directory, seconds=seconds)


def audit_mb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """MB of log per second through the audit in this process: log, queues, and agreement."""
    from tornpage.pipeline.audit.audit import audit_store

    with store_to_read(directory, sizes) as store:

        def one_round() -> float:
            started = perf_counter()
            audited = audit_store(store.path)
            elapsed = perf_counter() - started
            store.check(audited.figures["records"], "the audit")
            if audited.verdict != "holds":
                raise HarnessError(f"the audit of a sound store says {audited.verdict}: {audited.findings[0].message}")
            return store.log_bytes / elapsed / 1e6

        return figure("audit_mb_per_s_1024", "MB/s", one_round, directory=directory, seconds=seconds)


def spark1_mb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """MB of log per second into a Spark table, bulk reader, local[1]."""
    return _spark_figure("spark1_mb_per_s_1024", 1, _bulk, directory, seconds, sizes)


def spark2_mb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """MB of log per second into a Spark table, bulk reader, local[2]."""
    return _spark_figure("spark2_mb_per_s_1024", 2, _bulk, directory, seconds, sizes)


def source2_mb_per_s_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """MB of log per second into a Spark table by `spark.read.format`, local[2].

    Planning uses two more processes.
    """
    return _spark_figure("source2_mb_per_s_1024", 2, _format, directory, seconds, sizes)


def spark2_over_kernel_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Compare Spark on two cores (bulk reader) with the compiled walk on one.

    Both read the same store in turn.
    """
    with store_to_read(directory, sizes) as store, _session(2) as spark:

        def one_round() -> float:
            kernel = _seconds_of_kernel(store)
            return kernel / _seconds_of_spark(spark, store, _bulk)

        _warm(one_round, sizes)
        return figure("spark2_over_kernel_1024", "x", one_round, directory=directory, seconds=seconds)


def group_by_topic2_over_kernel_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Compare `group by topic` over rows, local[2], with the compiled walk on one core.

    Both read the same store in turn.
    """
    return _by_topic_over_kernel("group_by_topic2_over_kernel_1024", _rows_by_topic, directory, seconds, sizes)


def topics2_over_kernel_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Compare `group by topic` over the table of sums, local[2], with the compiled walk.

    The walk runs on one core. Both read the same store in turn.
    """
    return _by_topic_over_kernel("topics2_over_kernel_1024", _sums_by_topic, directory, seconds, sizes)


def _by_topic_over_kernel(
    name: str, messages: Callable[[SparkSession, str], int], directory: str, seconds: float, sizes: Sizes
) -> Figure:
    with store_to_read(directory, sizes) as store, _session(2) as spark:

        def one_round() -> float:
            kernel = _seconds_of_kernel(store)
            started = perf_counter()
            found = messages(spark, store.path)
            elapsed = perf_counter() - started
            store.check(found, "Spark")
            return kernel / elapsed

        _warm(one_round, sizes)
        return figure(name, "x", one_round, directory=directory, seconds=seconds)


def _rows_by_topic(spark: SparkSession, path: str) -> int:
    from tornpage.pipeline.readers.sources import read_table

    counted = read_table(spark, _LOG, path, columns="topic").groupBy("topic").count().collect()
    return sum(row["count"] for row in counted)


def _sums_by_topic(spark: SparkSession, path: str) -> int:
    from tornpage.pipeline.readers.sources import read_table

    sums = read_table(spark, _LOG, path, table="topics", columns="topic,messages")
    return sum(row["sum(messages)"] for row in sums.groupBy("topic").agg({"messages": "sum"}).collect())


def spark_start_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Seconds from nothing to a session that has run a Python task.

    It is measured once, in a process of its own.
    """
    import subprocess
    import sys

    _require_spark()
    started = perf_counter()
    run = subprocess.run([sys.executable, "-P", "-c", _START], capture_output=True, text=True, check=False)
    elapsed = perf_counter() - started
    if run.returncode or run.stdout.strip() != "1":
        raise HarnessError(f"a session did not start: {(run.stderr.strip().splitlines() or ['no message'])[-1]}")
    return Figure("spark_start_s", elapsed, "s", (elapsed,), file_system_of(directory))


def task_ms(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Milliseconds of wall time per empty Python task, many on two slots, without shuffle."""
    tasks = sizes.spark_tasks
    with _session(2) as spark:

        def one_round() -> float:
            rows, elapsed = _read_through(spark.range(0, tasks, 1, tasks).mapInArrow(_same, "id bigint"))
            if rows != tasks:
                raise HarnessError(f"{rows} of {tasks} tasks gave a row")
            return elapsed / tasks * 1e3

        _warm(one_round, sizes)
        return figure("task_ms", "ms", one_round, directory=directory, seconds=seconds)


_START = """
from tornpage.pipeline.spark.session import spark_session
with spark_session("start", master="local[2]", short=True) as spark:
    print(spark.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id bigint").count())
"""

_Reader = Callable[["SparkSession", str], "DataFrame"]


def _bulk(spark: SparkSession, path: str) -> DataFrame:
    from tornpage.pipeline.readers.sources import read_table

    return read_table(spark, _LOG, path)


def _format(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format(_LOG).load(path)


def _same(batches: Iterator[object]) -> Iterator[object]:
    yield from batches


def _spark_figure(name: str, cores: int, read: _Reader, directory: str, seconds: float, sizes: Sizes) -> Figure:
    with store_to_read(directory, sizes) as store, _session(cores) as spark:

        def one_round() -> float:
            return store.log_bytes / _seconds_of_spark(spark, store, read) / 1e6

        _warm(one_round, sizes)
        return figure(name, "MB/s", one_round, directory=directory, seconds=seconds)


def _seconds_of_kernel(store: _Store) -> float:
    from tornpage.properties.decode.arrays import PIECE_BYTES, walk_arrays
    from tornpage.properties.decode.files import FileSource

    records = 0
    started = perf_counter()
    for path in store.files:
        with FileSource(path, size_bytes_max=store.file_bytes, piece_bytes=PIECE_BYTES) as source:
            for batch in walk_arrays(source, base_offset=int(path.name), file_bytes=store.file_bytes):
                records += len(batch)
    elapsed = perf_counter() - started
    store.check(records, "the compiled walk")
    return elapsed


def _seconds_of_spark(spark: SparkSession, store: _Store, read: _Reader) -> float:
    """Return the time of reading all rows."""
    rows, elapsed = _read_through(read(spark, store.path))
    store.check(rows, "Spark")
    return elapsed


def _read_through(table: DataFrame) -> tuple[int, float]:
    """Read and discard all rows; return the number counted by an observation, and the seconds."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    seen = Observation("rows")
    started = perf_counter()
    table.observe(seen, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    elapsed = perf_counter() - started
    return int(seen.get["rows"]), elapsed


def _warm(one_round: Callable[[], float], sizes: Sizes) -> None:
    """Let the JVM compile the code of a round.

    It does so for some ten rounds, on the cores that the round needs.
    """
    for _ in range(sizes.spark_warm_rounds):
        one_round()


def _require_spark() -> None:
    from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages

    try:
        require_packages("pyspark", "pyarrow", "pandas")
        require_java()
    except SparkUnavailable as error:
        raise Skipped(str(error)) from error


@contextmanager
def _session(cores: int) -> Iterator[SparkSession]:
    """Yield a session with the formats. Raises Skipped without Java or Spark."""
    from tornpage.pipeline.spark.session import SparkUnavailable, spark_session

    _require_spark()
    from tornpage.pipeline.readers.sources import register

    try:
        session = spark_session("bench", master=f"local[{cores}]", shuffle_partitions=cores)
    except SparkUnavailable as error:
        raise Skipped(str(error)) from error
    with session as spark:
        register(spark)
        yield spark


@contextmanager
def store_to_read(directory: str, sizes: Sizes) -> Iterator[_Store]:
    """Yield a closed store of about `sizes.audit_bytes` of log in full files.

    Raises Skipped without room.
    """
    free = shutil.disk_usage(directory).free
    if free < _ROOM * sizes.audit_bytes:
        raise Skipped(f"{directory} has {free >> 20} MiB free, and {_ROOM * sizes.audit_bytes >> 20} MiB are needed")
    file_bytes = sizes.audit_file_bytes
    rng = random.Random(3)
    body = rng.randbytes(1024)
    members = [BatchMember(body, properties=f"KEYS\x01key{number}\x02TAGS\x01TagA") for number in range(_BATCH)]
    batch = MessageBatch("TopicBench", encode_batch_body(members))
    config = MessageStoreConfig(mapped_file_size_commit_log=file_bytes, message_index_enable=False)
    with scratch(directory) as base:
        path = f"{base}/store"
        records = 0
        with MessageStore.open(path, config) as store:
            while store.max_offset < sizes.audit_bytes - 2 * _BATCH * 1280:
                if not store.put_batch(batch).stored:
                    raise HarnessError("a batch was refused while a log was made")
                records += _BATCH
        for file in Path(path, "commitlog").iterdir():
            if int(file.name) >= sizes.audit_bytes:
                file.unlink()  # made ahead of need, and empty
        yield _Store(path, records)
