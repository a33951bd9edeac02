"""Run crash campaigns: shards of runs, carried out by the engine of all campaigns.

A campaign holds only if each shard caught a planted bug, every fault, rule and judge was hit, equal seeds gave equal
results, and the checked crash states are legal (docs/contract.md, "Campaigns"). Its result apart from times is a
function of the shards. They are merged in the order of their numbers, up to the shard at which there were enough
failures.
"""

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import overload

from tornpage.model.operations import AimFault
from tornpage.properties.campaign.coverage import Tally, merged
from tornpage.properties.campaign.engine import (
    Budget,
    CanaryTime,
    Progress,
    ShrinkProgress,
    explore,
    quiet,
    shrink_case,
)
from tornpage.properties.campaign.replay import Failure, signature
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Interrupted, Launcher
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.crashes.rows import Row, result_hash, rows_of
from tornpage.properties.explore.crashes.scheduling import DEFAULT_STRATEGY, Strategy, silent
from tornpage.properties.explore.crashes.shards import (
    FAILURES_MAX,
    SHARD_STATES,
    SeedRun,
    Shard,
    ShardRun,
    enough,
    run_shard,
)
from tornpage.properties.program.case import Settings

__all__ = ["CrashResult", "Plan", "PlannedShards", "death_sentence", "run_campaign"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan what to explore: until `states` states are counted or `seconds` have passed.

    The limit that is reached first ends the campaign, and `failures_max` different failures do as well. In each session
    one of the `fault_rules`, which are I/O fault rules, is enabled.
    """

    settings: Settings
    seed: int
    states: int | None = None
    seconds: float | None = None
    strategy: Strategy = DEFAULT_STRATEGY
    workers: int = 1
    failures_max: int = FAILURES_MAX
    shard_states: int = SHARD_STATES
    fault_rules: tuple[AimFault, ...] = ()

    def shards(self) -> Iterator[Shard]:
        """Yield shards of `shard_states` counted states each.

        The last one has the rest of `states`. The iterator is endless if only time ends the campaign.
        """
        return map(self.shard, count() if self.states is None else range(-(-self.states // self.shard_states)))

    def shard(self, number: int) -> Shard:
        """Return one of these shards."""
        left = self.shard_states if self.states is None else self.states - number * self.shard_states
        return Shard(
            number,
            self.seed,
            min(self.shard_states, left),
            self.settings,
            self.strategy,
            self.failures_max,
            self.fault_rules,
        )


class PlannedShards(Sequence[Shard]):
    """Present the shards of a plan as a sequence; each is made when it is used."""

    def __init__(self, plan: Plan) -> None:
        assert plan.states is not None
        self._plan = plan
        self._many = -(-plan.states // plan.shard_states)

    def __len__(self) -> int:
        return self._many

    @overload
    def __getitem__(self, index: int) -> Shard: ...

    @overload
    def __getitem__(self, index: slice) -> list[Shard]: ...

    def __getitem__(self, index: int | slice) -> Shard | list[Shard]:
        numbers = range(self._many)[index]
        return self._plan.shard(numbers) if isinstance(numbers, int) else [*map(self._plan.shard, numbers)]


CrashResult = CampaignResult[Tally, Failure]
"""The result of a crash campaign."""


def run_campaign(
    plan: Plan, *, tracker: DirtyTracker, progress: Progress, making_small: ShrinkProgress = quiet
) -> CrashResult:
    """Run a campaign.

    A keyboard interrupt ends it and keeps its results. Raises nothing that a run raises.
    """
    explorer = _Explorer(plan, tracker)
    return explore(explorer, workers=plan.workers, seconds=plan.seconds, progress=progress, making_small=making_small)


class _ShardJob:
    """Carry out shards."""

    @contextmanager
    def opened(self) -> Iterator[Callable[[Shard, Control], ShardRun]]:
        """Return the function that carries out shards in this process."""
        with choose_tracker("auto") as tracker:
            yield partial(_carry_out, tracker)


def _carry_out(tracker: DirtyTracker, shard: Shard, control: Control) -> ShardRun:
    run = ShardRun(shard, worker=os.getpid())

    def told(history: SeedRun) -> None:
        control.tell(run.states, history.seed)

    try:
        run_shard(run, tracker=tracker, is_over=control.is_over, is_given_up=control.is_stopped, watch=told)
    except KeyboardInterrupt:
        run.cut = True
        raise Interrupted(run) from None
    return run


class _Explorer:
    """Present the shards of a plan as parts of a campaign."""

    job = _ShardJob()
    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "in parts"

    def __init__(self, plan: Plan, tracker: DirtyTracker) -> None:
        self._plan = plan
        self._tracker = tracker
        self._runs: list[ShardRun] = []
        self._breaks: list[list[Hashable]] = []

    def parts(self) -> Iterator[Shard]:
        """Yield the shards."""
        return self._plan.shards()

    def known(self, part: Shard) -> ShardRun | None:
        """Return None, because a campaign in one process keeps no earlier results."""
        return None

    def tally(self) -> Tally:
        """Return empty counters."""
        return Tally()

    def count(self, made: ShardRun) -> int:
        """Return the number of states."""
        return made.states

    def take(self, result: CrashResult, part: Shard, made: ShardRun | Died[Shard]) -> bool:
        """Take the result of a shard, up to the shard with enough failures."""
        if isinstance(made, Died):
            result.faults.append(death_sentence(made))
            self._breaks.append([result.faults[-1]])
        else:
            self._runs.append(made)
            self._breaks.append(made.breaks)
        return enough(self._breaks, self._plan.failures_max) is None

    def canary(self) -> str:
        """Return an empty string, because each shard has its own canary."""
        return ""

    def conclude(self, result: CrashResult) -> None:
        """Merge the counts and failures of the shards."""
        runs = self._runs
        result.tally = tally = merged(history.tally for run in runs for history in run.histories)
        rows: list[Row] = []
        explored_s: dict[int, float] = {}
        for run in runs:
            rows += rows_of(run)
            tally.effective.update(f"judge_{name}" for name in run.red)
            explored_s[run.worker] = explored_s.get(run.worker, 0.0) + run.explored_s
            for stage, seconds in run.seconds.items():
                tally.seconds[stage] += seconds
            for history in run.histories:
                if history.failure is not None:
                    key = signature(history.failure.broken)
                    result.meet(key, history.failure, history=history.seed, mix=history.mix)
                if history.fault:
                    result.faults.append(f"run {history.seed}: {history.fault}")
        result.result_hash = result_hash(rows)
        result.seconds = max(explored_s.values(), default=0.0)
        result.repeated = sum(history.repeated for run in runs for history in run.histories)
        result.is_cut = result.is_cut or any(run.cut for run in runs)
        result.silent = silent(tally, self._plan.settings.disk, self._plan.fault_rules)
        result.canary = next((run.canary for run in runs if run.canary), "")
        result.without_canary = [run.shard.number for run in runs if run.needs_canary and not run.canary]

    def shrink(self, failure: Failure, budget: Budget, watch: Watch) -> tuple[Failure | None, bool]:
        """Shrink a case."""
        return shrink_case(failure, budget, watch, tracker=self._tracker)

    def describe(self, failure: Failure) -> str:
        """Return the broken guarantee and the case."""
        return f"{failure.broken}; case: {failure.case.token()}"


def death_sentence(died: Died[Shard]) -> str:
    """Return a sentence that says which shard was lost with a worker."""
    first = next(died.part.run_seeds())
    return (
        f"the worker that ran shard {died.part.number} {died.how}: nothing is known of its runs from seed "
        f"{first} on; it was at {died.at or first}"
    )
