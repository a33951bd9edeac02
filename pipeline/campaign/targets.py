"""Campaigns of a foreign store: what a turn of a shard does.

A shard is a number of crash states of the store, in runs with numbers of their own, so shards share nothing. A shard
carries out its runs as `tornpage explore target` does, with a canary of its own, and ends after its limit of different
failures. Rows of kind `history` have the counts of a run, rows of kind `failure` a broken promise of the shard with its
case as found, and the row of kind `shard` is the last one of its file. The driver shrinks the failures of all shards.

`pipeline.campaign.turns` runs the shards. The rows of a page that sum up its shard so far are the failures, and the row
of kind `page` with the counts of all runs. They are the whole progress of the shard.

A shard with a lost turn has one row of kind `shard` with verdict `harness` and the reason. It is continued when the
campaign is resumed. An output directory has `target-campaign.json` (the request), `target-histories` (complete shards)
and `target-progress` (pages).

Rows and hash are equal in any process as long as the store itself does equal things for equal calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter

from tornpage.pipeline.campaign.files import CampaignFiles, CampaignTable
from tornpage.pipeline.campaign.turns import RUNS_OF_A_SHARD, TurnRows
from tornpage.pipeline.rows.outputs import claim
from tornpage.pipeline.spark.jobs import Death
from tornpage.pipeline.tables.described import TARGET_TABLE
from tornpage.properties.campaign.replay import Failure
from tornpage.properties.campaign.result import Found
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.rows import Row, combined_hash
from tornpage.properties.explore.foreign.campaign import (
    TargetPart,
    TargetPlan,
    TargetProgress,
    TargetResult,
    TargetTally,
    run_target_part,
    sum_of_parts,
)
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.program.case import Case

__all__ = ["TARGETS", "TargetCampaign", "TargetShard", "explored_in", "prepare_target_output", "target_shards"]

REQUEST = "target-campaign.json"
TARGETS = CampaignTable(TARGET_TABLE, rows="target-histories", pages="target-progress")


@dataclass(frozen=True, slots=True)
class TargetShard:
    """A number of crash states (`plan.states`), and everything that decides them."""

    number: int
    plan: TargetPlan

    @property
    def states(self) -> int:
        """Return the number of crash states after which the shard ends."""
        assert self.plan.states is not None
        return self.plan.states


def target_shards(plan: TargetPlan, *, shards: int, states_per_shard: int) -> list[TargetShard]:
    """Return the shards of a campaign."""
    each = replace(plan, states=states_per_shard, seconds=None)
    return [TargetShard(number, each) for number in range(shards)]


@dataclass(frozen=True, slots=True)
class TargetCampaign:
    """The kind of campaign that crashes a foreign store."""

    @property
    def table(self) -> CampaignTable:
        """Return the columns and folders of its rows."""
        return TARGETS

    def progress(self, files: CampaignFiles, shard: TargetShard) -> TargetProgress:
        """Return how far the pages of a shard go. Raises OutputTaken if one is damaged."""
        pages = files.pages(shard.number)
        return TargetProgress() if pages is None else _progress_of(pages.sums, pages.runs)

    def turn(
        self, shard: TargetShard, before: TargetProgress, is_paused: Callable[[], bool]
    ) -> TurnRows[TargetProgress] | Death:
        """Carry out a turn. It is lost if the store is unusable or the harness fails.

        Raises KeyboardInterrupt.
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
                made = run_target_part(
                    shard.plan, first=first, tracker=tracker, each=keep, before=before, is_paused=is_paused
                )
        except (TargetUnusable, HarnessError, OSError) as error:
            return Death(str(error))
        if made.interrupted:
            raise KeyboardInterrupt
        progress = made.progress
        rows += [_failure_row(shard, each.failure, each.times) for each in progress.found]
        last = _page_row if made.paused else _shard_row
        rows.append(last(shard, progress) | {"seconds": perf_counter() - started})
        return TurnRows(rows, progress, not made.paused)

    def lost_row(self, shard: TargetShard, how: str) -> Row:
        """Return the only row of a shard with a lost turn."""
        return _end_row(shard, "shard", "harness") | {"sentence": how}

    def resized(self, shard: TargetShard, *, number: int, states: int) -> TargetShard:
        """Return a shard like this one with another number and another number of states."""
        return TargetShard(number, replace(shard.plan, states=states))


