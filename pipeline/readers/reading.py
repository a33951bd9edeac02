"""Read a task of a plan in any process: the batches of the wanted table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tornpage.pipeline.readers.asking import Ask
from tornpage.pipeline.readers.log_reader import Read, read_log
from tornpage.pipeline.readers.parts import CheckpointPart, IndexPart, LogPart, Part, QueuePart, Said
from tornpage.pipeline.readers.problems import Problem
from tornpage.pipeline.readers.queue_reader import read_queue
from tornpage.pipeline.readers.small_readers import read_checkpoint_file, read_headers, read_index
from tornpage.pipeline.readers.tables import FORMATS, SUMS, arrow_schema
from tornpage.pipeline.spark.agreement import require_seen

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["read_task"]

_BATCH_PROBLEMS = 4096


def read_task(task: tuple[Part, ...], ask: Ask) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a task's parts, in order. No content of a store raises an error.

    Raises PathUnseen if this process does not see the directory of a store.
    """
    require_seen({part.store for part in task if not isinstance(part, Said)})
    problems: list[Problem] = []
    for part in task:
        for found in _read(part, ask):
            if not isinstance(found, Problem):
                yield found
            elif ask.wants_problems:
                problems.append(found)
                if len(problems) == _BATCH_PROBLEMS:
                    yield _batch(problems, ask)
                    problems = []
    if problems:
        yield _batch(problems, ask)


def _read(part: Part, ask: Ask) -> Read:
    columns = () if ask.wants_problems else ask.columns
    match part:
        case LogPart():
            return read_log(part, columns, ask.conditions, drops_joined=ask.drops_joined, in_sums=ask.table == SUMS)
        case QueuePart():
            return read_queue(part, columns, ask.conditions)
        case IndexPart():
            return read_headers(part, columns) if ask.table == "headers" else read_index(part, columns)
        case CheckpointPart():
            return read_checkpoint_file(part, columns)
        case Said(problems):
            return iter(problems)


def _batch(problems: list[Problem], ask: Ask) -> pa.RecordBatch:
    import pyarrow as pa

    columns = FORMATS[ask.format][ask.table]
    schema = arrow_schema(columns, ask.columns)
    rows = [problem._asdict() for problem in problems]
    return pa.RecordBatch.from_pylist([{name: row[name] for name in ask.columns} for row in rows], schema=schema)
