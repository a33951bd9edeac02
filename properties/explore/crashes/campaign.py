"""A campaign: shards one after the other or at once, what they found put together, and a verdict that says how much
it means.

It holds only if each shard caught a planted bug, every fault, rule and judge fired, equal seeds gave equal results, and
the images that were checked are legal (docs/contract.md, "Campaigns"). Everything it says but times is a function of
the shards, whoever ran them: they are put together in the order of their numbers, up to the one with which there were
enough failures.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, takewhile
from time import perf_counter

from model.operations import AimFault
from properties.campaign.coverage import Tally, merged
from properties.campaign.replay import Failure, Shrunk, replay, shrink, signature
from properties.campaign.shrink import Watch
from properties.contract import Verdict
from properties.disk.dirty import DirtyTracker
from properties.explore.crashes.gates import silent
from properties.explore.crashes.rows import Row, result_hash, rows_of
from properties.explore.crashes.scheduling import Strategy
from properties.explore.crashes.shards import (
    FAILURES_MAX,
    SHARD_STATES,
    HistoryRun,
    Shard,
    ShardRun,
    enough,
    plan_shards,
)
from properties.explore.crashes.workers import Counted, Died, run_here, run_in_workers
from properties.program.case import Settings

__all__ = ["CampaignResult", "Found", "MakingSmall", "Plan", "Progress", "run_campaign"]

Progress = Callable[[int, float], None]
"""Called with the states counted so far and the seconds spent."""

SHRINK_TRIES, LATER_SHRINK_TRIES = 2_000, 400
"""How many replays it may cost to make the first failure small, and each later one."""

SHRINK_SECONDS, LATER_SHRINK_SECONDS = 120.0, 30.0
"""And how long. Equal seeds give equal documents as long as replays end it, as they do on a machine that has time:
where this does, `tornpage shrink` goes on from the token.
"""

MakingSmall = Callable[[int, int, int, int], None]
"""Called with the number of a failure (from 1 on) that is made small, the tries so far, and the operations and lost
facts that are left.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to explore: until `states` states are counted or `seconds` have passed, whichever is given and comes first.

    `failures_max` different failures end it. In each life one of the `aims`, faults of the disk, is armed.
    """

    settings: Settings
    seed: int
    states: int | None = None
    seconds: float | None = None
    strategy: Strategy = "random"
    workers: int = 1
    failures_max: int = FAILURES_MAX
    shard_states: int = SHARD_STATES
    aims: tuple[AimFault, ...] = ()

    def shards(self) -> Iterator[Shard]:
        """Yield the shards, without end when only time ends the campaign."""
        many = self.states if self.states is not None else self.shard_states * 10**9
        return plan_shards(
            many,
            seed=self.seed,
            settings=self.settings,
            strategy=self.strategy,
            failures_max=self.failures_max,
            shard_states=self.shard_states,
            aims=self.aims,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A failure, made small, the mix of the history that met it first, and how many histories met the same one."""

    failure: Failure
    history: str
    mix: str
    times: int


@dataclass
class CampaignResult:
    """What a campaign found.

    `silent` names faults, rules and judges that never fired, `faults` what our own tooling did wrong; `canaries` is in
    how many of the `shards` a planted bug was caught, where one was needed. `seconds` is how long it explored: of
    several workers, the one that took longest.
    """

    verdict: Verdict
    tally: Tally
    seconds: float = 0.0
    found: list[Found] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    shards: int = 0
    without_canary: list[int] = field(default_factory=list)
    canary: str = ""
    repeated: int = 0
    interrupted: bool = False
    is_cut: bool = False
    result_hash: str = ""

    @property
    def failure(self) -> Failure | None:
        """The first failure."""
        return self.found[0].failure if self.found else None


class _Collected:
    """The shards that have ended, in whatever order, and those of them that count."""

    def __init__(self, failures_max: int) -> None:
        self._failures_max = failures_max
        self._ended: dict[int, ShardRun | Died] = {}

    def take(self, run: ShardRun | Died) -> bool:
        """Take a shard in; return whether there is reason to go on."""
        self._ended[run.shard.number] = run
        return self._last() is None

    def runs(self) -> list[ShardRun | Died]:
        """Return the shards that count, in order: those up to which there were enough failures, or all."""
        last = self._last()
        return [self._ended[number] for number in sorted(self._ended) if last is None or number <= last]

    def _last(self) -> int | None:
        in_a_row = takewhile(lambda run: run is not None, map(self._ended.get, count()))
        return enough((_breaks(run) for run in in_a_row if run is not None), self._failures_max)


