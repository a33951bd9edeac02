"""Read consume queue files: Arrow batches of their units, and problems."""

from __future__ import annotations

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tornpage.pipeline.readers.conditions import Conditions
from tornpage.pipeline.readers.log_reader import Read
from tornpage.pipeline.readers.parts import QueuePart
from tornpage.pipeline.readers.problems import PROBLEM_CODES, Problem, from_error
from tornpage.pipeline.readers.tables import FORMATS, ROWS, arrow_schema
from tornpage.properties.decode.arrays import QueueBatch, UnitColumn, unit_arrays
from tornpage.properties.decode.arrays.units import BATCH_UNITS
from tornpage.properties.decode.consumequeue import EXT_ADDRESS_MAX, UNIT_BYTES, EmptyUnits, ExtReader
from tornpage.properties.decode.files import FileSource

__all__ = ["read_queue"]

_TABLE = FORMATS["rocketmq-consumequeue"][ROWS]


def read_queue(part: QueuePart, columns: tuple[str, ...], conditions: Conditions | None = None) -> Read:
    """Yield the batches and problems of a part; without columns, problems only.

    Units that do not fit the conditions on `queue_offset` and `offset` are left out. No content of the file raises an
    error.
    """
    try:
        with (
            FileSource(part.path, size_bytes_max=2**63 - 1, piece_bytes=BATCH_UNITS * UNIT_BYTES) as source,
            ExtReader(part.ext_directory) as extension,
        ):
            waiting: EmptyUnits | None = None
            for batch in unit_arrays(source, base=part.base, position=part.start, stop=part.stop):
                units = QueueBatch(batch.table[:, ~batch.is_prefill], ())
                if conditions is not None:
                    units = QueueBatch(units.table[:, _fitting(conditions, units)], ())
                codes, addresses, lost = _codes(units, extension)
                if columns and len(units):
                    yield _batch(part, columns, units, codes, addresses, lost)
                yield from (_lost(part, units, row) for row in lost)
                holes, waiting = _holes(batch, waiting)
                yield from (_hole(part, run) for run in holes)
            if waiting is not None and not part.is_last:
                yield _hole(part, waiting)
            if source.has_changed() and part.stop is None:
                yield Problem(part.store, part.label, "READ_CHANGED", None, None, PROBLEM_CODES["READ_CHANGED"])
    except OSError as error:
        yield from_error(part.store, part.label, error)


def _fitting(conditions: Conditions, units: QueueBatch) -> NDArray[np.bool_]:
    columns = {"queue_offset": units[UnitColumn.QUEUE_OFFSET], "offset": units[UnitColumn.OFFSET]}
    return conditions.fitting(columns, len(units))


def _codes(units: QueueBatch, extension: ExtReader) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Return tags codes, extension addresses (0: none), and rows with an invalid address."""
    stored = units[UnitColumn.CODE]
    has_address = stored <= EXT_ADDRESS_MAX
    codes, addresses = stored.copy(), np.where(has_address, stored, 0)
    lost = []
    for row in np.flatnonzero(has_address).tolist():
        found = extension.look_up(int(stored[row]))
        if found is None:
            lost.append(row)
        else:
            codes[row] = found.tags_code
    return codes, addresses, lost


def _batch(
    part: QueuePart,
    columns: tuple[str, ...],
    units: QueueBatch,
    codes: NDArray[np.int64],
    addresses: NDArray[np.int64],
    lost: list[int],
) -> pa.RecordBatch:
    fixed = {
        "store": part.store,
        "file": part.label,
        "topic": part.topic,
        "queue_id": pa.scalar(part.queue_id, pa.int32()),
    }
    is_lost = np.zeros(len(units), bool)
    is_lost[lost] = True
    made = {
        "queue_offset": lambda: pa.array(units[UnitColumn.QUEUE_OFFSET]),
        "offset": lambda: pa.array(units[UnitColumn.OFFSET]),
        "size": lambda: pa.array(units[UnitColumn.SIZE].astype(np.int32)),
        "tags_code": lambda: pa.array(codes, mask=is_lost),
        "ext_address": lambda: pa.array(addresses, mask=addresses == 0),
    }
    arrays = [made[name]() if name in made else pa.repeat(fixed[name], len(units)) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(_TABLE, columns))


def _lost(part: QueuePart, units: QueueBatch, row: int) -> Problem:
    position = int(units[UnitColumn.QUEUE_OFFSET][row]) * UNIT_BYTES - part.base
    message = f"the address {int(units[UnitColumn.CODE][row])} is not that of an extension unit"
    return Problem(part.store, part.label, "CQ_EXT_UNREADABLE", position, 0, message)


def _holes(batch: QueueBatch, waiting: EmptyUnits | None) -> tuple[list[EmptyUnits], EmptyUnits | None]:
    """Return the empty runs before a used unit, and the last run if none follows yet."""
    runs = list(batch.empty)
    if waiting is not None:
        if runs and runs[0].queue_offset == waiting.queue_offset + waiting.count:
            runs[0] = EmptyUnits(waiting.queue_offset, waiting.count + runs[0].count)
        else:
            runs.insert(0, waiting)
    last_used = int(batch[UnitColumn.QUEUE_OFFSET][-1]) if len(batch) else -1
    holes = [run for run in runs if run.queue_offset < last_used]
    return holes, runs[-1] if len(holes) < len(runs) else None


def _hole(part: QueuePart, run: EmptyUnits) -> Problem:
    message = f"{run.count} empty units from queue offset {run.queue_offset} on, before used ones"
    position = run.queue_offset * UNIT_BYTES - part.base
    return Problem(part.store, part.label, "CQ_EMPTY_UNITS", position, run.count * UNIT_BYTES, message)
