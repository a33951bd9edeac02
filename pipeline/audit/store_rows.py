"""Read all rows of one small store in this process, for `audit_store`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.audit.stores import StorePlan
from tornpage.pipeline.rows.columns import ENTRIES, KEYS, RECORDS, UNITS, WANTED, LogBatch, QueueNumbers, joined
from tornpage.pipeline.rows.index_reading import IndexRow, read_index
from tornpage.pipeline.rows.log_reading import read_log
from tornpage.pipeline.rows.outline import LogRow, QueueRow
from tornpage.pipeline.rows.queue_reading import read_queue

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Progress", "StoreRows", "bytes_to_read", "read_store", "without_progress"]

Progress = Callable[[int], None]
"""Called with the number of bytes read, of `bytes_to_read`."""


def without_progress(read_bytes: int) -> None:
    """Ignore the number of bytes read."""


@dataclass(slots=True)
class StoreRows:
    """Rows of log, queues and index, with the outlines of their files.

    `numbers` has the number of each queue.
    """

    numbers: QueueNumbers
    records: NDArray[Any]
    wanted: NDArray[Any]
    keys: NDArray[Any]
    units: NDArray[Any]
    entries: NDArray[Any]
    log_outline: list[LogRow] = field(default_factory=list)
    queue_outline: list[QueueRow] = field(default_factory=list)
    index_outline: list[IndexRow] = field(default_factory=list)


def bytes_to_read(plan: StorePlan) -> int:
    """Return the number of bytes of log, queues and index that `read_store` reads."""
    log_and_queues = [part.size_bytes for part in plan.log_parts] + [part.size_bytes for part in plan.queue_parts]
    return sum(log_and_queues) + sum(part.file.size_bytes for part in plan.index.readable)


def read_store(plan: StorePlan, progress: Progress = without_progress) -> StoreRows:
    """Read every file of a store once.

    Cost: memory for one row per record, unit, key and entry. `progress` is called after each batch of records, and
    after each file.
    """
    read_bytes = 0
    numbers = QueueNumbers()
    batches: list[LogBatch] = []
    units: list[NDArray[Any]] = []
    entries: list[NDArray[Any]] = []
    log_outline: list[LogRow] = []
    queue_outline: list[QueueRow] = []
    index_outline: list[IndexRow] = []
    for log_part in plan.log_parts:
        for said in read_log(log_part, numbers):
            if isinstance(said, LogBatch):
                batches.append(said)
                progress(read_bytes + int(said.records["offset"][-1]) - log_part.base_offset)
            else:
                log_outline.append(said)
        read_bytes += log_part.size_bytes
    for queue_part in plan.queue_parts:
        for found in read_queue(queue_part, numbers):
            queue_outline.append(found) if isinstance(found, QueueRow) else units.append(found)
        read_bytes += queue_part.size_bytes
        progress(read_bytes)
    for index_part in plan.index.readable:
        for each in read_index(index_part):
            index_outline.append(each) if isinstance(each, IndexRow) else entries.append(each)
        read_bytes += index_part.file.size_bytes
        progress(read_bytes)
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
