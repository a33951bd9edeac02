"""The readers as formats of Spark: `register(spark)`, then `spark.read.format("rocketmq-commitlog").load(store)`.

Each format has tables (option `table`) and columns (option `columns`); a load may name several stores. The same
batches come cheaper through `read_table`, which lets Spark's `mapInArrow` carry them: for bulk work.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from tornpage.pipeline.readers.asking import Ask
from tornpage.pipeline.readers.parts import Part
from tornpage.pipeline.readers.planning import plan

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["CheckpointSource", "CommitLogSource", "ConsumeQueueSource", "IndexSource", "read_table", "register"]


def register(spark: SparkSession) -> None:
    """Make the four formats known to a session."""
    for source in (CommitLogSource, ConsumeQueueSource, IndexSource, CheckpointSource):
        spark.dataSource.register(source)


def read_table(spark: SparkSession, name: str, *stores: str, **options: str) -> DataFrame:
    """Return the table that a format gives with these options; Spark's `mapInArrow` carries it. Raises ReaderError."""
    import json

    ask = Ask.of(name, {"paths": json.dumps([str(store) for store in stores]), **options})
    tasks = plan(ask)
    if not tasks:
        return spark.createDataFrame([], ask.schema)
    planned = spark.sparkContext.broadcast(tasks)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tornpage.pipeline.readers.reading import read_task

        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                yield from read_task(planned.value[number], ask)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, ask.schema)


@dataclass(frozen=True)
class Task(InputPartition):
    """What one task reads."""

    parts: tuple[Part, ...]


class StoreReader(DataSourceReader):
    """Plans on the driver, reads in workers."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks."""
        return [Task(parts) for parts in plan(self._ask)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches."""
        if not isinstance(partition, Task):
            return iter(())  # Spark asks for something even where the plan is empty
        from tornpage.pipeline.readers.reading import read_task  # loads the compiler, which planning can do without

        return read_task(partition.parts, self._ask)


class _Source(DataSource):
    """What all formats have in common."""

    format_name = ""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.ask = Ask.of(self.format_name, dict(options))

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return cls.format_name

    def schema(self) -> str:
        """Return the columns that were asked for."""
        return self.ask.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        return StoreReader(self.ask)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader that follows stores. Raises ReaderError for a table that cannot be followed."""
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
