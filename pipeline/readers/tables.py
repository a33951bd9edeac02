"""The tables of the readers: their columns with type, unit and default.

`docs/tables.md` shows this; a test compares the two. Types are Spark's. Nothing is null unless its meaning says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tornpage.pipeline.tables.described import Columns, TableColumn, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["FORMATS", "PROBLEMS", "ROWS", "SUMS", "TIMES", "arrow_schema", "usual_columns"]

ROWS, SUMS, PROBLEMS = "rows", "topics", "problems"


_STORE = TableColumn("string", "", "store directory, as an absolute path")
_FILE = TableColumn("string", "", "file, relative to the store directory", False)
_OFFSET_OF_RECORD = TableColumn("bigint", "bytes from the start of the log", "physical offset of the record")

TIMES: Mapping[str, str] = {
    "born_time": "born_timestamp",
    "store_time": "store_timestamp",
    "begin_time": "begin_timestamp",
    "end_time": "end_timestamp",
    "physic_time": "physic_timestamp",
    "logics_time": "logics_timestamp",
    "index_time": "index_timestamp",
    "first_time": "first_timestamp",
    "last_time": "last_timestamp",
}
"""Columns that are timestamps, and the columns whose ms since 1970 they are made from."""


def _times(*names: str) -> dict[str, TableColumn]:
    """Return columns for times."""
    end = "as a timestamp; null outside the years 1 to 9999"
    return {name: TableColumn("timestamp", "", f"`{TIMES[name]}` {end}", False, True) for name in names}


_LOG: Columns = {
    "store": _STORE,
    "file": _FILE,
    "offset": TableColumn("bigint", "bytes from the start of the log", "physical offset where the record begins"),
    "size": TableColumn("int", "bytes", "length of the whole record"),
    "topic": TableColumn("string", "", "topic; bytes that are not UTF-8 as U+FFFD"),
    "queue_id": TableColumn("int", "", "queue of the topic"),
    "queue_offset": TableColumn("bigint", "messages", "ordinal in the queue"),
    "flag": TableColumn("int", "", "the application's own", False),
    "sys_flag": TableColumn("int", "", "system flags"),
    "born_timestamp": TableColumn("bigint", "ms since 1970", "when the producer made the message, by its clock"),
    "store_timestamp": TableColumn("bigint", "ms since 1970", "when the store appended it, by its clock"),
    "reconsume_times": TableColumn("int", "times", "how often it was delivered and came back"),
    "prepared_transaction_offset": TableColumn(
        "bigint", "bytes from the start of the log", "half message that this one commits, else 0", False
    ),
    "body_size": TableColumn("int", "bytes", "length of the body as stored"),
    "tags_code": TableColumn("bigint", "", "Java hash of the tag, 0 without one"),
    "delay_level": TableColumn("int", "", "number of the delay level that was asked for, 0 without one", False),
    "body_crc": TableColumn("int", "", "CRC-32 of the body without its top bit, as stored; it was found right", False),
    "checksum": TableColumn(
        "bigint", "", "what the checksum trailer states, found right; null without one", False, True
    ),
    "properties_size": TableColumn("int", "bytes", "length of the properties as stored", False),
    "tags": TableColumn("string", "", "the tag; null without one", False, True),
    "keys": TableColumn("array<string>", "", "keys that the index holds, the unique one first", False),
    "properties": TableColumn("map<string,string>", "", "properties as a reader sees them, without trailer", False),
    "born_host": TableColumn("string", "", "address and port of the producer", False),
    "store_host": TableColumn("string", "", "address and port of the store", False),
    "message_id": TableColumn("string", "", "store-side message id, hexadecimal", False),
    "body": TableColumn("binary", "", "the body as stored, compressed or not", False),
    "raw": TableColumn("binary", "", "the whole record", False),
    **_times("born_time", "store_time"),
}

_QUEUES: Columns = {
    "store": _STORE,
    "file": _FILE,
    "topic": TableColumn("string", "", "topic, by the name of its directory"),
    "queue_id": TableColumn("int", "", "queue of the topic, by the name of its directory"),
    "queue_offset": TableColumn("bigint", "messages", "number of the unit in its queue"),
    "offset": _OFFSET_OF_RECORD,
    "size": TableColumn("int", "bytes", "length of the record, as the unit states"),
    "tags_code": TableColumn(
        "bigint",
        "",
        "tags code, or due time (ms since 1970) of a delayed message; null where an address leads nowhere",
        is_nullable=True,
    ),
    "ext_address": TableColumn("bigint", "", "address in the extension; null where the unit holds none", False, True),
}

_INDEX: Columns = {
    "store": _STORE,
    "file": TableColumn("string", "", "file, relative to the store directory"),
    "number": TableColumn("int", "", "number of the entry in its file, from 1"),
    "key_hash": TableColumn("int", "", "hash of topic and key"),
    "offset": _OFFSET_OF_RECORD,
    "seconds": TableColumn("int", "s", "store time, from the begin time of the file"),
    "previous": TableColumn("int", "", "number of the entry before in its slot, 0 at the end"),
    "slot": TableColumn("int", "", "slot that the entry hangs in", False),
}

_INDEX_HEADERS: Columns = {
    "store": _STORE,
    "file": TableColumn("string", "", "file, relative to the store directory"),
    "size": TableColumn("bigint", "bytes", "length of the file"),
    "slots": TableColumn("int", "", "how many slots it has; null where the bytes do not tell", is_nullable=True),
    "begin_timestamp": TableColumn("bigint", "ms since 1970", "store time of the first entry"),
    "end_timestamp": TableColumn("bigint", "ms since 1970", "store time of the last entry"),
    "begin_offset": TableColumn("bigint", "bytes from the start of the log", "record of the first entry"),
    "end_offset": TableColumn("bigint", "bytes from the start of the log", "record of the last entry"),
    "slots_in_use": TableColumn("int", "", "as stored"),
    "next_entry": TableColumn("int", "", "number of the next entry, 0 in a file that has none"),
    **_times("begin_time", "end_time"),
}

_LOG_SUMS: Columns = {
    "store": _STORE,
    "file": _FILE,
    "topic": TableColumn("string", "", "topic of the records; bytes that are not UTF-8 as U+FFFD"),
    "queue_id": TableColumn("int", "", "queue of the records"),
    "messages": TableColumn("bigint", "records", "how many the part has"),
    "bytes": TableColumn("bigint", "bytes", "length of these records"),
    "body_bytes": TableColumn("bigint", "bytes", "length of their bodies as stored"),
    "first_timestamp": TableColumn("bigint", "ms since 1970", "earliest time at which the store appended one"),
    "last_timestamp": TableColumn("bigint", "ms since 1970", "latest time at which the store appended one"),
    **_times("first_time", "last_time"),
}

_CHECKPOINT: Columns = {
    "store": _STORE,
    "physic_timestamp": TableColumn("bigint", "ms since 1970", "up to here the log was flushed"),
    "logics_timestamp": TableColumn("bigint", "ms since 1970", "up to here the queues were flushed"),
    "index_timestamp": TableColumn("bigint", "ms since 1970", "up to here the index was flushed"),
    **_times("physic_time", "logics_time", "index_time"),
}

_PROBLEMS: Columns = {
    "store": _STORE,
    "file": TableColumn("string", "", "file, relative to the store directory"),
    "code": TableColumn("string", "", "stable name of the kind of problem"),
    "position": TableColumn(
        "bigint", "bytes from the start of the file", "where; null: the file as a whole", is_nullable=True
    ),
    "size": TableColumn("bigint", "bytes", "how much gives no rows because of it; null: not known", is_nullable=True),
    "message": TableColumn("string", "", "what is wrong, in words"),
}

FORMATS: Mapping[str, Mapping[str, Columns]] = {
    "rocketmq-commitlog": {ROWS: _LOG, SUMS: _LOG_SUMS, PROBLEMS: _PROBLEMS},
    "rocketmq-consumequeue": {ROWS: _QUEUES, PROBLEMS: _PROBLEMS},
    "rocketmq-index": {ROWS: _INDEX, "headers": _INDEX_HEADERS, PROBLEMS: _PROBLEMS},
    "rocketmq-checkpoint": {ROWS: _CHECKPOINT, PROBLEMS: _PROBLEMS},
}
"""The tables of each format, by the value of the option `table`."""


def usual_columns(columns: Columns) -> tuple[str, ...]:
    """Return the names of the default columns."""
    return tuple(name for name, column in columns.items() if column.is_usual)


def arrow_schema(columns: Columns, names: tuple[str, ...]) -> pa.Schema:
    """Return the schema of these columns as batches declare it.

    Spark requires an exact match from a data source.
    """
    import pyarrow as pa

    chosen = [(name, columns[name]) for name in names]
    return pa.schema([pa.field(name, arrow_type(column.kind), column.is_nullable) for name, column in chosen])