def _breaks(run: ShardRun | Died) -> list[Hashable]:
    return [run.sentence] if isinstance(run, Died) else run.breaks


def run_campaign(
    plan: Plan,
    *,
    tracker: DirtyTracker,
    progress: Progress,
    making_small: MakingSmall = lambda number, tries, operations, losses: None,
) -> CampaignResult:
    """Run a campaign; a keyboard interrupt ends it with what it has. Raises nothing that a history raises."""
    collected, started = _Collected(plan.failures_max), perf_counter()
    counted: dict[int, int] = {}

    def watch(said: Counted) -> None:
        counted[said.shard] = said.states
        progress(sum(counted.values()), perf_counter() - started)

    shards = plan.shards()
    if plan.workers == 1:
        is_through = run_here(shards, seconds=plan.seconds, watch=watch, done=collected.take)
    else:
        is_through = run_in_workers(plan.workers, shards, seconds=plan.seconds, watch=watch, done=collected.take)
    result, runs = _put_together(plan, collected.runs(), interrupted=not is_through)
    _make_small(result, runs, tracker, making_small)
    result.verdict = _verdict(result)
    return result


def _put_together(
    plan: Plan, ended: list[ShardRun | Died], *, interrupted: bool
) -> tuple[CampaignResult, list[ShardRun]]:
    """Return what shards found, its failures and verdict left open, and those of them that came to their end."""
    runs = [run for run in ended if isinstance(run, ShardRun)]
    tally = merged(history.tally for run in runs for history in run.histories)
    result = CampaignResult(Verdict.HOLDS, tally, shards=len(runs), interrupted=interrupted)
    rows: list[Row] = []
    explored_s: dict[int, float] = {}
    for run in runs:
        rows += rows_of(run)
        tally.mattered.update(f"judge_{name}" for name in run.red)
        explored_s[run.worker] = explored_s.get(run.worker, 0.0) + run.explored_s
        for stage, seconds in run.seconds.items():
            tally.seconds[stage] += seconds
    result.result_hash = result_hash(rows)
    result.seconds = max(explored_s.values(), default=0.0)
    result.repeated = sum(history.repeated for run in runs for history in run.histories)
    result.is_cut = any(run.cut for run in runs)
    result.silent = silent(tally, plan.settings.disk, plan.aims)
    result.canary = next((run.canary for run in runs if run.canary), "")
    result.without_canary = [run.shard.number for run in runs if run.needs_canary and not run.canary]
    result.faults = [run.sentence for run in ended if isinstance(run, Died)]
    result.faults += [
        f"history {history.seed}: {history.fault}" for run in runs for history in run.histories if history.fault
    ]
    return result, runs


def _verdict(result: CampaignResult) -> Verdict:
    if result.faults:
        return Verdict.HARNESS
    if result.found:
        return Verdict.BROKEN
    return Verdict.VACUOUS if result.silent or result.without_canary or not result.shards else Verdict.HOLDS


def _make_small(
    result: CampaignResult, runs: Sequence[ShardRun], tracker: DirtyTracker, making_small: MakingSmall
) -> None:
    """Keep failures apart by promise and sentence, and make the first of each kind small."""
    kinds: dict[tuple[int, str], list[HistoryRun]] = {}
    for run in runs:
        for history in run.histories:
            if history.failure is not None:
                kinds.setdefault(signature(history.failure.broken), []).append(history)
    for number, met in enumerate(kinds.values(), 1):
        first = met[0]
        assert first.failure is not None
        budget = (LATER_SHRINK_TRIES, LATER_SHRINK_SECONDS) if result.found else (SHRINK_TRIES, SHRINK_SECONDS)
        failure: Failure | None = first.failure
        if not result.interrupted:
            try:
                failure = small = _small(first.failure, *budget, tracker, partial(making_small, number))
                result.interrupted = small is not None and small.ended == "interrupt"
            except KeyboardInterrupt:
                result.interrupted = True
        if failure is None:
            broken = first.failure.broken
            result.faults.append(f"a failure does not replay: {broken}; case: {first.failure.case.token()}")
        else:
            result.found.append(Found(failure, first.seed, first.mix, len(met)))


def _small(failure: Failure, tries_max: int, seconds: float, tracker: DirtyTracker, watch: Watch) -> Shrunk | None:
    """Return a failure made small, or None if it does not replay."""
    again = replay(failure.case, tracker=tracker)
    if again is None:
        return None
    return shrink(again, tracker=tracker, tries_max=tries_max, seconds=seconds, watch=watch)
