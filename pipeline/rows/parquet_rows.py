"""The tables of an audit by joins, and the Parquet files of one task."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.rows.columns import QueueNumbers
from tornpage.pipeline.rows.outputs import name_durably

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from numpy.typing import NDArray

__all__ = ["TABLES", "RowWriters", "plain_batch", "records_batch", "units_batch", "wanted_batch"]

TABLES: dict[str, dict[str, str]] = {
    "records": {"store": "int", "offset": "bigint", "topic": "string", "queue_id": "int", "timestamp": "bigint"},
    "wanted": {
        "store": "int",
        "offset": "bigint",
        "topic": "string",
        "queue_id": "int",
        "wanted_offset": "bigint",
        "wanted_size": "bigint",
        "wanted_code": "bigint",
        "is_delayed": "boolean",
        "is_light": "boolean",
        "timestamp": "bigint",
    },
    "keys": {"store": "int", "offset": "bigint", "hash": "int", "timestamp": "bigint", "place": "bigint"},
    "units": {
        "store": "int",
        "offset": "bigint",
        "topic": "string",
        "queue_id": "int",
        "queue_offset": "bigint",
        "size": "bigint",
        "tags_code": "bigint",
        "ext_address": "bigint",
    },
    "entries": {
        "store": "int",
        "offset": "bigint",
        "hash": "int",
        "seconds": "bigint",
        "file": "int",
        "number": "bigint",
    },
}
"""Columns of each table, as in `pipeline.rows.columns`; an unreadable `tags_code` is null."""


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
            self._open[table] = self._stack.enter_context(pq.ParquetWriter(path, batch.schema, compression="zstd"))
        self._open[table].write_batch(batch)

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
