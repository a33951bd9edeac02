"""Campaigns with a peer, which opens the same crash images: what a turn does.

A shard is a number of crash states. Its histories have numbers of their own, so shards share nothing. One JVM of the
peer serves a turn. Rows of kind `history` have the counts of a history, rows of kind `example` the smallest image of
each number that the peer breaks in the shard, and the row of kind `shard` is the last one of its file.

`pipeline.campaign.turns` runs the shards. The rows of a page that sum up its shard so far are the examples, and the row
of kind `page` with the number of states. They are the whole progress of the shard.

A shard with a lost turn has one row of kind `shard` with verdict `harness` and the reason. It is continued when the
campaign is resumed. An output directory has `peer-campaign.json` (the request), `peer-histories` (complete shards) and
`peer-progress` (pages).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from tornpage.peers.errors import PeerError
from tornpage.peers.exploring import Histories, PeerExploration, PeerPlan
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.verdicts import Example, HistoryVerdicts, example_document, example_in
from tornpage.pipeline.campaign.files import CampaignFiles, CampaignTable
from tornpage.pipeline.campaign.turns import RUNS_OF_A_SHARD, TurnRows
from tornpage.pipeline.rows.outputs import claim
from tornpage.pipeline.spark.jobs import Death
from tornpage.pipeline.tables.described import PEER_TABLE
from tornpage.properties.campaign.workers import Control
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.crashes.rows import Row

__all__ = ["PEERS", "PeerCampaign", "PeerProgress", "PeerShard", "explored_in", "peer_shards", "prepare_peer_output"]

REQUEST = "peer-campaign.json"
PEERS = CampaignTable(PEER_TABLE, rows="peer-histories", pages="peer-progress")


@dataclass(frozen=True, slots=True)
class PeerShard:
    """A number of crash states (`plan.states`), and everything that decides them."""

    number: int
    release: Release
    plan: PeerPlan

    @property
    def states(self) -> int:
        """Return the number of crash states after which the shard ends."""
        assert self.plan.states is not None
        return self.plan.states


@dataclass(frozen=True, slots=True)
class PeerProgress:
    """How far a shard is, and the smallest image so far of each number that the peer breaks."""

    runs: int = 0
    states: int = 0
    examples: Mapping[int, Example] = field(default_factory=dict)


def peer_shards(release: Release, plan: PeerPlan, *, shards: int, states_per_shard: int) -> list[PeerShard]:
    """Return the shards of a campaign."""
    each = replace(plan, states=states_per_shard, workers=1)
    return [PeerShard(number, release, each) for number in range(shards)]


@dataclass(frozen=True, slots=True)
class PeerCampaign:
    """The kind of campaign in which a peer opens the same crash images."""

    @property
    def table(self) -> CampaignTable:
        """Return the columns and folders of its rows."""
        return PEERS

    def progress(self, files: CampaignFiles, shard: PeerShard) -> PeerProgress:
        """Return how far the pages of a shard go. Raises OutputTaken if one is damaged."""
        pages = files.pages(shard.number)
        if pages is None:
            return PeerProgress()
        *examples, page = pages.sums
        made = (example_in(row["example"]) for row in examples)
        return PeerProgress(pages.runs, page["states"], {each.ruling.contract: each for each in made})

    def turn(
        self, shard: PeerShard, before: PeerProgress, is_paused: Callable[[], bool]
    ) -> TurnRows[PeerProgress] | Death:
        """Carry out a turn. It is lost if the installation of the peer or the harness fails."""
        started = perf_counter()
        found = PeerExploration("", states=before.states, histories=before.runs, examples=dict(before.examples))
        rows: list[Row] = []
        paused, count = False, 0

        def tell(states: int, at: str) -> None:
            nonlocal count
            count = states

        control = Control(lambda: False, lambda: found.states + count >= shard.states, tell)
        first = shard.number * RUNS_OF_A_SHARD
        try:
            with Histories(shard.release, shard.plan).opened() as carry_out:
                for number in itertools.count(first + before.runs):
                    began, count = perf_counter(), 0
                    made = carry_out(number, control).first(shard.states - found.states)
                    found.add(made, shard.states)
                    rows.append(_history_row(shard, made, perf_counter() - began))
                    if found.states >= shard.states or (paused := is_paused()):
                        break
        except (PeerError, HarnessError) as error:
            return Death(str(error))
        rows += [_example_row(shard, example) for _, example in sorted(found.examples.items())]
        seconds = perf_counter() - started
        last = _end_row(shard, "page", states=found.states) if paused else _end_row(shard, "shard")
        progress = PeerProgress(found.histories, found.states, found.examples)
        return TurnRows([*rows, last | {"seconds": seconds}], progress, not paused)

    def lost_row(self, shard: PeerShard, how: str) -> Row:
        """Return the only row of a shard with a lost turn."""
        return _end_row(shard, "shard", verdict="harness", sentence=how)

    def resized(self, shard: PeerShard, *, number: int, states: int) -> PeerShard:
        """Return a shard like this one with another number and another number of states."""
        return replace(shard, number=number, plan=replace(shard.plan, states=states))


def prepare_peer_output(out: Path, shards: Sequence[PeerShard], *, resume: bool) -> None:
    """Make the directory, or check that it belongs to the same campaign.

    A resumed campaign may have more shards than before; everything else must be equal. Raises OutputTaken, OSError.
    """
    first = shards[0]
    asked = {"peer": f"rocketmq:{first.release.version}", **asdict(first.plan)}
    claim(out, asked, name=REQUEST, what="campaign with a peer", resume=resume)


def explored_in(out: Path, shards: Sequence[PeerShard]) -> PeerExploration:
    """Return the sums over the shards in a directory. Raises OutputTaken if a file is damaged."""
    result = PeerExploration(f"rocketmq:{shards[0].release.version}")
    files = CampaignFiles(out, PEERS)
    for row in files.rows(number for number in files.shards() if number < len(shards)):
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
    return PEERS.row() | {
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
    return PEERS.row() | {
        "kind": "example",
        "shard": shard.number,
        "history": example.history,
        "verdict": "broken",
        "flush": "sync" if example.sync_flush else "async",
        "sentence": example.ruling.sentence,
        "example": example_document(example),
    }


def _end_row(shard: PeerShard, kind: str, **told: Any) -> Row:
    last = (shard.number + 1) * RUNS_OF_A_SHARD - 1
    return PEERS.row(kind=kind, shard=shard.number, history=last, verdict="holds") | told
