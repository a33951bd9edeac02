"""Run every campaign: carry out a plan, try a canary, shrink failures, conclude.

An explorer gives the engine the parts of its plan, a job that carries out one part in any process, a canary, and a way
to shrink a failure. The engine takes the results in the order of the parts, so that only measured time depends on the
number of workers (properties/campaign/workers.py). The verdict is that of `CampaignResult`.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Literal, Protocol, TypeVar

from tornpage.properties.campaign.replay import Failure, Shrunk, replay, shrink
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Died, Job, Launcher, PartProgress, Work
from tornpage.properties.disk.dirty import DirtyTracker

__all__ = [
    "Budget",
    "CanaryTime",
    "Explorer",
    "Progress",
    "ShrinkProgress",
    "explore",
    "ignored",
    "quiet",
    "shrink_case",
    "shrink_found",
]

Part = TypeVar("Part")
Made = TypeVar("Made")
Counts = TypeVar("Counts")
Broken = TypeVar("Broken")

Progress = Callable[[int, float], None]
"""Called with the count so far and the seconds spent."""

ShrinkProgress = Callable[[int, int, int, int], None]
"""Called with the number of the failure being shrunk (from 1 on), the tries so far, and the operations and lost writes
that remain."""

CanaryTime = Literal["first", "last", "in parts"]
"""When the canary is tried: before the plan, after a plan that found nothing, or by the parts themselves."""

SHRINK_TRIES, LATER_SHRINK_TRIES = 2_000, 400
"""Replays allowed to shrink the first failure, and each later one."""

SHRINK_SECONDS, LATER_SHRINK_SECONDS = 120.0, 30.0
"""Seconds allowed to shrink the first failure, and each later one. Equal seeds give equal documents as long as the
replay limit ends the shrinking. If time ends it, `tornpage shrink` continues from the token."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limit the cost of shrinking one failure."""

    tries_max: int
    seconds: float | None


class Explorer(Protocol[Part, Made, Counts, Broken]):
    """Explore in one particular way. Methods that take the result of the campaign add to it."""

    @property
    def job(self) -> Job[Part, Made]:
        """Return the job that carries out a part. Equal parts give equal results, in any process."""

    @property
    def launcher(self) -> Launcher:
        """Return how workers are started."""

    @property
    def holds_interrupts(self) -> bool:
        """Return whether an interrupt must not be raised inside a part."""

    @property
    def canary_time(self) -> CanaryTime:
        """Return when the canary is tried."""

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the plan in order, each when it is needed."""

    def known(self, part: Part) -> Made | None:
        """Return the result of a part from an earlier run, if it was kept."""

    def tally(self) -> Counts:
        """Return empty counters."""

    def count(self, made: Made) -> int:
        """Return how much a part adds to the count that progress shows."""

    def take(self, result: CampaignResult[Counts, Broken], part: Part, made: Made | Died[Part]) -> bool:
        """Take the result of a part; return whether to continue."""

    def canary(self) -> str:
        """Return the planted bug that the same engine caught, or an empty string."""

    def conclude(self, result: CampaignResult[Counts, Broken]) -> None:
        """Complete the result after the last part: required classes never hit, and the hash."""

    def shrink(self, failure: Broken, budget: Budget, watch: Watch) -> tuple[Broken | None, bool]:
        """Shrink a failure.

        Return the shrunk failure, or None if it does not show again, and whether an interrupt ended the shrinking.
        """

    def describe(self, failure: Broken) -> str:
        """Return the failure and the command to replay it, in one line."""


def ignored(count: int, seconds: float) -> None:
    """Show no progress."""


def quiet(number: int, tries: int, operations: int, losses: int) -> None:
    """Show no progress of shrinking."""


def explore(
    explorer: Explorer[Part, Made, Counts, Broken],
    *,
    workers: int = 1,
    seconds: float | None = None,
    progress: Progress = ignored,
    making_small: ShrinkProgress = quiet,
) -> CampaignResult[Counts, Broken]:
    """Carry out the plan of an explorer.

    An interrupt ends it and keeps the results so far. Raises what a part raises.
    """
    result: CampaignResult[Counts, Broken] = CampaignResult(explorer.tally())
    try:
        if explorer.canary_time == "first":
            _try_canary(explorer, result)
        _carry_out(explorer, result, workers, seconds, progress)
        if explorer.canary_time == "last" and not (result.found or result.interrupted):
            _try_canary(explorer, result)
    except KeyboardInterrupt:
        result.interrupted = result.is_cut = True
    if explorer.canary_time != "in parts" and not result.canary:
        result.without_canary = [0]
    explorer.conclude(result)
    shrink_found(explorer, result, making_small)
    return result


def _try_canary(explorer: Explorer[Part, Made, Counts, Broken], result: CampaignResult[Counts, Broken]) -> None:
    result.canary = explorer.canary()


def _carry_out(
    explorer: Explorer[Part, Made, Counts, Broken],
    result: CampaignResult[Counts, Broken],
    workers: int,
    seconds: float | None,
    progress: Progress,
) -> None:
    started = perf_counter()
    counted: dict[int, int] = {}
    total = 0

    def watch(told: PartProgress) -> None:
        nonlocal total
        total += told.count - counted.get(told.number, 0)
        counted[told.number] = told.count
        progress(total, perf_counter() - started)

    work = Work(
        explorer.job,
        explorer.parts(),
        workers=workers,
        seconds=seconds,
        launcher=explorer.launcher,
        holds_interrupts=explorer.holds_interrupts,
        watch=watch,
        known=explorer.known,
    )
    try:
        with closing(work.results()) as results:
            for number, (part, made) in enumerate(results):
                goes_on = explorer.take(result, part, made)
                result.seconds = perf_counter() - started
                if result.found and result.first_failure_seconds is None:
                    result.first_failure_seconds = result.seconds
                if not isinstance(made, Died):
                    result.shards += 1
                    watch(PartProgress(number, explorer.count(made), ""))
                if not goes_on:
                    break
    finally:
        result.interrupted = result.interrupted or work.interrupted
        result.is_cut = result.is_cut or work.interrupted or work.out_of_time


def shrink_found(
    explorer: Explorer[Part, Made, Counts, Broken],
    result: CampaignResult[Counts, Broken],
    making_small: ShrinkProgress = quiet,
) -> None:
    """Shrink each failure of a result.

    A failure that does not show again counts as a harness fault.
    """
    met, result.found = result.found, []
    for number, each in enumerate(met, 1):
        is_first = not result.found
        budget = Budget(SHRINK_TRIES, SHRINK_SECONDS) if is_first else Budget(LATER_SHRINK_TRIES, LATER_SHRINK_SECONDS)
        small: Broken | None = each.failure
        if not result.interrupted:
            try:
                small, result.interrupted = explorer.shrink(each.failure, budget, partial(making_small, number))
            except KeyboardInterrupt:
                result.interrupted = True
        if small is None:
            result.faults.append(f"a failure does not replay: {explorer.describe(each.failure)}")
        else:
            result.found.append(replace(each, failure=small))


def shrink_case(
    failure: Failure, budget: Budget, watch: Watch, *, tracker: DirtyTracker, keep_evidence: bool = True
) -> tuple[Failure | None, bool]:
    """Replay a failing case and shrink it. Return None if it does not fail again."""
    again = replay(failure.case, tracker=tracker)
    if again is None:
        return None, False
    small: Shrunk = shrink(
        again,
        tracker=tracker,
        tries_max=budget.tries_max,
        seconds=budget.seconds,
        watch=watch,
        keep_evidence=keep_evidence,
    )
    return small, small.ended == "interrupt"
