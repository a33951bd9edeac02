"""The columns of every table of this room, with units.

`HISTORY_COLUMNS`: one row per history of a campaign (kind `history`), then one per shard (kind `shard`), see
`properties.explore.crashes.rows`. `mix` is JSON, empty for the standard mix. `PEER_COLUMNS`: the same for a
campaign with a peer (`pipeline.campaign.peers`). The tables of audits are in `pipeline.audit.work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["HISTORY_COLUMNS", "PEER_COLUMNS", "arrow_schema", "batch", "ddl"]

HISTORY_COLUMNS: dict[str, str] = {
    "kind": "string",
    "shard": "int",
    "seed": "string",
    "verdict": "string",
    "mix": "string",
    "levels": "string",
    "states": "bigint",
    "all_states": "bigint",
    "images": "bigint",
    "images_hash": "string",
    "recovered": "bigint",
    "recovered_hash": "string",
    "proven_legal": "bigint",
    "repeated": "boolean",
    "contract": "int",
    "sentence": "string",
    "token": "string",
    "canary": "string",
    "armed": "map<string,bigint>",
    "fired": "map<string,bigint>",
    "mattered": "map<string,bigint>",
    "seconds": "double",
}

PEER_COLUMNS: dict[str, str] = {
    "kind": "string",
    "shard": "int",
    "history": "bigint",
    "verdict": "string",
    "flush": "string",
    "states": "bigint",
    "distinct": "bigint",
    "proven_legal": "bigint",
    "peer_states": "bigint",
    "own_states": "bigint",
    "peer_broken": "map<string,bigint>",
    "own_broken": "map<string,bigint>",
    "peer_starts": "bigint",
    "sentence": "string",
    "example": "string",
    "seconds": "double",
}


def ddl(columns: dict[str, str]) -> str:
    """Return the schema in Spark's form."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def arrow_schema(columns: dict[str, str]) -> pa.Schema:
    """Return the schema in Arrow's form; Spark makes the same columns of `ddl`."""
    import pyarrow as pa

    types = {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def batch(rows: Iterable[Sequence[Any]], columns: dict[str, str]) -> pa.RecordBatch:
    """Return rows, each with its values in the order of `columns`, as one batch."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
