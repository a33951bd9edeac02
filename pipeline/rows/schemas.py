"""The columns of the rows of campaigns, and schemas made of columns.

`HISTORY_COLUMNS`: one row per history of a campaign (kind `history`), then one per shard (kind `shard`), see
`properties.explore.crashes.rows`. `pipeline.tables.described` has their units and meanings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.tables.described import CAMPAIGN_TABLE, arrow_type, kinds_of

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["HISTORY_COLUMNS", "arrow_schema", "batch", "ddl"]

HISTORY_COLUMNS = kinds_of(CAMPAIGN_TABLE)


def ddl(columns: dict[str, str]) -> str:
    """Return the schema in Spark's form."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def arrow_schema(columns: dict[str, str]) -> pa.Schema:
    """Return the schema in Arrow's form; Spark makes the same columns of `ddl`."""
    import pyarrow as pa

    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


def batch(rows: Iterable[Sequence[Any]], columns: dict[str, str]) -> pa.RecordBatch:
    """Return rows, each with its values in the order of `columns`, as one batch."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
