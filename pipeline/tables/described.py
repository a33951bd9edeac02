"""Describe the columns of tables: type, unit and meaning.

The descriptions are used for Spark, for Arrow, and in Parquet files.

`docs/tables.md` shows all tables; tests compare the two. Types are Spark's. Field metadata have `comment` (the meaning)
and `unit`, which `DESCRIBE` and `DataFrame.schema` show. Spark reads the metadata of a Parquet file from a key of its
own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from numpy.typing import NDArray

__all__ = [
    "CAMPAIGN_TABLE",
    "PEER_TABLE",
    "SWEEP_TABLE",
    "TARGET_TABLE",
    "Columns",
    "TableColumn",
    "arrow_type",
    "described",
    "kinds_of",
    "struct_of",
    "times_of",
]

SPARK_METADATA = b"org.apache.spark.sql.parquet.row.metadata"


class TableColumn(NamedTuple):
    """One column; `is_usual` ones are there by default.

    `is_nullable` False tells Spark that the column is never null: it checks every value of the others.
    """

    kind: str
    unit: str
    meaning: str
    is_usual: bool = True
    is_nullable: bool = False


Columns = Mapping[str, TableColumn]

_COUNTS = "map<string,bigint>"

CAMPAIGN_TABLE: Columns = {
    "kind": TableColumn("string", "", "`history` for a run, `shard` for the end of a shard, `page` for that of a page"),
    "shard": TableColumn("int", "", "number of the shard"),
    "seed": TableColumn("string", "", "seed of the run; empty in rows of shards"),
    "verdict": TableColumn("string", "", "holds, broken, harness; for shards holds, vacuous, harness"),
    "mix": TableColumn("string", "", "row of the covering array as JSON; empty for the standard configuration"),
    "levels": TableColumn("string", "", "levels that the run had, as `factor=level` separated by spaces"),
    "states": TableColumn("bigint", "crash states", "counted: at least 2 files and 10 records"),
    "all_states": TableColumn("bigint", "crash states", "all"),
    "images": TableColumn("bigint", "disk images", "distinct within the run; null for shards"),
    "images_hash": TableColumn("string", "", "SHA-256 of the set of images; null for shards"),
    "recovered": TableColumn("bigint", "logs", "distinct recovered logs within the run; null for shards"),
    "recovered_hash": TableColumn("string", "", "SHA-256 of the set of recovered logs; null for shards"),
    "proven_legal": TableColumn("bigint", "disk images", "proved to be possible after a crash; null for shards"),
    "repeated": TableColumn("boolean", "", "the run was repeated with equal results"),
    "contract": TableColumn("int", "", "number of the broken guarantee (contract.md); null without one"),
    "sentence": TableColumn("string", "", "what is broken, or the fault of the harness; null without one"),
    "token": TableColumn("string", "", "case that `tornpage replay` takes; null without a broken guarantee"),
    "canary": TableColumn("string", "", "planted bug that the shard caught, empty without; null for runs"),
    "armed": TableColumn(_COUNTS, "times", "by fault, rule and judge: was possible"),
    "fired": TableColumn(_COUNTS, "times", "by fault, rule and judge: happened"),
    "mattered": TableColumn(_COUNTS, "times", "by fault, rule and judge: changed a result"),
    "seconds": TableColumn("double", "s", "measured; the only column that is no part of the result hash"),
}

PEER_TABLE: Columns = {
    "kind": TableColumn("string", "", "`history` for a run, `example` for the smallest image, `shard`, `page`"),
    "shard": TableColumn("int", "", "number of the shard"),
    "history": TableColumn("bigint", "", "number of the run"),
    "verdict": TableColumn("string", "", "holds, broken or harness"),
    "flush": TableColumn("string", "", "sync or async: the flush of the recorded store; empty for shards"),
    "states": TableColumn("bigint", "crash states", "opened by both stores"),
    "distinct": TableColumn("bigint", "disk images", "distinct within the run"),
    "proven_legal": TableColumn("bigint", "disk images", "proved to be possible after a crash"),
    "peer_states": TableColumn("bigint", "crash states", "of which the peer broke a guarantee"),
    "own_states": TableColumn("bigint", "crash states", "of which our store broke a guarantee"),
    "peer_broken": TableColumn(_COUNTS, "crash states", "by number of the guarantee that the peer broke"),
    "own_broken": TableColumn(_COUNTS, "crash states", "by number of the guarantee that our store broke"),
    "peer_starts": TableColumn("bigint", "times", "how often a Java process of the peer was started"),
    "sentence": TableColumn("string", "", "what is broken, or the fault of the harness; empty without one"),
    "example": TableColumn("string", "", "the smallest image as JSON, in rows of examples; else empty"),
    "seconds": TableColumn("double", "s", "measured"),
}

TARGET_TABLE: Columns = {
    "kind": TableColumn("string", "", "`history` for a run, `failure` for a broken promise, `shard`, `page`"),
    "shard": TableColumn("int", "", "number of the shard"),
    "history": TableColumn("bigint", "", "number of the run"),
    "verdict": TableColumn("string", "", "holds, broken or harness; for shards holds, vacuous, broken or harness"),
    "shape": TableColumn("string", "", "shape of the store"),
    "states": TableColumn("bigint", "crash states", "opened and judged"),
    "armed": TableColumn(_COUNTS, "times", "by crash or disk fault: how often it was possible"),
    "fired": TableColumn(_COUNTS, "times", "by fault or operation: how often it happened"),
    "mattered": TableColumn(_COUNTS, "times", "by fault: how often the crash lost something"),
    "without_power": TableColumn(_COUNTS, "crash states", "without a power loss, by reason"),
    "reused_only": TableColumn("bigint", "failures", "that a process with one directory does not show"),
    "kills_only": TableColumn("boolean", "", "no power loss is asked for"),
    "times": TableColumn("bigint", "runs", "of the shard that met the failure; else 0"),
    "contract": TableColumn("bigint", "", "number of the broken guarantee; 0 without one"),
    "sentence": TableColumn("string", "", "what is broken, or the fault of the harness; empty without one"),
    "expected": TableColumn("string", "", "what the guarantee asks for, in rows of failures; else empty"),
    "found": TableColumn("string", "", "what the store did instead, in rows of failures; else empty"),
    "token": TableColumn("string", "", "the failing case, as found, for `tornpage replay`; empty without one"),
    "canary": TableColumn("string", "", "canary that the shard caught, in rows of shards and pages; else empty"),
    "result_hash": TableColumn("string", "", "hash of the shard, in rows of shards; else empty"),
    "seconds": TableColumn("double", "s", "measured"),
}


def _of(kind: str, unit: str, **meanings: str) -> dict[str, TableColumn]:
    return {name: TableColumn(kind, unit, meaning, is_nullable=True) for name, meaning in meanings.items()}


_WITHOUT_LAW = "empty or 0 where no law applies"

SWEEP_TABLE: Columns = {
    **_of("bigint", "", point="number of the point in the grid", seed="seed of the load"),
    **_of("string", "", flush="flush policy, in words", flush_disk_type="SYNC_FLUSH or ASYNC_FLUSH"),
    **_of(
        "bigint", "ms",
        flush_interval_ms="pause between two rounds of the flush service",
        flush_thorough_ms="time after which a round flushes any number of pages",
    ),
    **_of("bigint", "pages of 4 KiB", flush_least_pages="pages that a round needs before it flushes"),
    **_of("bigint", "", flush_timed="1: rounds are timed; 0: rounds wait for puts"),
    **_of("string", "", pool="pool of write buffers, in words"),
    **_of("bigint", "buffers", pool_buffers="write buffers of the pool; 0: none"),
    **_of("double", "us", replica_mean_us="mean time to a replica and back; 0: no replica"),
    **_of(
        "bigint", "ms",
        writeback_wake_ms="period of the kernel's write-back",
        writeback_expire_ms="age at which the kernel writes a dirty page back",
    ),
    **_of("bigint", "bytes", writeback_background_bytes="dirty bytes from which the kernel writes back"),
    **_of("string", "", allocation="allocation policy, in words"),
    **_of("bigint", "files", files_ahead="log files made ahead of need"),
    **_of("bigint", "", warm="1: the pages of a new file are touched; 0: they are not"),
    **_of("string", "", device="name of the disk", load="the load, in words"),
    **_of("double", "messages/s", rate_per_s="mean rate of an open load; 0 for closed loops"),
    **_of("bigint", "producers", producers="producers of a closed loop; 0 for open loads"),
    **_of("double", "us", think_mean_us="mean pause of a producer between two puts"),
    **_of(
        "bigint", "bytes",
        size_bytes_min="smallest record", size_bytes_max="largest record", file_bytes="size of a log file",
    ),
    **_of("bigint", "messages", messages="puts of the load"),
    **_of(
        "double", "us",
        load_us="simulated time of the load",
        put_mean_us="mean latency of a put", put_mean_error_us="standard error of that mean",
        put_p50_us="median latency of a put", put_p90_us="latency that 90 % of puts do not exceed",
        put_p99_us="latency that 99 % of puts do not exceed", put_max_us="longest put",
    ),
    **_of("double", "messages", at_risk_messages_mean="acknowledged and not durable, mean over time",
          kill_messages_mean="lost by a kill of the process, mean over time"),
    **_of("bigint", "messages", at_risk_messages_p99="the same, not exceeded for 99 % of the time",
          at_risk_messages_max="the same, at most",
          kill_messages_p99="lost by a kill of the process, not exceeded for 99 % of the time"),
    **_of("double", "bytes", at_risk_bytes_mean="acknowledged and not durable, mean over time",
          kill_bytes_mean="lost by a kill of the process, mean over time"),
    **_of("bigint", "bytes", at_risk_bytes_p99="the same, not exceeded for 99 % of the time",
          at_risk_bytes_max="the same, at most", kill_bytes_max="lost by a kill of the process, at most"),
    **_of(
        "double", "us",
        exposed_p50_us="median time from acknowledgement to durability",
        exposed_p99_us="the same time, not exceeded by 99 % of messages", exposed_max_us="the same time, at most",
    ),
    **_of("bigint", "puts", put_refused="puts that were refused"),
    **_of("bigint", "times", commits="commits of write buffers"),
    **_of("bigint", "files", files_without_buffer="log files that found no free write buffer"),
    **_of("bigint", "times", flushes="flushes of the log", flush_rounds="rounds of the flush service"),
    **_of("double", "messages", flush_batch_mean="mean number of messages of a flush"),
    **_of("double", "us", flush_mean_us="mean time of a flush", flush_max_us="longest flush"),
    **_of("double", "", flush_busy_share="share of the time in which a flush runs"),
    **_of("bigint", "bytes", device_bytes="bytes written to the disk", kernel_bytes="those of the kernel's write-back"),
    **_of("double", "", write_amplification="bytes written to the disk for each byte of the log"),
    **_of("bigint", "times", rolls="new log files", stalls="puts that waited for a new log file"),
    **_of(
        "double", "us",
        stall_mean_us="mean wait for a new log file", stall_p99_us="the same wait, not exceeded by 99 %",
        stall_max_us="the longest such wait", stall_total_us="all such waits together",
    ),
    **_of(
        "bigint", "times",
        alarm_lock_held_over_200_ms="the put lock was held for more than 200 ms",
        alarm_lock_held_over_500_ms="the put lock was held for more than 500 ms",
        alarm_lock_held_over_1000_ms="the put lock was held for more than 1,000 ms",
        alarm_page_cache_busy_sends="a broker would have refused a put: page cache busy",
        alarm_send_queue_time_outs="a broker would have dropped a put that waited for too long",
        alarm_flushes_over_500_ms="a flush took more than 500 ms",
        alarm_commits_over_500_ms="a commit took more than 500 ms",
        alarm_creations_over_10_ms="making a log file took more than 10 ms",
        alarm_creation_time_outs="making a log file took too long for a waiting put",
    ),
    **_of("string", "", law=f"queueing law that the point is compared with; {_WITHOUT_LAW}"),
    **_of("double", "us", law_mean_us=f"mean latency of a put by the law; {_WITHOUT_LAW}"),
    **_of("double", "standard errors", law_errors=f"distance of `put_mean_us` from the law; {_WITHOUT_LAW}"),
    **_of("string", "", trace_sha256="hash of all events of the point",
          error="why the point gave no row; there only if a point failed"),
}  # fmt: skip


def kinds_of(columns: Columns) -> dict[str, str]:
    """Return the type of each column."""
    return {name: column.kind for name, column in columns.items()}


def struct_of(columns: Columns, names: Iterable[str] | None = None, *, nullable: bool | None = None) -> dict[str, Any]:
    """Return the schema of some columns, or of all, as Spark's JSON.

    `nullable` replaces the same field of the columns.
    """
    chosen = columns if names is None else {name: columns[name] for name in names}
    fields = [
        {
            "name": name,
            "type": _spark_type(column.kind),
            "nullable": column.is_nullable if nullable is None else nullable,
            "metadata": {"comment": column.meaning, **({"unit": column.unit} if column.unit else {})},
        }
        for name, column in chosen.items()
    ]
    return {"type": "struct", "fields": fields}


def _spark_type(kind: str) -> Any:
    if kind.startswith("map<"):
        key, value = kind[4:-1].split(",")
        return {"type": "map", "keyType": _spark_type(key), "valueType": _spark_type(value), "valueContainsNull": True}
    if kind.startswith("array<"):
        return {"type": "array", "elementType": _spark_type(kind[6:-1]), "containsNull": True}
    return {"int": "integer", "bigint": "long"}.get(kind, kind)


def described(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """Return an Arrow schema with the metadata of its columns, for a Parquet file.

    Columns without a description stay as they are.
    """
    import pyarrow as pa

    fields = []
    for field in schema:
        column = columns.get(field.name)
        if column is not None:
            words = {"comment": column.meaning, **({"unit": column.unit} if column.unit else {})}
            field = field.with_metadata(words)
        fields.append(field)
    known = [name for name in schema.names if name in columns]
    if known != schema.names:
        return pa.schema(fields, schema.metadata)
    struct = struct_of(columns, known, nullable=True)
    return pa.schema(fields, {**(schema.metadata or {}), SPARK_METADATA: json.dumps(struct)})


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type that Spark takes for a column of its own type."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", "UTC"),
        "array<string>": pa.list_(pa.string()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    }
    return types[kind]


_TIMES_MS = (-62_135_596_800_000, 253_402_300_799_999)
"""The first ms of the year 1, and the last one of the year 9999: what Spark and Python can show."""


def times_of(values_ms: NDArray[np.int64]) -> pa.Array:
    """Return ms since 1970 as timestamps; null outside the years 1 to 9999."""
    import pyarrow as pa

    outside = (values_ms < _TIMES_MS[0]) | (values_ms > _TIMES_MS[1])
    return pa.array(np.where(outside, 0, values_ms) * 1_000, pa.timestamp("us", "UTC"), mask=outside)
