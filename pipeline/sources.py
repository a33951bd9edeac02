"""Commit log and consume queues of one or many stores as rows and as Arrow batches.

Planning lists directories on the driver and gives small frozen partitions; rows are read where they are needed, in a
worker or, for `audit_store`, in this process. Files are read with the judges' decoder, in bounded pieces, without a map
or a lock, and nothing is written. What is wrong with a file is a row, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pipeline.dispatch import Place, dispatch_of
from pipeline.schemas import LOG_COLUMNS, QUEUE_COLUMNS, batch, ddl
from properties.decode.consumequeue import EmptyUnits, ExtReader, QueueItem, QueueUnit, walk_units
from properties.decode.files import FileSource
from properties.decode.record import Bad, Blank, Record
from properties.decode.store import RECORD_BYTES_MAX
from properties.decode.walk import Unreadable, walk_source

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "LogPartition",
    "LogRow",
    "QueuePartition",
    "QueueRow",
    "commit_log",
    "consume_queue",
    "log_rows",
    "queue_rows",
]

BATCH_ROWS = 16_384
TASK_BYTES = 32 * 1024 * 1024
"""Small files are read by one task until they make this many bytes together."""

Part = TypeVar("Part", "LogPartition", "QueuePartition")


@dataclass(frozen=True, slots=True)
class LogPartition:
    """One log file. Records up to store time `settled_ms` count as settled; `light_queues`: see `dispatch_of`."""

    store: int
    path: Path
    label: str
    base_offset: int
    size_bytes: int
    settled_ms: int
    light_queues: bool


@dataclass(frozen=True, slots=True)
class QueuePartition:
    """One consume queue file; `log_min` is the physical offset where the log begins."""

    store: int
    path: Path
    label: str
    topic: str
    queue_id: int
    base_offset: int
    size_bytes: int
    ext_directory: Path
    log_min: int


class LogRow(NamedTuple):
    """One row of `LOG_COLUMNS`."""

    store: int
    file: str
    kind: str
    offset: int | None = None
    size: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    sys_flag: int | None = None
    tags_code: int | None = None
    is_delayed: bool | None = None
    store_timestamp: int | None = None
    places: list[dict[str, Any]] | None = None
    reason: str | None = None
    field: str | None = None
    items: int | None = None
    bytes: int | None = None
    settled_end: int | None = None
    changed: bool | None = None
    error: str | None = None
    error_kind: str | None = None


class QueueRow(NamedTuple):
    """One row of `QUEUE_COLUMNS`."""

    store: int
    file: str
    kind: str
    topic: str
    queue_id: int
    queue_offset: int | None = None
    offset: int | None = None
    size: int | None = None
    tags_code: int | None = None
    ext_address: int | None = None
    items: int | None = None
    first_current: int | None = None
    last_used: int | None = None
    changed: bool | None = None
    error: str | None = None
    error_kind: str | None = None


assert LogRow._fields == tuple(LOG_COLUMNS)
assert QueueRow._fields == tuple(QUEUE_COLUMNS)


def commit_log(spark: SparkSession, partitions: Sequence[LogPartition]) -> DataFrame:
    """Return the table `LOG_COLUMNS` of the log files planned; each is read by one task."""
    return _table(spark, partitions, log_rows, LOG_COLUMNS)


def consume_queue(spark: SparkSession, partitions: Sequence[QueuePartition]) -> DataFrame:
    """Return the table `QUEUE_COLUMNS` of the queue files planned."""
    return _table(spark, partitions, queue_rows, QUEUE_COLUMNS)


def log_rows(part: LogPartition) -> Iterator[LogRow]:
    """Yield the rows of one log file."""
    run = _Run(part)
    changed, failure = False, None
    try:
        with FileSource(part.path, size_bytes_max=part.size_bytes) as source:
            for item in walk_source(
                source, base_offset=part.base_offset, file_bytes=part.size_bytes, record_bytes_max=RECORD_BYTES_MAX
            ):
                if isinstance(item, Record):
                    run.take(item)
                    yield _record_row(part, item)
                    continue
                yield from run.rows()
                if isinstance(item, Bad):
                    yield LogRow(part.store, part.label, "bad", item.offset, reason=item.reason, field=item.field)
                elif isinstance(item, Unreadable):
                    yield LogRow(part.store, part.label, "unreadable", item.offset, item.size_bytes, reason=item.reason)
                else:
                    kind = "blank" if isinstance(item, Blank) else "zeros"
                    yield LogRow(part.store, part.label, kind, item.offset, item.size_bytes)
            changed = source.has_changed()
    except OSError as error:
        failure = error
    yield from run.rows()
    yield LogRow(
        part.store,
        part.label,
        "end",
        part.base_offset,
        changed=changed,
        error=_text(failure),
        error_kind=_kind(failure),
    )


def queue_rows(part: QueuePartition) -> Iterator[QueueRow]:
    """Yield the rows of one consume queue file."""
    first_current: int | None = None
    last_used: int | None = None
    units = 0
    changed, failure = False, None
    place = (part.topic, part.queue_id)
    try:
        with (
            FileSource(part.path, size_bytes_max=part.size_bytes) as source,
            ExtReader(part.ext_directory) as extension,
        ):
            for kind, item, count, following in _in_runs(walk_units(source, base=part.base_offset)):
                if isinstance(item, EmptyUnits):
                    target = following.physical_offset if following is not None else None
                    yield QueueRow(part.store, part.label, kind, *place, item.queue_offset, target, items=count)
                    continue
                last_used = item.queue_offset + count - 1
                if kind == "prefill":
                    yield QueueRow(part.store, part.label, kind, *place, item.queue_offset, items=count)
                    continue
                if first_current is None and item.is_possible and item.physical_offset >= part.log_min:
                    first_current = item.queue_offset
                units += 1
                yield _unit_row(part, item, extension)
            changed = source.has_changed()
    except OSError as error:
        failure = error
    yield QueueRow(
        part.store,
        part.label,
        "end",
        *place,
        items=units,
        first_current=first_current,
        last_used=last_used,
        changed=changed,
        error=_text(failure),
        error_kind=_kind(failure),
    )


class _Run:
    """Sums up records until something else comes."""

    def __init__(self, part: LogPartition) -> None:
        self._part = part
        self._clear()

    def _clear(self) -> None:
        self._count = self._bytes = 0
        self._last: Record | None = None
        self._settled_end: int | None = None

    def take(self, record: Record) -> None:
        self._count += 1
        self._bytes += record.size_bytes
        self._last = record
        if record.store_timestamp <= self._part.settled_ms:
            self._settled_end = record.end_offset

    def rows(self) -> Iterator[LogRow]:
        """Yield the run, if there is one, and begin the next."""
        if self._last is not None:
            yield LogRow(
                self._part.store,
                self._part.label,
                "run",
                self._last.offset,
                self._last.size_bytes,
                store_timestamp=self._last.store_timestamp,
                items=self._count,
                bytes=self._bytes,
                settled_end=self._settled_end,
            )
        self._clear()


def _record_row(part: LogPartition, record: Record) -> LogRow:
    dispatch = dispatch_of(record, light_queues=part.light_queues)
    return LogRow(
        part.store,
        part.label,
        "record",
        record.offset,
        record.size_bytes,
        record.topic_text,
        record.queue_id,
        record.queue_offset,
        record.sys_flag,
        dispatch.tags_code,
        dispatch.is_delayed,
        record.store_timestamp,
        [_place_column(place) for place in dispatch.places],
    )


def _place_column(place: Place) -> dict[str, Any]:
    return {
        "topic": place.topic,
        "queue_id": place.queue_id,
        "queue_offset": place.queue_offset,
        "is_light": place.is_light,
    }


def _unit_row(part: QueuePartition, unit: QueueUnit, extension: ExtReader) -> QueueRow:
    tags_code: int | None = unit.tags_code
    if unit.has_address:
        found = extension.look_up(unit.tags_code)
        tags_code = None if found is None else found.tags_code
    return QueueRow(
        part.store,
        part.label,
        "unit",
        part.topic,
        part.queue_id,
        unit.queue_offset,
        unit.physical_offset,
        unit.size_bytes,
        tags_code,
        unit.tags_code if unit.has_address else None,
    )


def _in_runs(items: Iterable[QueueItem]) -> Iterator[tuple[str, QueueItem, int, QueueUnit | None]]:
    """Yield (kind, first item, count, unit behind an empty run); pre-fill units are summed up like empty ones."""
    waiting: tuple[str, QueueItem, int] | None = None
    for item in items:
        is_prefill = isinstance(item, QueueUnit) and item.is_prefill
        if waiting is not None and waiting[0] == "prefill" and is_prefill:
            waiting = ("prefill", waiting[1], waiting[2] + 1)
            continue
        if waiting is not None:
            yield *waiting, item if isinstance(item, QueueUnit) else None
            waiting = None
        if isinstance(item, EmptyUnits):
            waiting = ("empty", item, item.count)
        elif is_prefill:
            waiting = ("prefill", item, 1)
        else:
            yield "unit", item, 1, None
    if waiting is not None:
        yield *waiting, None


def _text(error: OSError | None) -> str | None:
    return None if error is None else error.strerror or type(error).__name__


def _kind(error: OSError | None) -> str | None:
    return None if error is None else type(error).__name__


def _table(
    spark: SparkSession,
    partitions: Sequence[Part],
    rows_of: Callable[[Part], Iterator[tuple[Any, ...]]],
    columns: dict[str, str],
) -> DataFrame:
    tasks = _tasks(partitions)
    if not tasks:
        return spark.createDataFrame([], ddl(columns))
    planned = spark.sparkContext.broadcast(tasks)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                for part in planned.value[number]:
                    rows = rows_of(part)
                    while some := list(islice(rows, BATCH_ROWS)):
                        yield batch(some, columns)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, ddl(columns))


def _tasks(partitions: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Return the partitions, small neighbours together."""
    tasks: list[list[Part]] = []
    room = 0
    for part in partitions:
        if not tasks or part.size_bytes > room:
            tasks.append([])
            room = TASK_BYTES
        tasks[-1].append(part)
        room -= part.size_bytes
    return [tuple(task) for task in tasks]
