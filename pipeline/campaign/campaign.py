"""Crash campaigns of our store: what a turn of a shard does.

A shard is a pure function of its description (explore/crashes/shards.py), so its rows do not depend on the process that
runs it: this process, Spark tasks (`pipeline.campaign.turns`), or processes of `tornpage explore`. The
rows (explore/crashes/rows.py) are equal except for the seconds, and the result hash shows that. A *history* is a run:
all sessions that are drawn from one seed. A history that breaks a promise is a row with its token. A history that fails
in the tester is a row too. Neither fails the job.

The verdict of a history is holds, broken or harness. The verdict of a shard is one of these:

* harness, if its worker died;
* vacuous, if no canary was caught and none of its histories is broken;
* holds, otherwise.

Histories share nothing, so `images` counts the distinct ones within one history.

`pipeline.campaign.files` describes the output directory, `pipeline.campaign.summary` computes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tornpage.pipeline.campaign.files import CRASHES, CampaignFiles, CampaignTable
from tornpage.pipeline.campaign.turns import TurnRows
from tornpage.pipeline.rows.outputs import claim
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.rows import Row, death_row, progress_of, rows_of
from tornpage.properties.explore.crashes.shards import Shard, ShardProgress, ShardRun, run_shard

__all__ = ["CrashCampaign", "prepare_output", "rows_of_shard"]


@dataclass(frozen=True, slots=True)
class CrashCampaign:
    """The kind of campaign that crashes our store."""

    @property
    def table(self) -> CampaignTable:
        """Return the columns and folders of its rows."""
        return CRASHES

    def progress(self, files: CampaignFiles, shard: Shard) -> ShardProgress:
        """Return how far the pages of a shard go. Raises OutputTaken if one is damaged."""
        pages = files.pages(shard.number)
        if pages is None:
            return ShardProgress()
        columns = ("kind", "verdict", "contract", "sentence")
        broken = [row for row in files.rows_of_pages(shard.number, columns) if row["verdict"] != "holds"]
        return progress_of(pages.sums[-1], pages.runs, broken)

    def turn(self, shard: Shard, before: ShardProgress, is_paused: Callable[[], bool]) -> TurnRows[ShardProgress]:
        """Carry out a turn. Errors of histories are not raised."""
        run = ShardRun(shard, before)
        with choose_tracker("auto") as tracker:
            run_shard(run, tracker=tracker, is_paused=is_paused)
        return TurnRows(rows_of(run), run.progress(), not run.paused)

    def lost_row(self, shard: Shard, how: str) -> Row:
        """Return the only row of a shard with a lost turn."""
        return death_row(shard, how)

    def resized(self, shard: Shard, *, number: int, states: int) -> Shard:
        """Return a shard like this one with another number and another number of states."""
        return replace(shard, number=number, states=states)


def rows_of_shard(shard: Shard) -> list[Row]:
    """Run one shard in one turn; return its rows. Errors of histories are not raised."""
    return CrashCampaign().turn(shard, ShardProgress(), lambda: False).rows


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
