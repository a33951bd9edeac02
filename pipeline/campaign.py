"""Crash campaigns in shards: each is a range of history seeds, run whole, with a canary of its own.

A shard is a pure function of its description, so that it does not matter who runs it: `run_serial` here, one after the
other, or `campaign` in Spark tasks. The rows are the same but for the seconds, and `result_hash` says so. A history
that breaks a promise is a row with its token, one that trips our own tooling is a row too; neither fails the job.

Rows (`pipeline.schemas.HISTORY_COLUMNS`): one of kind `history` per history, and last of all one of kind `shard`, whose
presence means that the shard is complete. Verdicts of histories: holds, broken, harness; of shards: holds, or vacuous
if the canary was not caught. Histories share nothing, so `images` counts what is distinct within one history.

Layout of an output directory: `campaign.json` (what was asked) and `histories/*.parquet`.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pipeline.schemas import HISTORY_COLUMNS, arrow_schema, batch, ddl
from properties.campaign import caught_canary, required_faults
from properties.case import Settings
from properties.explore import Tally, explore_seed
from properties.recorder.dirty import DirtyTracker, choose_tracker

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

__all__ = [
    "FAILURES_MAX",
    "OutputTaken",
    "Row",
    "Shard",
    "campaign",
    "complete_shards",
    "plan_shards",
    "prepare_output",
    "read_rows",
    "result_hash",
    "run_serial",
    "run_shard",
    "silent_faults",
]

Row = dict[str, Any]
"""One row of `HISTORY_COLUMNS` by name; the maps are dicts."""

FAILURES_MAX = 3
"""Broken histories after which a shard ends."""

_SEEDS_PER_SHARD = 1_000_000
_REPEATED_SHARE = 20
_MEASURED = ("seconds",)
_MAPS = tuple(name for name, kind in HISTORY_COLUMNS.items() if kind.startswith("map"))


class OutputTaken(Exception):
    """The output directory holds something else; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Histories `seed:number` from `number * 1000000` on, until `states` states are counted; whole histories only."""

    number: int
    seed: int
    states: int
    settings: Settings

    def history_seeds(self) -> Iterator[str]:
        """Yield the seeds of the shard's histories."""
        first = self.number * _SEEDS_PER_SHARD
        for number in range(first, first + _SEEDS_PER_SHARD):
            yield f"{self.seed}:{number}"


def plan_shards(count: int, *, states: int, seed: int, settings: Settings) -> list[Shard]:
    """Return `count` shards of `states` counted states each."""
    return [Shard(number, seed, states, settings) for number in range(count)]


def run_shard(shard: Shard) -> list[Row]:
    """Run one shard and its canary; return its rows. Raises nothing that a history raises."""
    started = perf_counter()
    rows: list[Row] = []
    with choose_tracker("auto") as tracker:
        for history_seed in shard.history_seeds():
            rows.append(_history(shard, history_seed, tracker))
            if sum(row["states"] for row in rows) >= shard.states:
                break
            if sum(row["verdict"] != "holds" for row in rows) >= FAILURES_MAX:
                break
        canary = caught_canary(shard.settings, shard.history_seeds(), tracker)
    totals = {name: sum(row[name] for row in rows) for name in ("states", "all_states")}
    verdict = "holds" if canary else "vacuous"
    last = _row(shard, "shard", "", verdict, canary=canary, seconds=perf_counter() - started, **totals)
    return [*rows, last]


def run_serial(shards: Sequence[Shard], out: Path | None = None) -> list[Row]:
    """Run the shards that `out` does not hold yet, one after the other in this process; return the rows of all."""
    done = complete_shards(out) if out is not None else set()
    rows: list[Row] = []
    for shard in shards:
        if shard.number not in done:
            some = run_shard(shard)
            rows += some
            if out is not None:
                _write(some, out / "histories" / f"part-shard-{shard.number:06}.parquet")
    return rows if out is None else read_rows(out, shards)


def campaign(spark: SparkSession, shards: Sequence[Shard], out: Path) -> list[Row]:
    """Run the shards that `out` does not hold yet in Spark tasks, one each; return the rows of all.

    What finished tasks wrote stays when the job or the driver ends early.
    """
    done = complete_shards(out)
    todo = [shard for shard in shards if shard.number not in done]
    if todo:
        planned = spark.sparkContext.broadcast(todo)

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for numbers in batches:
                for number in numbers.column(0).to_pylist():
                    yield _batch(run_shard(planned.value[number]))

        tasks = spark.range(0, len(todo), 1, len(todo)).mapInArrow(task, ddl(HISTORY_COLUMNS))
        tasks.write.mode("append").parquet(str(out.absolute() / "histories"))
    return read_rows(out, shards)


