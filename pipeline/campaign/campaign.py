"""Run crash campaigns: shards in turns, in Spark tasks or in this process.

A shard is a pure function of its description (explore/crashes/shards.py), so its rows do not depend on the process that
runs it: `run_serial` in this process, `campaign` in Spark tasks, or `tornpage explore` in processes of its own. The
rows (explore/crashes/rows.py) are equal except for the seconds, and the result hash shows that. A history that breaks a
promise is a row with its token. A history that fails in the tester is a row too. Neither fails the job.

A turn runs a shard for some seconds (`KEEP_EVERY_S`) and at most `TURN_RUNS_MAX` runs. Its rows are durable before the
next turn of the shard begins. A lost worker or a killed driver therefore costs at most the turns that were under way. A
worker that sees the output directory writes the rows itself. Otherwise it returns them, and the driver writes them.

Verdicts of histories are holds, broken, harness. Verdicts of shards are holds; vacuous if no canary was caught and none
of its histories broke; harness if its worker died. Histories share nothing, so `images` counts the distinct ones within
one history.

`pipeline.campaign.files` describes the output directory, `pipeline.campaign.summary` computes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tornpage.pipeline.campaign.files import BATCH_ROWS, CampaignFiles, SharedPlace, parquet_of
from tornpage.pipeline.rows.outputs import claim
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.rows import Row, death_row, rows_of
from tornpage.properties.explore.crashes.shards import Shard, ShardProgress, ShardRun, run_shard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "KEEP_EVERY_S",
    "TURN_RUNS_MAX",
    "Turn",
    "TurnEnd",
    "campaign",
    "prepare_output",
    "rows_of_shard",
    "run_serial",
    "take_turn",
]

KEEP_EVERY_S = 60.0
"""Seconds after which a turn of a shard ends."""

TURN_RUNS_MAX = BATCH_ROWS
"""Most runs of a turn, which bounds the rows that a task returns."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a shard: what came before, and when it ends."""

    shard: Shard
    progress: ShardProgress
    keep_every_s: float


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn: the progress after it.

    `rows` are its rows as Parquet, unless the worker has written them.
    """

    progress: ShardProgress
    is_last: bool
    rows: bytes | None


TakeTurn = Callable[[SharedPlace, Turn], TurnEnd]
"""The work of a task; a function of a module, since workers import it by its name."""

Progress = Callable[[int, int], None]
"""Called in this process with the number of states and of finished shards."""


def rows_of_shard(shard: Shard) -> list[Row]:
    """Run one shard in one turn; return its rows. Errors of histories are not raised."""
    run = ShardRun(shard)
    with choose_tracker("auto") as tracker:
        run_shard(run, tracker=tracker)
    return rows_of(run)


def take_turn(place: SharedPlace, turn: Turn) -> TurnEnd:
    """Carry out a turn; write its rows if this process sees the output directory."""
    run, until = ShardRun(turn.shard, turn.progress), perf_counter() + turn.keep_every_s

    def is_paused() -> bool:
        return perf_counter() >= until or len(run.histories) >= TURN_RUNS_MAX

    with choose_tracker("auto") as tracker:
        run_shard(run, tracker=tracker, is_paused=is_paused)
    end = TurnEnd(run.progress(), not run.paused, parquet_of(rows_of(run)))
    if not place.is_seen():
        return end
    _keep(place.files(), turn, end)
    return TurnEnd(end.progress, end.is_last, None)


def _keep(files: CampaignFiles, turn: Turn, end: TurnEnd) -> None:
    """Write the rows of a turn, if the worker has not done so."""
    number, first = turn.shard.number, turn.progress.runs
    if end.rows is None:
        return
    if end.is_last:
        files.keep_shard(number, first, end.rows)
    else:
        files.keep_page(number, first, end.progress.runs, end.rows)


class _Counted:
    """Count states and finished shards, and report them."""

    def __init__(self, shards: Sequence[Shard], complete: set[int], report: Progress) -> None:
        self._report = report
        self._shards = sum(number < len(shards) for number in complete)
        self._states = self._shards * shards[0].states
        report(self._states, self._shards)

    def begin(self, progress: ShardProgress) -> None:
        """Count the pages of a shard."""
        self._states += progress.states

    def turn(self, turn: Turn, end: TurnEnd) -> None:
        """Count a turn."""
        self._states += end.progress.states - turn.progress.states
        self._shards += end.is_last
        self._report(self._states, self._shards)


def run_serial(
    shards: Sequence[Shard],
    place: SharedPlace,
    *,
    keep_every_s: float = KEEP_EVERY_S,
    progress: Progress = lambda states, shards: None,
) -> None:
    """Run the shards that the output directory lacks, in this process."""
    files = place.files()
    complete = files.complete()
    counted = _Counted(shards, complete, progress)
    for shard in shards:
        if shard.number in complete:
            continue
        turn, is_complete = Turn(shard, files.progress(shard), keep_every_s), False
        counted.begin(turn.progress)
        while not is_complete:
            end = take_turn(place, turn)
            counted.turn(turn, end)
            turn, is_complete = Turn(shard, end.progress, keep_every_s), end.is_last


def campaign(
    spark: SparkSession,
    shards: Sequence[Shard],
    place: SharedPlace,
    *,
    keep_every_s: float = KEEP_EVERY_S,
    take: TakeTurn = take_turn,
    progress: Progress = lambda states, shards: None,
) -> None:
    """Run the shards that the output directory lacks, a Spark task for each turn.

    Finished shards and pages stay when the job or the driver ends early. A shard whose worker died has one row with the
    error until it is run again. Raises SparkUnavailable, OSError, OutputTaken, and the errors of Spark.
    """
    files = place.files()
    complete = files.complete()
    counted = _Counted(shards, complete, progress)

    def first_turns() -> Iterator[Turn]:
        for shard in shards:
            if shard.number not in complete:
                turn = Turn(shard, files.progress(shard), keep_every_s)
                counted.begin(turn.progress)
                yield turn

    def keep(turn: Turn, answer: TurnEnd | Death) -> Turn | None:
        if isinstance(answer, Death):
            files.keep_death(turn.shard.number, death_row(turn.shard, answer.how))
            return None
        _keep(files, turn, answer)
        counted.turn(turn, answer)
        return None if answer.is_last else Turn(turn.shard, answer.progress, keep_every_s)

    do_each(spark, first_turns(), partial(take, place), keep)


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
