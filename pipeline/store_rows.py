"""All rows of one small store in this process: what `audit_store` compares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.columns import ENTRIES, KEYS, RECORDS, UNITS, WANTED, LogBatch, QueueNumbers, joined
from pipeline.index_reading import IndexRow, read_index
from pipeline.outline import LogRow, QueueRow
from pipeline.queue_reading import read_queue
from pipeline.sources import read_log
from pipeline.stores import StorePlan

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StoreRows", "read_store"]


@dataclass(slots=True)
class StoreRows:
    """Rows of log, queues and index, and the outlines of their files; queues are numbered by `numbers`."""

    numbers: QueueNumbers
    records: NDArray[Any]
    wanted: NDArray[Any]
    keys: NDArray[Any]
    units: NDArray[Any]
    entries: NDArray[Any]
    log_outline: list[LogRow] = field(default_factory=list)
    queue_outline: list[QueueRow] = field(default_factory=list)
    index_outline: list[IndexRow] = field(default_factory=list)


def read_store(plan: StorePlan) -> StoreRows:
    """Read every file of a store once. Cost: memory for one row per record, unit, key and entry."""
    numbers = QueueNumbers()
    batches: list[LogBatch] = []
    units: list[NDArray[Any]] = []
    entries: list[NDArray[Any]] = []
    log_outline: list[LogRow] = []
    queue_outline: list[QueueRow] = []
    index_outline: list[IndexRow] = []
    for log_part in plan.log_parts:
        for said in read_log(log_part, numbers):
            batches.append(said) if isinstance(said, LogBatch) else log_outline.append(said)
    for queue_part in plan.queue_parts:
        for found in read_queue(queue_part, numbers):
            queue_outline.append(found) if isinstance(found, QueueRow) else units.append(found)
    for index_part in plan.index.readable:
        for each in read_index(index_part):
            index_outline.append(each) if isinstance(each, IndexRow) else entries.append(each)
    return StoreRows(
        numbers,
        joined((batch.records for batch in batches), RECORDS),
        joined((batch.wanted for batch in batches), WANTED),
        joined((batch.keys for batch in batches), KEYS),
        joined(units, UNITS),
        joined(entries, ENTRIES),
        log_outline,
        queue_outline,
        index_outline,
    )
