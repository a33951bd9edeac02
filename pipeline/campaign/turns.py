"""Run the shards of any campaign in turns, in Spark tasks or in this process.

The three kinds of campaigns (`Kind`) are crashes of our store (`campaign.py`), crashes of a foreign store
(`targets.py`), and images that a peer opens too (`peers.py`). They differ in what a turn of a shard does and in their
tables.

A turn runs a shard for some seconds (`KEEP_EVERY_S`) and at most `TURN_RUNS_MAX` runs. Its rows are durable before the
next turn of the shard begins. A lost worker or a killed driver therefore costs at most the turns that were under way. A
worker that sees the output directory writes the rows itself. Otherwise it returns them, and the driver writes them.

Everything on which the next run of a shard depends is its progress, a small value. So the rows of a shard do not depend
on where its turns ended, nor on the processes that carried them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tornpage.pipeline.campaign.files import BATCH_ROWS, CampaignFiles, CampaignTable, SharedPlace, parquet_of
from tornpage.pipeline.spark.jobs import Death, do_each
from tornpage.properties.explore.crashes.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "KEEP_EVERY_S",
    "RUNS_OF_A_SHARD",
    "TURN_RUNS_MAX",
    "Kind",
    "Turn",
    "TurnEnd",
    "TurnRows",
    "campaign",
    "run_serial",
    "take_turn",
]

KEEP_EVERY_S = 60.0
"""Seconds after which a turn of a shard ends."""

TURN_RUNS_MAX = BATCH_ROWS
"""Most runs of a turn, which bounds the rows that a task returns."""

RUNS_OF_A_SHARD = 1_000_000
"""The numbers of the runs of a shard begin at a multiple of this, in campaigns of foreign stores and with a peer."""


class AnyShard(Protocol):
    """The description of a shard: its number, and the crash states after which it ends."""

    @property
    def number(self) -> int:
        """Return the number of the shard, from 0."""

    @property
    def states(self) -> int:
        """Return the number of crash states."""


class AnyProgress(Protocol):
    """How far a shard is."""

    @property
    def runs(self) -> int:
        """Return the number of runs so far."""

    @property
    def states(self) -> int:
        """Return the number of crash states so far."""


ShardT = TypeVar("ShardT", bound=AnyShard)
ProgressT = TypeVar("ProgressT", bound=AnyProgress)


@dataclass(frozen=True, slots=True)
class TurnRows(Generic[ProgressT]):
    """What a turn has made: its rows, and the progress after it.

    The rows are those of its runs (kind `history`), then those that sum up the shard so far. The last one has the kind
    `shard` if the turn `is_last`, else `page`.
    """

    rows: list[Row]
    progress: ProgressT
    is_last: bool


class Kind(Protocol[ShardT, ProgressT]):
    """One kind of campaign. Workers get it by its pickle."""

    @property
    def table(self) -> CampaignTable:
        """Return the columns and folders of its rows."""

    def progress(self, files: CampaignFiles, shard: ShardT) -> ProgressT:
        """Return how far the pages of a shard go. Raises OutputTaken if one is damaged."""

    def turn(self, shard: ShardT, before: ProgressT, is_paused: Callable[[], bool]) -> TurnRows[ProgressT] | Death:
        """Carry out a turn, or return why it is lost.

        `is_paused` is asked once after each run, except after the last run of the shard. Once it is true, the turn
        ends.
        """

    def lost_row(self, shard: ShardT, how: str) -> Row:
        """Return the only row of a shard with a lost turn."""

    def resized(self, shard: ShardT, *, number: int, states: int) -> ShardT:
        """Return a shard like this one with another number and another number of states."""


@dataclass(frozen=True, slots=True)
class Turn(Generic[ShardT, ProgressT]):
    """One turn of a shard: what came before, and when it ends."""

    shard: ShardT
    progress: ProgressT
    keep_every_s: float


@dataclass(frozen=True, slots=True)
class TurnEnd(Generic[ProgressT]):
    """The end of a turn: the progress after it.

    `rows` are its rows as Parquet, unless the worker has written them.
    """

    progress: ProgressT
    is_last: bool
    rows: bytes | None


TakeTurn = Callable[[Any, SharedPlace, Any], "TurnEnd[Any] | Death"]
"""The work of a task: kind, place and turn. A function of a module, since workers import it by its name."""

Progress = Callable[[int, int], None]
"""Called in this process with the number of states and of finished shards."""


def take_turn(
    kind: Kind[ShardT, ProgressT], place: SharedPlace, turn: Turn[ShardT, ProgressT]
) -> TurnEnd[ProgressT] | Death:
    """Carry out a turn; write its rows if this process sees the output directory."""
    until, runs = perf_counter() + turn.keep_every_s, 0

    def is_paused() -> bool:
        nonlocal runs
        runs += 1
        return perf_counter() >= until or runs >= TURN_RUNS_MAX

    made = kind.turn(turn.shard, turn.progress, is_paused)
    if isinstance(made, Death):
        return made
    end = TurnEnd(made.progress, made.is_last, parquet_of(made.rows, kind.table))
    if not place.is_seen():
        return end
    _keep(place.files(kind.table), turn, end)
    return TurnEnd(end.progress, end.is_last, None)


def _keep(files: CampaignFiles, turn: Turn[ShardT, ProgressT], end: TurnEnd[ProgressT]) -> None:
    """Write the rows of a turn, if the worker has not done so."""
    number, first = turn.shard.number, turn.progress.runs
    if end.rows is None:
        return
    if end.is_last:
        files.keep_shard(number, first, end.rows)
    else:
        files.keep_page(number, first, end.progress.runs, end.rows)


class _Counted(Generic[ShardT, ProgressT]):
    """Count states and finished shards of those that were asked for, and report them."""

    def __init__(self, shards: Sequence[ShardT], complete: set[int], report: Progress) -> None:
        self._report = report
        self._shards = sum(number < len(shards) for number in complete)
        self._states = self._shards * shards[0].states
        report(self._states, self._shards)

    def begin(self, progress: ProgressT) -> None:
        """Count the pages of a shard."""
        self._states += progress.states

    def turn(self, turn: Turn[ShardT, ProgressT], end: TurnEnd[ProgressT]) -> None:
        """Count a turn."""
        self._states += end.progress.states - turn.progress.states
        self._shards += end.is_last
        self._report(self._states, self._shards)


def run_serial(
    kind: Kind[ShardT, ProgressT],
    shards: Sequence[ShardT],
    place: SharedPlace,
    *,
    keep_every_s: float = KEEP_EVERY_S,
    progress: Progress = lambda states, shards: None,
) -> None:
    """Run the shards that the output directory lacks, in this process."""
    files = place.files(kind.table)
    complete = files.complete()
    counted: _Counted[ShardT, ProgressT] = _Counted(shards, complete, progress)
    for shard in shards:
        if shard.number in complete:
            continue
        turn, is_over = Turn(shard, kind.progress(files, shard), keep_every_s), False
        counted.begin(turn.progress)
        while not is_over:
            end = take_turn(kind, place, turn)
            if isinstance(end, Death):
                files.keep_lost(shard.number, kind.lost_row(shard, end.how))
                break
            counted.turn(turn, end)
            turn, is_over = Turn(shard, end.progress, keep_every_s), end.is_last
    files.remove_empty_folder()


def campaign(
    spark: SparkSession,
    kind: Kind[ShardT, ProgressT],
    shards: Sequence[ShardT],
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
    files = place.files(kind.table)
    complete = files.complete()
    counted: _Counted[ShardT, ProgressT] = _Counted(shards, complete, progress)

    def first_turns() -> Iterator[Turn[ShardT, ProgressT]]:
        for shard in shards:
            if shard.number not in complete:
                turn = Turn(shard, kind.progress(files, shard), keep_every_s)
                counted.begin(turn.progress)
                yield turn

    def keep(turn: Turn[ShardT, ProgressT], answer: TurnEnd[ProgressT] | Death) -> Turn[ShardT, ProgressT] | None:
        if isinstance(answer, Death):
            files.keep_lost(turn.shard.number, kind.lost_row(turn.shard, answer.how))
            return None
        _keep(files, turn, answer)
        counted.turn(turn, answer)
        return None if answer.is_last else Turn(turn.shard, answer.progress, keep_every_s)

    do_each(spark, first_turns(), partial(take, kind, place), keep)
    files.remove_empty_folder()
