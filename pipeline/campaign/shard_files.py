"""Keep the rows of complete shards as Parquet files, one file for each shard.

This is for campaigns with a peer and of foreign stores, whose shards are short. A shard is complete if its
file has a row of kind `shard` whose verdict is not `harness`. Every file is complete once it has its name.
`pipeline.campaign.files` keeps the rows of campaigns of our own store, which also has pages inside a shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tornpage.pipeline.rows.outputs import OutputTaken, whole
from tornpage.pipeline.rows.schemas import arrow_schema, batch
from tornpage.pipeline.tables.described import Columns, described, kinds_of

__all__ = ["RUNS_OF_A_SHARD", "Row", "ShardTable"]

Row = dict[str, Any]

RUNS_OF_A_SHARD = 1_000_000
"""The numbers of the runs of a shard begin at a multiple of this."""


class ShardTable:
    """The table of one kind of campaign: its folder in the output directory, and its columns."""

    def __init__(self, folder: str, columns: Columns) -> None:
        self.folder = folder
        self._columns = columns
        self._kinds = kinds_of(columns)
        self._maps = tuple(name for name, kind in self._kinds.items() if kind.startswith("map"))
        self._empty: Row = {
            name: {"string": "", "double": 0.0, "boolean": False}.get(kind, {} if kind.startswith("map") else 0)
            for name, kind in self._kinds.items()
        }

    def row(self, **values: Any) -> Row:
        """Return a row; columns without a value are empty or 0."""
        return self._empty | values

    def keep(self, out: Path, shard: int, rows: Sequence[Row]) -> None:
        """Write the rows of a shard; the file appears whole or not at all."""
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        values = [
            tuple(sorted(row[name].items()) if name in self._maps else row[name] for name in self._kinds)
            for row in rows
        ]
        with whole(out / self.folder / f"part-shard-{shard:06}.parquet") as unfinished:
            table = pa.Table.from_batches([batch(values, self._kinds)])
            pq.write_table(table.cast(described(table.schema, self._columns)), unfinished)

    def stored(self, out: Path) -> list[Row]:
        """Return all rows in the order of shards. Raises OutputTaken if a file is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = arrow_schema(self._kinds)
        rows: list[Row] = []
        for path in sorted((out / self.folder).glob("*.parquet")):
            try:
                found = pq.read_table(path, partitioning=None).cast(schema).to_pylist()
            except (OSError, pa.ArrowException, ValueError, OverflowError, LookupError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise OutputTaken(f"{path} cannot be read: {reason}; remove it, and --resume runs it again") from error
            rows += [{**row, **{name: dict(row[name] or ()) for name in self._maps}} for row in found]
        return rows

    def complete(self, out: Path) -> set[int]:
        """Return the numbers of the shards with all their rows.

        Raises OutputTaken if a file is damaged.
        """
        return {row["shard"] for row in self.stored(out) if row["kind"] == "shard" and row["verdict"] != "harness"}
