"""Campaigns of a foreign store in Spark tasks.

A shard is a number of crash states of the store, in runs with numbers of their own, so shards share nothing. A shard
carries out its runs as `tornpage explore target` does, with a canary of its own, and ends after its limit of different
failures. Rows of kind `history` have the counts of a run, rows of kind `failure` a broken promise of the shard with its
case as found, and the row of kind `shard` is the last one of its file. The driver shrinks the failures of all shards.

A shard that failed has one row of kind `shard` with verdict `harness` and the reason. It is carried out again when the
campaign is resumed. An output directory has `target-campaign.json` (the request) and
`target-histories/part-shard-NNNNNN.parquet`.

Rows and hash are equal in any process as long as the store itself does equal things for equal calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tornpage.pipeline.campaign.shard_files import RUNS_OF_A_SHARD, Row, ShardTable
from tornpage.pipeline.rows.outputs import claim
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.pipeline.tables.described import TARGET_TABLE
from tornpage.properties.campaign.replay import Failure
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.rows import combined_hash
from tornpage.properties.explore.foreign.campaign import (
    TargetPart,
    TargetPlan,
    TargetResult,
    TargetTally,
    run_target_part,
    sum_of_parts,
)
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.program.case import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TargetShard", "explored_in", "prepare_target_output", "run_target_shard", "run_targets_serial",
           "target_campaign", "target_shards"]  # fmt: skip

REQUEST = "target-campaign.json"
_TABLE = ShardTable("target-histories", TARGET_TABLE)

Progress = Callable[[int], None]
"""Called in this process with the number of finished shards."""


@dataclass(frozen=True, slots=True)
class TargetShard:
    """A number of crash states (`plan.states`), and everything that decides them."""

    number: int
    plan: TargetPlan


def target_shards(plan: TargetPlan, *, shards: int, states_per_shard: int) -> list[TargetShard]:
    """Return the shards of a campaign."""
    each = replace(plan, states=states_per_shard, seconds=None)
    return [TargetShard(number, each) for number in range(shards)]


def run_target_shard(shard: TargetShard) -> list[Row]:
    """Carry out a shard; return its rows.

    An unusable store and an error of the harness are a row with the reason. Raises KeyboardInterrupt.
    """
    started = ended = perf_counter()
    rows: list[Row] = []

    def keep(number: int, tally: TargetTally, failures: list[Failure]) -> None:
        nonlocal ended
        began, ended = ended, perf_counter()
        rows.append(_run_row(shard, number, tally, bool(failures), ended - began))

    try:
        with choose_tracker("auto") as tracker:
            first = shard.number * RUNS_OF_A_SHARD
            result = run_target_part(shard.plan, first=first, tracker=tracker, each=keep)
    except (TargetUnusable, HarnessError, OSError) as error:
        return [_lost_row(shard, str(error))]
    if result.interrupted:
        raise KeyboardInterrupt
    rows += [_failure_row(shard, each.failure, each.times) for each in result.found]
    verdict = "broken" if result.found else "holds" if result.canary else "vacuous"
    last = _shard_row(shard, verdict) | {"canary": result.canary, "result_hash": result.result_hash}
    return [*rows, last | {"seconds": perf_counter() - started}]


def run_targets_serial(shards: Sequence[TargetShard], out: Path, *, progress: Progress = lambda done: None) -> None:
    """Run the shards that `out` does not have yet in this process."""
    done = _TABLE.complete(out)
    for ended, shard in enumerate(shards):
        progress(ended)
        if shard.number not in done:
            _TABLE.keep(out, shard.number, run_target_shard(shard))


def target_campaign(
    spark: SparkSession, shards: Sequence[TargetShard], out: Path, *, progress: Progress = lambda done: None
) -> None:
    """Run the shards that `out` does not have yet in Spark tasks, one for each shard.

    This process writes the rows. Finished shards stay when the job or the driver ends early. Raises SparkUnavailable,
    OSError, and the errors of Spark.
    """
    done = _TABLE.complete(out)
    ended = len(done)
    progress(ended)

    def keep(shard: TargetShard, answer: list[Row] | Death) -> None:
        nonlocal ended
        _TABLE.keep(out, shard.number, [_lost_row(shard, answer.how)] if isinstance(answer, Death) else answer)
        ended += 1
        progress(ended)

    do_each(spark, [shard for shard in shards if shard.number not in done], run_target_shard, keep)


def prepare_target_output(out: Path, shards: Sequence[TargetShard], *, resume: bool) -> None:
    """Make the directory, or check that it belongs to the same campaign.

    A resumed campaign may have more shards than before; everything else must be equal. Raises OutputTaken, OSError.
    """
    claim(out, asdict(shards[0].plan), name=REQUEST, what="campaign of a store", resume=resume)


def explored_in(out: Path, shards: Sequence[TargetShard], *, is_cut: bool = False) -> tuple[TargetResult, list[str]]:
    """Return the result of the shards in a directory, and the reasons of lost ones.

    Failures are shrunk unless the campaign `is_cut`. Raises OutputTaken if a file is damaged, TargetUnusable.
    """
    wanted, by_shard = {shard.number for shard in shards}, dict[int, list[Row]]()
    for row in _TABLE.stored(out):
        if row["shard"] in wanted:
            by_shard.setdefault(row["shard"], []).append(row)
    lost = [
        f"shard {row['shard']}: {row['sentence']}"
        for rows in by_shard.values()
        for row in rows
        if row["kind"] == "shard" and row["verdict"] == "harness"
    ]
    with choose_tracker("auto") as tracker:
        result = sum_of_parts(shards[0].plan, _parts(by_shard), tracker=tracker, is_cut=is_cut)
    hashes = [rows[-1]["result_hash"] for _, rows in sorted(by_shard.items()) if rows[-1]["result_hash"]]
    result.result_hash = combined_hash(bytes.fromhex(each) for each in hashes)
    return result, lost


def _parts(by_shard: dict[int, list[Row]]) -> Iterator[TargetPart]:
    for number, rows in sorted(by_shard.items()):
        tally, last = TargetTally(), rows[-1]
        if last["verdict"] == "harness":
            continue
        for row in rows:
            if row["kind"] == "history":
                tally.add(_tally_of(row))
        failures = [(_failure_of(row), row["times"]) for row in rows if row["kind"] == "failure"]
        yield TargetPart(number, tally, last["canary"], failures)


def _tally_of(row: Row) -> TargetTally:
    return TargetTally(
        Counter(row["armed"]),
        Counter(row["fired"]),
        Counter(row["mattered"]),
        row["states"],
        1,
        Counter(row["without_power"]),
        row["reused_only"],
        row["kills_only"],
        row["shape"],
    )


def _failure_of(row: Row) -> Failure:
    return Failure(Case.from_token(row["token"]), GuaranteeBroken(row["contract"], row["sentence"]))


def _run_row(shard: TargetShard, number: int, tally: TargetTally, is_broken: bool, seconds: float) -> Row:
    return _TABLE.row(
        kind="history",
        shard=shard.number,
        history=number,
        verdict="broken" if is_broken else "holds",
        shape=tally.shape,
        states=tally.states,
        armed=dict(tally.enabled),
        fired=dict(tally.hit),
        mattered=dict(tally.effective),
        without_power=dict(tally.without_power),
        reused_only=tally.reused_only,
        kills_only=tally.kills_only,
        seconds=seconds,
    )


def _failure_row(shard: TargetShard, failure: Failure, times: int) -> Row:
    return _shard_row(shard, "broken") | {
        "kind": "failure",
        "times": times,
        "contract": failure.broken.contract,
        "sentence": failure.broken.sentence,
        "token": failure.case.token(),
    }


def _shard_row(shard: TargetShard, verdict: str) -> Row:
    last = (shard.number + 1) * RUNS_OF_A_SHARD - 1
    return _TABLE.row(kind="shard", shard=shard.number, history=last, verdict=verdict)


def _lost_row(shard: TargetShard, reason: str) -> Row:
    return _shard_row(shard, "harness") | {"sentence": reason}
