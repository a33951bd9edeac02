"""The readers as data sources of Spark.

`register(spark)`, then `spark.read.format("rocketmq-commitlog").load(store)`. Each format has tables (option `table`)
and columns (option `columns`). A load may name several stores. For bulk work `read_table` is cheaper: Spark's
`mapInArrow` carries the same batches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from tornpage.pipeline.readers.asking import Ask
from tornpage.pipeline.readers.conditions import conditions_of
from tornpage.pipeline.readers.parts import Part
from tornpage.pipeline.readers.planning import plan
from tornpage.pipeline.readers.tables import ROWS

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

__all__ = [
    "CheckpointSource",
    "CommitLogSource",
    "ConsumeQueueSource",
    "IndexSource",
    "for_cores",
    "read_table",
    "register",
]


def register(spark: SparkSession) -> None:
    """Register the four formats in a session.

    A session on this machine that was started without PYSPARK_PYTHON would run the `python3` of the PATH, which need
    not have this package. From now on its workers run this interpreter. Filters are pushed down, which a session does
    not do by itself; Spark refuses readers that check filters otherwise.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    context = spark.sparkContext
    if "PYSPARK_PYTHON" not in os.environ and str(context.master).startswith("local"):
        context.pythonExec = sys.executable
    for source in (CommitLogSource, ConsumeQueueSource, IndexSource, CheckpointSource):
        spark.dataSource.register(for_cores(source, context.defaultParallelism))


def for_cores(source: type[DataSource], cores: int) -> type[DataSource]:
    """Return the class of a source that plans for this number of cores.

    Spark sends the class to the process that plans, which has no session to ask.
    """
    return type(source.__name__, (source,), {"cores": cores})


def read_table(spark: SparkSession, name: str, *stores: str, **options: str) -> DataFrame:
    """Return the table of a format with these options, carried by Spark's `mapInArrow`.

    Raises ReaderError.
    """
    import json

    from pyspark.sql.types import StructType

    ask = Ask.of(name, {"paths": json.dumps([str(store) for store in stores]), **options})
    schema = StructType.fromJson(ask.schema)
    tasks = plan(ask, cores=spark.sparkContext.defaultParallelism)
    if not tasks:
        return spark.createDataFrame([], schema)
    planned = spark.sparkContext.broadcast(tasks)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tornpage.pipeline.readers.reading import read_task

        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                yield from read_task(planned.value[number], ask)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, schema)


@dataclass(frozen=True)
class Task(InputPartition):
    """The parts of one task."""

    parts: tuple[Part, ...]


class StoreReader(DataSourceReader):
    """Plans on the driver, reads in workers."""

    def __init__(self, ask: Ask, cores: int) -> None:
        self._ask = ask
        self._cores = cores

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take the filters that the reader checks itself; return the others."""
        if self._ask.table != ROWS:
            return filters
        conditions, left = conditions_of(self._ask.format, filters)
        self._ask = replace(self._ask, conditions=conditions)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks."""
        return [Task(parts) for parts in plan(self._ask, cores=self._cores)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches."""
        if not isinstance(partition, Task):
            return iter(())  # Spark reads a partition even if the plan is empty
        from tornpage.pipeline.readers.reading import read_task  # loads the compiler, which planning does not need

        return read_task(partition.parts, self._ask)


class _Source(DataSource):
    """The common part of all formats."""

    format_name = ""
    cores = 0

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.ask = Ask.of(self.format_name, dict(options))

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return cls.format_name

    def schema(self) -> StructType:
        """Return the wanted columns, with their units and meanings as metadata."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(self.ask.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        return StoreReader(self.ask, self.cores)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader that follows stores.

        Raises ReaderError for a table that cannot be followed.
        """
        from tornpage.pipeline.readers.streams import FollowingStream

        return FollowingStream(self.ask)


class CommitLogSource(_Source):
    """Records of commit logs."""

    format_name = "rocketmq-commitlog"


class ConsumeQueueSource(_Source):
    """Units of consume queues."""

    format_name = "rocketmq-consumequeue"


class IndexSource(_Source):
    """Entries and headers of index files."""

    format_name = "rocketmq-index"


class CheckpointSource(_Source):
    """Times of checkpoints."""

    format_name = "rocketmq-checkpoint"