def prepare_target_output(out: Path, shards: Sequence[TargetShard], *, resume: bool) -> None:
    """Make the directory, or check that it belongs to the same campaign.

    A resumed campaign may have more shards than before; everything else must be equal. Raises OutputTaken, OSError.
    """
    claim(out, asdict(shards[0].plan), name=REQUEST, what="campaign of a store", resume=resume)


@dataclass
class _Read:
    """What is read of shards beside their parts: hashes, and reasons of lost shards."""

    hashes: list[bytes] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def parts(self, files: CampaignFiles, numbers: Iterable[int]) -> Iterator[TargetPart]:
        """Yield the part of each shard with all its rows; one shard is in memory at a time."""
        for number in numbers:
            tally, failures = TargetTally(), list[tuple[Failure, int]]()
            for row in files.rows([number]):
                if row["kind"] == "history":
                    tally.add(_tally_of(row, 1))
                elif row["kind"] == "failure":
                    failures.append((_failure_of(row), row["times"]))
                elif row["verdict"] == "harness":
                    self.lost.append(f"shard {number}: {row['sentence']}")
                else:
                    self.hashes.append(bytes.fromhex(row["result_hash"]))
                    yield TargetPart(number, tally, row["canary"], failures)


def explored_in(out: Path, shards: Sequence[TargetShard], *, is_cut: bool = False) -> tuple[TargetResult, list[str]]:
    """Return the result of the shards in a directory, and the reasons of lost ones.

    Failures are shrunk unless the campaign `is_cut`. Raises OutputTaken if a file is damaged, TargetUnusable.
    """
    files, read = CampaignFiles(out, TARGETS), _Read()
    numbers = [number for number in files.shards() if number < len(shards)]
    with choose_tracker("auto") as tracker:
        result = sum_of_parts(shards[0].plan, read.parts(files, numbers), tracker=tracker, is_cut=is_cut)
    result.result_hash = combined_hash(read.hashes)
    return result, read.lost


def _progress_of(sums: Sequence[Row], runs: int) -> TargetProgress:
    """Return the progress of a shard from the rows of its last page that sum it up."""
    *failures, page = sums
    found = tuple(Found(_failure_of(row), times=row["times"]) for row in failures)
    return TargetProgress(_tally_of(page, runs), page["canary"], found)


def _tally_of(row: Row, runs: int) -> TargetTally:
    return TargetTally(
        Counter(row["armed"]),
        Counter(row["fired"]),
        Counter(row["mattered"]),
        row["states"],
        runs,
        Counter(row["without_power"]),
        row["reused_only"],
        row["kills_only"],
        row["shape"],
    )


def _counts_of(tally: TargetTally) -> Row:
    return {
        "shape": tally.shape,
        "states": tally.states,
        "armed": dict(tally.enabled),
        "fired": dict(tally.hit),
        "mattered": dict(tally.effective),
        "without_power": dict(tally.without_power),
        "reused_only": tally.reused_only,
        "kills_only": tally.kills_only,
    }


def _failure_of(row: Row) -> Failure:
    broken = GuaranteeBroken(row["contract"], row["sentence"], row["expected"], row["found"])
    return Failure(Case.from_token(row["token"]), broken)


def _run_row(shard: TargetShard, number: int, tally: TargetTally, is_broken: bool, seconds: float) -> Row:
    verdict = "broken" if is_broken else "holds"
    row = TARGETS.row(kind="history", shard=shard.number, history=number, verdict=verdict, seconds=seconds)
    return row | _counts_of(tally)


def _failure_row(shard: TargetShard, failure: Failure, times: int) -> Row:
    broken = failure.broken
    return _end_row(shard, "failure", "broken") | {
        "times": times,
        "contract": broken.contract,
        "sentence": broken.sentence,
        "expected": broken.expected,
        "found": broken.found,
        "token": failure.case.token(),
    }


def _page_row(shard: TargetShard, progress: TargetProgress) -> Row:
    verdict = "broken" if progress.found else "holds"
    return _end_row(shard, "page", verdict) | _counts_of(progress.tally) | {"canary": progress.canary}


def _shard_row(shard: TargetShard, progress: TargetProgress) -> Row:
    verdict = "broken" if progress.found else "holds" if progress.canary else "vacuous"
    return _end_row(shard, "shard", verdict) | {"canary": progress.canary, "result_hash": progress.result_hash}


def _end_row(shard: TargetShard, kind: str, verdict: str) -> Row:
    last = (shard.number + 1) * RUNS_OF_A_SHARD - 1
    return TARGETS.row(kind=kind, shard=shard.number, history=last, verdict=verdict)
