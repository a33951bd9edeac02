"""Write the messages of `tornpage export` as text, JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tornpage.cli.document import refuse
from tornpage.outcomes.inspecting import printable, time_text
from tornpage.properties.inspect.export import COLUMNS
from tornpage.run.writing import writing

__all__ = ["FORMATS", "Row", "redacted_columns", "write_rows"]

Row = dict[str, Any]

FORMATS = ("text", "jsonl", "csv", "parquet")
_BATCH_ROWS = 10_000
_JSON_COLUMNS = ("storeHost", "bornHost", "properties")
"""Columns that are JSON texts in CSV and Parquet."""


def write_rows(rows: Iterable[Row], format_: str, target: Path | None, *, redacted: bool) -> None:
    """Write rows to a file, or to standard output where `target` is None."""
    columns = redacted_columns() if redacted else COLUMNS
    if format_ == "parquet":
        assert target is not None
        _write_parquet(rows, target, columns)
        return
    write = {"text": _write_text, "jsonl": _write_json_lines, "csv": _write_csv}[format_]
    if target is None:
        write(rows, sys.stdout, columns)
        sys.stdout.flush()
        return
    with (
        writing(target, option="--out"),
        _unfinished(target) as path,
        path.open("w", encoding="utf-8", newline="") as file,
    ):
        write(rows, file, columns)


def redacted_columns() -> tuple[str, ...]:
    """Return the columns that stay when names are redacted: no body and no properties."""
    left_out = ("properties", "bodyEncoding", "body", "flag", "reconsumeTimes", "preparedTransactionOffset")
    return tuple(name for name in COLUMNS if name not in left_out)


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Give a path beside the target, which gets its name when the file is whole."""
    path = target.with_name(f"{target.name}.unfinished")
    try:
        yield path
        path.replace(target)
    finally:
        path.unlink(missing_ok=True)


def _write_text(rows: Iterable[Row], file: IO[str], columns: tuple[str, ...]) -> None:
    for row in rows:
        queue = f"{printable(str(row['topic']))}/{row['queueId']}"
        file.write(
            f"{row['phy']}  {queue}  queue offset {row['queueOffset']}  {time_text(row['storeTimestamp'])}  "
            f"{row['msgId']}\n"
        )
        for name in ("tags", "keys", "uniqKey"):
            if row.get(name):
                file.write(f"  {name}: {printable(str(row[name]))}\n")
        for name, value in (row.get("properties") or {}).items():
            if name not in ("TAGS", "KEYS", "UNIQ_KEY"):
                file.write(f"  {printable(name)} = {printable(value)}\n")
        if "body" in columns:
            kind = "" if row["bodyEncoding"] == "utf-8" else f" ({row['bodyEncoding']})"
            file.write(f"  body of {row['bodyLength']:,} bytes{kind}: {printable(row['body'])}\n")
        file.write("\n")


def _write_json_lines(rows: Iterable[Row], file: IO[str], columns: tuple[str, ...]) -> None:
    for row in rows:
        file.write(json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False) + "\n")


def _write_csv(rows: Iterable[Row], file: IO[str], columns: tuple[str, ...]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_flat(name, row.get(name)) for name in columns])
        file.write(text.getvalue())
        text.seek(0)
        text.truncate()
    file.write(text.getvalue())


def _flat(name: str, value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if name in _JSON_COLUMNS and value is not None else value


def _write_parquet(rows: Iterable[Row], target: Path, columns: tuple[str, ...]) -> None:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError:
        refuse("Parquet needs pyarrow; install it, or give --format jsonl or csv")
    numbers = {"queueId", "queueOffset", "phy", "storeTimestamp", "bornTimestamp", "sysFlag", "flag", "reconsumeTimes",
               "preparedTransactionOffset", "bodyLength"}  # fmt: skip
    schema = pa.schema([(name, pa.int64() if name in numbers else pa.string()) for name in columns])
    with writing(target, option="--out"), _unfinished(target) as path, pq.ParquetWriter(str(path), schema) as writer:
        batch: list[Row] = []
        flush: Callable[[], None] = lambda: writer.write_table(pa.Table.from_pylist(batch, schema=schema))  # noqa: E731
        for row in rows:
            batch.append({name: _flat(name, row.get(name)) for name in columns})
            if len(batch) >= _BATCH_ROWS:
                flush()
                batch.clear()
        flush()
