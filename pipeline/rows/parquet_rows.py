"""The tables of an audit by joins, and the Parquet files of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.rows.columns import QueueNumbers
from tornpage.pipeline.rows.outputs import name_durably
from tornpage.pipeline.tables.described import Columns, TableColumn, described, kinds_of

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from numpy.typing import NDArray

__all__ = ["AUDIT_TABLES", "TABLES", "RowWriters", "plain_batch", "records_batch", "units_batch", "wanted_batch"]

_STORE = TableColumn("int", "", "number of the store in the audit, from 0")
_RECORD = TableColumn("bigint", "bytes from the start of the log", "physical offset of the record")
_TOPIC = TableColumn("string", "", "topic")
_QUEUE = TableColumn("int", "", "queue of the topic")
_STORED_AT = TableColumn("bigint", "ms since 1970", "when the store appended the record, by its clock")
_HASH = TableColumn("int", "", "hash of topic and key")

AUDIT_TABLES: Mapping[str, Columns] = {
    "records": {"store": _STORE, "offset": _RECORD, "topic": _TOPIC, "queue_id": _QUEUE, "timestamp": _STORED_AT},
    "wanted": {
        "store": _STORE,
        "offset": _RECORD,
        "topic": _TOPIC,
        "queue_id": _QUEUE,
        "wanted_offset": TableColumn("bigint", "messages", "number of the unit that the record needs"),
        "wanted_size": TableColumn("bigint", "bytes", "length that the unit must state"),
        "wanted_code": TableColumn(
            "bigint", "", "tags code that the unit must state; for a delayed message the hash of its tag"
        ),
        "is_delayed": TableColumn("boolean", "", "the unit belongs to a delay level"),
        "is_light": TableColumn("boolean", "", "the unit belongs to a queue of multi-dispatch"),
        "timestamp": _STORED_AT,
    },
    "keys": {
        "store": _STORE,
        "offset": _RECORD,
        "hash": _HASH,
        "timestamp": _STORED_AT,
        "place": TableColumn("bigint", "", "rises by one from key to key of a log file, from the offset of the file"),
    },
    "units": {
        "store": _STORE,
        "offset": TableColumn("bigint", "bytes from the start of the log", "physical offset, as the unit states"),
        "topic": _TOPIC,
        "queue_id": _QUEUE,
        "queue_offset": TableColumn("bigint", "messages", "number of the unit in its queue"),
        "size": TableColumn("bigint", "bytes", "length of the record, as the unit states"),
        "tags_code": TableColumn("bigint", "", "tags code; null where an address leads nowhere", is_nullable=True),
        "ext_address": TableColumn("bigint", "", "address in the extension; null without one", is_nullable=True),
    },
    "entries": {
        "store": _STORE,
        "offset": TableColumn("bigint", "bytes from the start of the log", "physical offset, as the entry states"),
        "hash": _HASH,
        "seconds": TableColumn("bigint", "s", "store time, from the begin time of the file"),
        "file": TableColumn("int", "", "number of the index file in its store, from 0"),
        "number": TableColumn("bigint", "", "number of the entry in its file, from 1"),
    },
}
"""The tables of the work directory of an audit, as in `pipeline.rows.columns`."""

TABLES: Mapping[str, dict[str, str]] = {name: kinds_of(columns) for name, columns in AUDIT_TABLES.items()}


class RowWriters:
    """The Parquet files of one task; they get their names, durably, when all are complete."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        self._open: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> RowWriters:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stack.close()
        for table in TABLES:
            unfinished, finished = self._paths(table)
            if kind is not None:
                unfinished.unlink(missing_ok=True)
            elif table in self._open:
                name_durably(unfinished, finished)
            else:
                finished.unlink(missing_ok=True)  # from an earlier version of these files

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows."""
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        if not batch.num_rows:
            return
        if table not in self._open:
            path = str(self._paths(table)[0])
            schema = described(batch.schema, AUDIT_TABLES[table])
            self._open[table] = self._stack.enter_context(pq.ParquetWriter(path, schema, compression="zstd"))
        self._open[table].write_batch(batch.cast(self._open[table].schema))

    def _paths(self, table: str) -> tuple[Path, Path]:
        directory = self._directory / table
        return directory / f".{self._name}.tmp", directory / f"{self._name}.parquet"


def _table(store: int, size: int, columns: dict[str, Any]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"store": np.full(size, store, "i4"), **columns})


def plain_batch(store: int, rows: NDArray[Any], names: Sequence[str]) -> pa.RecordBatch:
    return _table(store, len(rows), {name: rows[name].copy() for name in names})


def _queue_columns(rows: NDArray[Any], numbers: QueueNumbers) -> dict[str, Any]:
    import pyarrow as pa

    queues = rows["queue"]
    topics = pa.array([topic for topic, _ in numbers.keys], pa.string())
    ids = np.array([queue_id for _, queue_id in numbers.keys], "i4")
    return {
        "topic": pa.DictionaryArray.from_arrays(pa.array(queues.copy()), topics).cast(pa.string()),
        "queue_id": ids[queues] if len(ids) else queues,
    }


def records_batch(store: int, rows: NDArray[Any], numbers: QueueNumbers) -> pa.RecordBatch:
    plain = {name: rows[name].copy() for name in ("offset", "timestamp")}
    return _table(store, len(rows), {**plain, **_queue_columns(rows, numbers)})


def wanted_batch(store: int, rows: NDArray[Any], numbers: QueueNumbers) -> pa.RecordBatch:
    names = {"queue_offset": "wanted_offset", "size": "wanted_size", "tags_code": "wanted_code"}
    plain = ("offset", "queue_offset", "size", "tags_code", "is_delayed", "is_light", "timestamp")
    columns = {names.get(name, name): rows[name].copy() for name in plain}
    return _table(store, len(rows), {**columns, **_queue_columns(rows, numbers)})


def units_batch(store: int, rows: NDArray[Any], numbers: QueueNumbers) -> pa.RecordBatch:
    import pyarrow as pa

    columns = {name: rows[name].copy() for name in ("offset", "queue_offset", "size")}
    columns["tags_code"] = pa.array(rows["tags_code"].copy(), mask=~rows["has_code"])
    columns["ext_address"] = pa.array(rows["address"].copy(), mask=rows["address"] == 0)
    return _table(store, len(rows), {**columns, **_queue_columns(rows, numbers)})
