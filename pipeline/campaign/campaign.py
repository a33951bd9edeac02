"""Crash campaigns in Spark tasks, one shard each, with their rows as Parquet.

A shard is a pure function of its description (explore/crashes/shards.py), so its rows do not depend on the process that
runs it: `run_serial` in this process, `campaign` in Spark tasks, or `tornpage explore` in processes of its own. The
rows (explore/crashes/rows.py) are equal except for the seconds, and `result_hash` shows that. A history that breaks a
promise is a row with its token. A history that fails in the tester is a row too. Neither fails the job.

Verdicts of histories are holds, broken, harness. Verdicts of shards are holds; vacuous if no canary was caught and none
of its histories broke; harness if its worker died. Histories share nothing, so `images` counts the distinct ones within
one history.

An output directory has `campaign.json` (the request) and `histories/part-shard-NNNNNN.parquet`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tornpage.pipeline.rows.outputs import OutputTaken, claim, whole
from tornpage.pipeline.rows.schemas import HISTORY_COLUMNS, arrow_schema, batch
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.rows import Row, death_row, is_complete, order, result_hash, rows_of
from tornpage.properties.explore.crashes.scheduling import silent
from tornpage.properties.explore.crashes.shards import Shard, ShardRun, run_shard
from tornpage.properties.program.case import Disk

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

__all__ = [
    "campaign",
    "complete_shards",
    "prepare_output",
    "read_rows",
    "result_hash",
    "rows_of_shard",
    "run_serial",
    "silent_in",
]

_MAPS = tuple(name for name, kind in HISTORY_COLUMNS.items() if kind.startswith("map"))


Run = Callable[[Shard], list[Row]]
"""The work on a shard; a function of a module, since workers import it by its name."""


Progress = Callable[[int], None]
"""Called in this process with the number of finished shards."""


def rows_of_shard(shard: Shard) -> list[Row]:
    """Run one shard; return its rows. Errors of histories are not raised."""
    run = ShardRun(shard)
    with choose_tracker("auto") as tracker:
        run_shard(run, tracker=tracker)
    return rows_of(run)


def run_serial(
    shards: Sequence[Shard], out: Path | None = None, *, progress: Progress = lambda done: None
) -> list[Row]:
    """Run the shards that `out` does not have yet in this process; return the rows of all."""
    done = complete_shards(out) if out is not None else set()
    rows: list[Row] = []
    for ended, shard in enumerate(shards):
        progress(ended)
        if shard.number not in done:
            some = rows_of_shard(shard)
            rows += some
            if out is not None:
                _write(some, out / "histories" / _file_of(shard))
    return rows if out is None else read_rows(out, shards)


def campaign(
    spark: SparkSession,
    shards: Sequence[Shard],
    out: Path,
    *,
    run: Run = rows_of_shard,
    progress: Progress = lambda done: None,
) -> list[Row]:
    """Run the shards that `out` does not have yet in Spark tasks; return the rows of all.

    Each shard is one task. The rows come back to this process, which writes them, so workers need not see `out`.
    Finished shards stay when the job or the driver ends early. A shard whose worker died has one row with the error
    until it is run again. Raises SparkUnavailable, OSError, and the errors of Spark.
    """
    done = complete_shards(out)
    ended = len(done)
    progress(ended)

    def keep(shard: Shard, answer: list[Row] | Death) -> None:
        nonlocal ended
        rows = [death_row(shard, answer.how)] if isinstance(answer, Death) else answer
        _write(rows, out / "histories" / _file_of(shard))
        ended += 1
        progress(ended)

    do_each(spark, [shard for shard in shards if shard.number not in done], run, keep)
    return read_rows(out, shards)


def prepare_output(out: Path, shards: Sequence[Shard], *, resume: bool) -> None:
    """Make the directory, or check that it belongs to the same campaign.

    A resumed campaign may have more shards than before; everything else must be equal. Raises OutputTaken if a file is
    damaged.
    """
    first = shards[0]
    asked = {
        "seed": first.seed,
        "states_per_shard": first.states,
        "strategy": first.strategy,
        "failures_max": first.failures_max,
        "settings": asdict(first.settings),
    }
    claim(out, asked, name="campaign.json", what="campaign", resume=resume)


def complete_shards(out: Path) -> set[int]:
    """Return the numbers of the shards with all their rows.

    Raises OutputTaken if a file is damaged.
    """
    return {row["shard"] for row in _stored(out, ["kind", "shard", "verdict"]) if is_complete(row)}


def read_rows(out: Path, shards: Sequence[Shard]) -> list[Row]:
    """Return the rows of those `shards` that are complete or whose worker died, in order.

    Raises OutputTaken if a file is damaged.
    """
    rows = _stored(out, list(HISTORY_COLUMNS))
    ended = {row["shard"] for row in rows if row["kind"] == "shard"}.intersection(each.number for each in shards)
    kept = [{**row, **{name: dict(row[name] or ()) for name in _MAPS}} for row in rows if row["shard"] in ended]
    return sorted(kept, key=order)


def silent_in(rows: Iterable[Row], disk: Disk) -> list[str]:
    """Return the faults, rules and judges that never fired, which weakens a campaign."""
    counted = Tally()
    for row in rows:
        counted.hit.update(row["fired"])
        counted.effective.update(row["mattered"])
    return silent(counted, disk)


def _file_of(shard: Shard) -> str:
    return f"part-shard-{shard.number:06}.parquet"


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    values = [
        tuple(sorted(row[name].items()) if name in _MAPS else row[name] for name in HISTORY_COLUMNS) for row in rows
    ]
    return batch(values, HISTORY_COLUMNS)


def _write(rows: Sequence[Row], path: Path) -> None:
    """Write rows; the file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    with whole(path) as unfinished:
        pq.write_table(pa.Table.from_batches([_batch(rows)]), unfinished)


def _stored(out: Path, columns: list[str]) -> list[Row]:
    """Return these columns of all rows. Raises OutputTaken if a file is damaged."""
    paths = sorted((out / "histories").glob("*.parquet"))
    if not paths:
        return []

    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema({name: HISTORY_COLUMNS[name] for name in columns})
    rows: list[Row] = []
    for path in paths:
        try:
            rows += pq.read_table(path, columns=columns, partitioning=None).cast(schema).to_pylist()
        except (OSError, pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise OutputTaken(f"{path} cannot be read: {reason}; remove it, and --resume runs it again") from error
    return rows
