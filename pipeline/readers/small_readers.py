"""Read index files and the checkpoint: Arrow batches of their rows, and problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tornpage.pipeline.readers.log_reader import Read
from tornpage.pipeline.readers.parts import CheckpointPart, IndexPart
from tornpage.pipeline.readers.problems import PROBLEM_CODES, Problem, from_error, from_findings
from tornpage.pipeline.readers.tables import FORMATS, ROWS, TIMES, arrow_schema
from tornpage.pipeline.tables.described import Columns, arrow_type, times_of
from tornpage.properties.decode.arrays import EntryColumn, entry_arrays
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.index_files import IndexReader
from tornpage.properties.decode.store import Checkpoint, read_checkpoint

__all__ = ["read_checkpoint_file", "read_headers", "read_index"]

_INDEX = FORMATS["rocketmq-index"]
_CHECKPOINT = FORMATS["rocketmq-checkpoint"][ROWS]
_ENTRIES = {
    "number": EntryColumn.NUMBER,
    "key_hash": EntryColumn.KEY_HASH,
    "offset": EntryColumn.OFFSET,
    "seconds": EntryColumn.SECONDS,
    "previous": EntryColumn.PREVIOUS,
}


def read_index(part: IndexPart, columns: tuple[str, ...]) -> Read:
    """Yield the entries of one index file and its problems; without columns, problems only."""
    label = part.file.label
    try:
        with IndexReader(part.file) as reader:
            slots, count = part.slots, part.stop
            if slots is None or count is None:
                reader.settle(slots)
                slots, count = reader.slots, reader.entry_count
            if slots is None:
                if count:
                    message = PROBLEM_CODES["IX_SLOTS_UNKNOWN"]
                    yield Problem(part.store, label, "IX_SLOTS_UNKNOWN", 0, part.file.size_bytes, message)
                return
        if columns:
            for table in entry_arrays(part.file, slots=slots, count=count, first=part.start + 1):
                arrays = []
                for name in columns:
                    kind = arrow_type(_INDEX[ROWS][name].kind)
                    if name in _ENTRIES:
                        arrays.append(pa.array(table[_ENTRIES[name]].astype(kind.to_pandas_dtype())))
                    elif name == "slot":
                        arrays.append(pa.array((table[EntryColumn.KEY_HASH] % slots).astype(np.int32)))
                    else:
                        arrays.append(pa.repeat({"store": part.store, "file": label}[name], table.shape[1]))
                yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(_INDEX[ROWS], columns))
    except OSError as error:
        yield from_error(part.store, label, error)


def read_headers(part: IndexPart, columns: tuple[str, ...]) -> Read:
    """Yield the header of one index file."""
    try:
        with IndexReader(part.file) as reader:
            reader.settle(part.slots)
            fixed = {"store": part.store, "file": part.file.label, "size": part.file.size_bytes, "slots": reader.slots}
            yield _row(_INDEX["headers"], columns, fixed | reader.header._asdict())
    except OSError as error:
        yield from_error(part.store, part.file.label, error)


def read_checkpoint_file(part: CheckpointPart, columns: tuple[str, ...]) -> Read:
    """Yield the three times of a checkpoint in one row.

    There is no row if the file is missing or has another size.
    """
    findings: list[Finding] = []
    found = read_checkpoint(Path(part.store), findings) if part.times is None else Checkpoint(*part.times)
    if found is not None and columns:
        values = {name: getattr(found, name) for name in _CHECKPOINT if name != "store" and name not in TIMES}
        yield _row(_CHECKPOINT, columns, {"store": part.store, **values})
    yield from from_findings(part.store, tuple(findings))


def _row(table: Columns, columns: tuple[str, ...], values: dict[str, Any]) -> pa.RecordBatch:
    shown = {name: np.array([values[source]], np.int64) for name, source in TIMES.items() if name in table}
    row = {**values, **{name: times_of(value)[0].as_py() for name, value in shown.items()}}
    return pa.RecordBatch.from_pylist([{name: row[name] for name in columns}], schema=arrow_schema(table, columns))
