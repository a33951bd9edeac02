"""The columns of every table of this room, with units, in one place.

`LOG_COLUMNS`: one row per item of the commit log, in the order of a file.

| column | type | meaning |
|---|---|---|
| store | int | number of the store in the list that was read, from 0 |
| file | string | log file, relative to the store directory |
| kind | string | `record`, `blank`, `bad`, `unreadable`, `zeros`; `run`: records in a row; `end`: last of a file |
| offset | long | physical offset (bytes from the start of the log); of a run: that of its last record |
| size | long | bytes; of a run: those of its last record |
| topic | string | topic; bytes that are not UTF-8 as U+FFFD |
| queue_id | int | queue of the topic |
| queue_offset | long | ordinal in the queue |
| sys_flag | int | system flags |
| tags_code | long | Java hash of the tag, 0 without one |
| is_delayed | boolean | the consume queue unit holds a due time instead of `tags_code` |
| store_timestamp | long | ms since 1970; of a run: that of its last record |
| places | array of (topic, queue_id, queue_offset, is_light) | the consume queue units that the record must have |
| reason, field | string | why no valid record begins here, and the first wrong field |
| items | long | records of a run |
| bytes | long | bytes of a run |
| settled_end | long | end (physical offset) of the last record of a run whose queues must have been flushed |
| changed | boolean | of an end: the file was written or resized while it was read |
| error | string | of an end: what ended the file early; `error_kind` is the exception's class |

`QUEUE_COLUMNS`: one row per item of the consume queues, in the order of a file.

| column | type | meaning |
|---|---|---|
| store, file | | as above |
| kind | string | `unit`; `empty` and `prefill` are runs of `items` units; `end` is the last row of each file |
| topic, queue_id | | from the names of the directories |
| queue_offset | long | number of the unit in its queue; of a run: of its first |
| offset | long | physical offset the unit points to; of an empty run: that of the next unit in the file, if any |
| size | long | bytes of the record, as the unit says |
| tags_code | long | tags code or due time (ms), from the extension where the unit holds an address; null: not there |
| ext_address | long | the address, where the unit holds one |
| items | long | units of a run; of an end: units of the file that are neither empty nor pre-fill |
| first_current | long | of an end: least queue offset of the file that points at or behind the start of the log |
| last_used | long | of an end: greatest queue offset of the file that is not empty |
| changed, error, error_kind | | as above |

`HISTORY_COLUMNS`: one row per history of a campaign (kind `history`), then one per shard (kind `shard`), see
`pipeline.campaign`. Rows of damaged places are the kinds `bad`, `unreadable` and `end` with an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["HISTORY_COLUMNS", "LOG_COLUMNS", "QUEUE_COLUMNS", "arrow_schema", "batch", "ddl"]

_PLACES = "array<struct<topic:string,queue_id:int,queue_offset:bigint,is_light:boolean>>"

LOG_COLUMNS: dict[str, str] = {
    "store": "int",
    "file": "string",
    "kind": "string",
    "offset": "bigint",
    "size": "bigint",
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "sys_flag": "int",
    "tags_code": "bigint",
    "is_delayed": "boolean",
    "store_timestamp": "bigint",
    "places": _PLACES,
    "reason": "string",
    "field": "string",
    "items": "bigint",
    "bytes": "bigint",
    "settled_end": "bigint",
    "changed": "boolean",
    "error": "string",
    "error_kind": "string",
}

QUEUE_COLUMNS: dict[str, str] = {
    "store": "int",
    "file": "string",
    "kind": "string",
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "offset": "bigint",
    "size": "bigint",
    "tags_code": "bigint",
    "ext_address": "bigint",
    "items": "bigint",
    "first_current": "bigint",
    "last_used": "bigint",
    "changed": "boolean",
    "error": "string",
    "error_kind": "string",
}

HISTORY_COLUMNS: dict[str, str] = {
    "kind": "string",
    "shard": "int",
    "seed": "string",
    "verdict": "string",
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
    "judged": "map<string,bigint>",
    "seconds": "double",
}


def ddl(columns: dict[str, str]) -> str:
    """Return the schema as Spark reads it."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def arrow_schema(columns: dict[str, str]) -> pa.Schema:
    """Return the schema as Arrow sees it; column for column what Spark makes of `ddl`."""
    import pyarrow as pa

    place = [("topic", pa.string()), ("queue_id", pa.int32()), ("queue_offset", pa.int64()), ("is_light", pa.bool_())]
    types = {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
        _PLACES: pa.list_(pa.struct(place)),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def batch(rows: Iterable[Sequence[Any]], columns: dict[str, str]) -> pa.RecordBatch:
    """Return rows, each with its values in the order of `columns`, as one batch."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