def prepare_output(out: Path, shards: Sequence[Shard], *, resume: bool) -> None:
    """Make the directory, or check that it belongs to the same campaign. Raises OutputTaken and OSError.

    A resumed campaign may have more shards than before, all else must be equal.
    """
    asked = {"seed": shards[0].seed, "states_per_shard": shards[0].states, "settings": asdict(shards[0].settings)}
    path = out / "campaign.json"
    if out.is_dir() and any(out.iterdir()):
        if not path.is_file():
            raise OutputTaken(f"{out} is not empty and holds no campaign; name another --out directory")
        if not resume:
            raise OutputTaken(f"{out} holds a campaign; go on with --resume, or name another --out directory")
        try:
            before = json.loads(path.read_text())
        except ValueError as error:
            raise OutputTaken(f"{path} cannot be read: {error}; name another --out directory") from error
        if before != asked:
            differing = sorted(
                name for name in asked if not isinstance(before, dict) or before.get(name) != asked[name]
            )
            raise OutputTaken(
                f"{out} holds another campaign (other {', '.join(differing)}); name another --out directory"
            )
        return
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asked, indent=2, sort_keys=True) + "\n")


def complete_shards(out: Path) -> set[int]:
    """Return the numbers of the shards whose rows are all there."""
    return {row["shard"] for row in _stored(out, ["kind", "shard"]) if row["kind"] == "shard"}


def read_rows(out: Path, shards: Sequence[Shard]) -> list[Row]:
    """Return the rows of those of `shards` that are complete, in order."""
    rows = _stored(out, list(HISTORY_COLUMNS))
    complete = {row["shard"] for row in rows if row["kind"] == "shard"}.intersection(each.number for each in shards)
    kept = [{**row, **{name: dict(row[name] or ()) for name in _MAPS}} for row in rows if row["shard"] in complete]
    return sorted(kept, key=_order)


def result_hash(rows: Iterable[Row]) -> str:
    """Return the SHA-256 of what rows say, whatever their order; what was measured is left out."""
    digest = hashlib.sha256()
    for row in sorted(rows, key=_order):
        said = {name: value for name, value in row.items() if name not in _MEASURED}
        digest.update(json.dumps(said, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def silent_faults(rows: Iterable[Row], settings: Settings) -> list[str]:
    """Return the fault classes that never fired: without them a campaign says little."""
    fired = {fault for row in rows for fault in row["fired"]}
    return [fault for fault in required_faults(settings.disk) if fault not in fired]


def _history(shard: Shard, history_seed: str, tracker: DirtyTracker) -> Row:
    """Run one history; a twentieth of them is run twice and compared."""
    row = _explored(shard, history_seed, tracker)
    if row["verdict"] != "harness" and zlib.crc32(history_seed.encode()) % _REPEATED_SHARE == 0:
        again = _explored(shard, history_seed, tracker)
        row["repeated"] = True
        if {**again, "repeated": True, "seconds": row["seconds"]} != row:
            sentence = "the history gives other results when it is run again"
            row.update(verdict="harness", sentence=sentence, token=row["token"] or again["token"])
    return row


def _explored(shard: Shard, history_seed: str, tracker: DirtyTracker) -> Row:
    tally = Tally()
    started = perf_counter()
    told: dict[str, Any] = {}
    verdict = "holds"
    try:
        for failure in explore_seed(history_seed, shard.settings, tracker=tracker, tally=tally):
            if failure is not None:
                broken = failure.broken
                told = {"contract": broken.contract, "sentence": broken.sentence, "token": failure.case.token()}
                verdict = "broken"
                break
    except Exception as error:
        told = {"sentence": f"{type(error).__name__}: {error}"}
        verdict = "harness"
    return _row(
        shard,
        "history",
        history_seed,
        verdict,
        states=tally.states,
        all_states=tally.all_states,
        images=len(tally.images),
        images_hash=_hash_of(tally.images),
        recovered=len(tally.recovered),
        recovered_hash=_hash_of(tally.recovered),
        proven_legal=tally.proven_legal,
        armed=dict(tally.armed),
        fired=dict(tally.fired),
        mattered=dict(tally.mattered),
        judged=dict(tally.judged),
        seconds=perf_counter() - started,
        **told,
    )


def _row(shard: Shard, kind: str, history_seed: str, verdict: str, **told: Any) -> Row:
    nothing: Row = {name: {} if name in _MAPS else None for name in HISTORY_COLUMNS}
    return nothing | {
        "kind": kind,
        "shard": shard.number,
        "seed": history_seed,
        "verdict": verdict,
        "repeated": False,
        **told,
    }


def _hash_of(hashes: set[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()


def _order(row: Mapping[str, Any]) -> tuple[int, bool, int]:
    """Sort key: shards by number, histories as they were run, the shard's own row last."""
    return row["shard"], row["kind"] == "shard", int(row["seed"].partition(":")[2] or 0)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    values = [tuple(sorted(v.items()) if isinstance(v, dict) else v for v in row.values()) for row in rows]
    return batch(values, HISTORY_COLUMNS)


def _write(rows: Sequence[Row], path: Path) -> None:
    """Write rows; the file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    pq.write_table(pa.Table.from_batches([_batch(rows)]), unfinished)
    unfinished.replace(path)


def _stored(out: Path, columns: list[str]) -> list[Row]:
    paths = sorted((out / "histories").glob("*.parquet"))
    if not paths:
        return []

    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema({name: HISTORY_COLUMNS[name] for name in columns})
    tables = [pq.read_table(path, columns=columns).cast(schema) for path in paths]
    rows: list[Row] = pa.concat_tables(tables).to_pylist()
    return rows
