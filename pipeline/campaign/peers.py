"""Campaigns with a peer in Spark tasks: both stores open many crash images.

A shard is a number of crash states. Its histories have numbers of their own, so shards share nothing. One JVM of the
peer serves a shard. Rows of kind `history` have the counts of a history, rows of kind `example` the smallest image of
each number that the peer breaks in the shard, and the row of kind `shard` is the last one of its file.

A shard that failed has one row of kind `shard` with verdict `harness` and the reason. It is carried out again when the
campaign is resumed. An output directory has `peer-campaign.json` (the request) and
`peer-histories/part-shard-NNNNNN.parquet`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tornpage.peers.errors import PeerError
from tornpage.peers.exploring import Histories, PeerExploration, PeerPlan
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.verdicts import Example, HistoryVerdicts, example_document, example_in
from tornpage.pipeline.campaign.shard_files import RUNS_OF_A_SHARD, Row, ShardTable
from tornpage.pipeline.rows.outputs import claim
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.pipeline.tables.described import PEER_TABLE
from tornpage.properties.campaign.workers import Control
from tornpage.properties.contract import HarnessError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PeerShard", "complete_peer_shards", "explored_in", "peer_campaign", "peer_shards", "prepare_peer_output",
           "run_peer_shard", "run_peers_serial"]  # fmt: skip

REQUEST = "peer-campaign.json"
ROWS = "peer-histories"
_TABLE = ShardTable(ROWS, PEER_TABLE)
Progress = Callable[[int], None]
"""Called in this process with the number of finished shards."""


@dataclass(frozen=True, slots=True)
class PeerShard:
    """A number of crash states (`plan.states`), and everything that decides them."""

    number: int
    release: Release
    plan: PeerPlan


def peer_shards(release: Release, plan: PeerPlan, *, shards: int, states_per_shard: int) -> list[PeerShard]:
    """Return the shards of a campaign."""
    each = replace(plan, states=states_per_shard, workers=1)
    return [PeerShard(number, release, each) for number in range(shards)]


def run_peer_shard(shard: PeerShard) -> list[Row]:
    """Carry out the histories of a shard up to its number of states; return its rows.

    An error of the peer's installation or of the harness is a row with its reason.
    """
    started = perf_counter()
    states_max = shard.plan.states
    assert states_max is not None
    found = PeerExploration("")
    rows: list[Row] = []
    first = shard.number * RUNS_OF_A_SHARD

    def is_over() -> bool:
        return False

    def tell(count: int, at: str) -> None:
        control_count[0] = count

    control_count = [0]
    control = Control(is_over, lambda: found.states + control_count[0] >= states_max, tell)
    try:
        with Histories(shard.release, shard.plan).opened() as carry_out:
            for number in itertools.count(first):
                began, control_count[0] = perf_counter(), 0
                made = carry_out(number, control).first(states_max - found.states)
                found.add(made, states_max)
                rows.append(_history_row(shard, made, perf_counter() - began))
                if found.states >= states_max:
                    break
    except (PeerError, HarnessError) as error:
        return [_shard_row(shard, "harness", str(error), perf_counter() - started)]
    rows += [_example_row(shard, example) for _, example in sorted(found.examples.items())]
    return [*rows, _shard_row(shard, "holds", "", perf_counter() - started)]


def run_peers_serial(shards: Sequence[PeerShard], out: Path, *, progress: Progress = lambda done: None) -> None:
    """Run the shards that `out` does not have yet in this process."""
    done = complete_peer_shards(out)
    for ended, shard in enumerate(shards):
        progress(ended)
        if shard.number not in done:
            _TABLE.keep(out, shard.number, run_peer_shard(shard))


def peer_campaign(
    spark: SparkSession, shards: Sequence[PeerShard], out: Path, *, progress: Progress = lambda done: None
) -> None:
    """Run the shards that `out` does not have yet in Spark tasks.

    Each shard is one task. The rows come back to this process, which writes them. Finished shards stay when the job or
    the driver ends early. Raises SparkUnavailable, OSError, and the errors of Spark.
    """
    done = complete_peer_shards(out)
    ended = len(done)
    progress(ended)

    def keep(shard: PeerShard, answer: list[Row] | Death) -> None:
        nonlocal ended
        rows = [_shard_row(shard, "harness", answer.how, 0.0)] if isinstance(answer, Death) else answer
        _TABLE.keep(out, shard.number, rows)
        ended += 1
        progress(ended)

    do_each(spark, [shard for shard in shards if shard.number not in done], run_peer_shard, keep)


def prepare_peer_output(out: Path, shards: Sequence[PeerShard], *, resume: bool) -> None:
    """Make the directory, or check that it belongs to the same campaign.

    A resumed campaign may have more shards than before; everything else must be equal. Raises OutputTaken, OSError.
    """
    first = shards[0]
    asked = {"peer": f"rocketmq:{first.release.version}", **asdict(first.plan)}
    claim(out, asked, name=REQUEST, what="campaign with a peer", resume=resume)


def complete_peer_shards(out: Path) -> set[int]:
    """Return the numbers of the shards with all their rows.

    Raises OutputTaken if a file is damaged.
    """
    return _TABLE.complete(out)


def explored_in(out: Path, shards: Sequence[PeerShard]) -> PeerExploration:
    """Return the sums over the shards in a directory. Raises OutputTaken if a file is damaged."""
    result = PeerExploration(f"rocketmq:{shards[0].release.version}")
    wanted = {shard.number for shard in shards}
    for row in sorted((row for row in _TABLE.stored(out) if row["shard"] in wanted), key=lambda row: row["history"]):
        if row["kind"] == "history":
            _add(result, row)
        elif row["kind"] == "example":
            example = example_in(row["example"])
            known = result.examples.get(example.ruling.contract)
            if known is None or example.weight < known.weight:
                result.examples[example.ruling.contract] = example
        elif row["verdict"] == "harness":
            result.lost.append(f"shard {row['shard']}: {row['sentence']}")
    return result


def _add(result: PeerExploration, row: Row) -> None:
    result.states += row["states"]
    result.histories += 1
    result.distinct += row["distinct"]
    result.proven_legal += row["proven_legal"]
    result.peer_states += row["peer_states"]
    result.own_states += row["own_states"]
    result.starts += row["peer_starts"]
    result.seconds += row["seconds"]
    peer = Counter({int(number): count for number, count in row["peer_broken"].items()})
    result.peer_broken += peer
    own = Counter({int(number): count for number, count in row["own_broken"].items()})
    result.own_broken += own
    for number in own:
        result.own_sentences.setdefault(number, row["sentence"])
    if row["verdict"] == "broken" and not own:
        result.lost.append(
            f"history {row['history']}: the peer broke a promise while it was recorded: {row['sentence']}"
        )
    flush = result.by_flush.setdefault(row["flush"], Counter())
    flush["states"] += row["states"]
    flush["broken"] += row["peer_states"]
    result.numbers_by_flush[row["flush"]] = result.numbers_by_flush.get(row["flush"], Counter()) + peer


def _history_row(shard: PeerShard, made: HistoryVerdicts, seconds: float) -> Row:
    own = next((verdict.own[1] for verdict in made.states if verdict.own is not None), "")
    return _TABLE.row() | {
        "kind": "history",
        "shard": shard.number,
        "history": made.number,
        "verdict": "broken" if own or made.ended_by else "holds",
        "flush": "sync" if made.sync_flush else "async",
        "states": len(made.states),
        "distinct": made.distinct,
        "proven_legal": made.proven_legal,
        "peer_states": sum(bool(verdict.peer) for verdict in made.states),
        "own_states": sum(verdict.own is not None for verdict in made.states),
        "peer_broken": {str(number): count for number, count in made.peer_broken.items()},
        "own_broken": {str(number): count for number, count in made.own_broken.items()},
        "peer_starts": made.starts,
        "sentence": own or made.ended_by,
        "seconds": seconds,
    }


def _example_row(shard: PeerShard, example: Example) -> Row:
    return _TABLE.row() | {
        "kind": "example",
        "shard": shard.number,
        "history": example.history,
        "verdict": "broken",
        "flush": "sync" if example.sync_flush else "async",
        "sentence": example.ruling.sentence,
        "example": example_document(example),
    }


def _shard_row(shard: PeerShard, verdict: str, sentence: str, seconds: float) -> Row:
    return _TABLE.row() | {
        "kind": "shard", "shard": shard.number, "verdict": verdict, "sentence": sentence, "seconds": seconds,
        "history": (shard.number + 1) * RUNS_OF_A_SHARD - 1,
    }  # fmt: skip
