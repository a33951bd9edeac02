"""Run a shard: a range of run seeds, with its own canary and all judges shown a violation.

A shard is a pure function of its description. It gives the same result in this process, another one
(properties/campaign/workers.py) or a Spark task (pipeline/campaign/campaign.py): a row for each run
(explore/crashes/rows.py), and equal tallies and failures. Only a time limit or an interrupt makes it depend on anything
else; the shard is then `cut`.

A shard can be run in turns. A turn ends between two runs, and the next one continues after its `ShardProgress`, in any
process. The rows of all turns together do not depend on where a turn ended.
"""

import gc
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from time import perf_counter

from tornpage.model.operations import AimFault
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.replay import Failure, signature
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.factors import SEEDS_PER_SHARD
from tornpage.properties.explore.crashes.scheduling import DEFAULT_STRATEGY, Strategy, configuration_of, silent
from tornpage.properties.explore.crashes.violations import judges_that_go_red
from tornpage.properties.program.case import Disk, Settings

__all__ = [
    "BROKEN_MAX",
    "FAILURES_MAX",
    "REPEATED_SHARE",
    "SHARD_STATES",
    "SeedRun",
    "Shard",
    "ShardProgress",
    "ShardRun",
    "canary_bug",
    "caught_canary",
    "enough",
    "run_shard",
]


NEW_OBJECTS_MAX = 20_000
"""20,000 new objects are about 20 stores with their disks. That is a few megabytes, which fit a processor cache better
than more."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Collect garbage rarely, and only among new objects, while the context is open."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


CANARY_SEEDS_MAX = 20


def canary_bug(disk: Disk) -> str:
    """Return the planted bug that a campaign on a disk has to catch.

    A kill loses nothing that was written, so on the disk `kill` the bug is one that leaves records undispatched.
    """
    return "RMQ-B03" if disk == "kill" else "lying-flush"


def caught_canary(
    base: Settings,
    run_seeds: Iterable[str],
    *,
    strategy: Strategy,
    tracker: DirtyTracker,
    is_over: Callable[[], bool],
) -> str:
    """Return the planted bug that this engine caught in the first of these runs, or "".

    Without a catch, a result without findings proves nothing about the store. All puts wait for their flush, so that a
    flush without a sync shows soon.
    """
    bug = canary_bug(base.disk)
    planted = replace(base, bug=bug)
    for run_seed in islice(run_seeds, CANARY_SEEDS_MAX):
        found = explore_seed(
            run_seed,
            planted,
            tracker=tracker,
            tally=Tally(),
            strategy=strategy,
            fixed={"sync_flush": base.disk != "kill", "pool_buffers": 0},
            is_over=is_over,
        )
        if any(failure is not None for failure in found):
            return bug
        if is_over():
            return ""
    return ""


SHARD_STATES = 1_000
"""The default number of counted states of a shard."""

FAILURES_MAX = 3
"""Different failures after which a shard, and a campaign, ends."""

BROKEN_MAX = 10
"""Runs with any failure or fault after which a shard, and a campaign, ends."""

REPEATED_SHARE = 20
"""One run in so many is repeated."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Describe a range of runs: seeds `seed:n` with n from `number * 1000000` on.

    It ends when `states` states are counted. A shard with failures ends earlier, after `failures_max` different ones.
    In each session one of the `fault_rules` is enabled.
    """

    number: int
    seed: int
    states: int
    settings: Settings
    strategy: Strategy = DEFAULT_STRATEGY
    failures_max: int = FAILURES_MAX
    fault_rules: tuple[AimFault, ...] = ()

    def run_seeds(self, after: int = 0) -> Iterator[str]:
        """Yield the seeds of the shard's runs; leave out the first `after`."""
        first = self.number * SEEDS_PER_SHARD
        for number in range(first + after, first + SEEDS_PER_SHARD):
            yield f"{self.seed}:{number}"


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """Hold what a shard has done so far: everything on which its next run depends.

    `hit` counts what its runs have hit, `breaks` has what they broke. `canary` and `red` are those of `ShardRun`.
    `seconds` is the time spent so far.
    """

    runs: int = 0
    states: int = 0
    all_states: int = 0
    hit: Mapping[str, int] = field(default_factory=dict)
    breaks: tuple[Hashable, ...] = ()
    canary: str = ""
    red: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass
class SeedRun:
    """Hold one run: its counts and how it ended.

    `failure` is a broken promise as first found, `fault` a sentence about a fault of the harness. `repeated` means that
    it was run twice with equal results.
    """

    seed: str
    mix: str = ""
    tally: Tally = field(default_factory=Tally)
    failure: Failure | None = None
    fault: str = ""
    repeated: bool = False
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """Return holds, broken or harness."""
        return "harness" if self.fault else "holds" if self.failure is None else "broken"


@dataclass
class ShardRun:
    """Hold the result of a shard, or of one of its turns.

    `before` is the progress of its earlier turns. `histories` are the runs of this turn. `canary` is the planted bug it
    caught, `red` are the judges that refused their violation. `cut` means that the time limit or an interrupt ended it
    early, `paused` that another turn continues it. `seconds` is the time spent on everything but exploring: repeats,
    canary and violations. `worker` identifies the process, since shards run at the same time.
    """

    shard: Shard
    before: ShardProgress = field(default_factory=ShardProgress)
    histories: list[SeedRun] = field(default_factory=list)
    canary: str = ""
    red: list[str] = field(default_factory=list)
    cut: bool = False
    paused: bool = False
    worker: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.canary = self.canary or self.before.canary
        self.red += self.before.red

    @property
    def states(self) -> int:
        """Return the number of counted states."""
        return self.before.states + sum(history.tally.states for history in self.histories)

    @property
    def all_states(self) -> int:
        """Return the number of all states."""
        return self.before.all_states + sum(history.tally.all_states for history in self.histories)

    @property
    def explored_s(self) -> float:
        """Return the seconds of exploring in this turn, summed over its runs."""
        return sum(history.seconds for history in self.histories)

    @property
    def spent_s(self) -> float:
        """Return the seconds of all turns so far."""
        return self.before.seconds + self.explored_s + sum(self.seconds.values())

    @property
    def needs_canary(self) -> bool:
        """Return whether the shard needs a canary.

        A shard with a finding has shown that it can find.
        """
        return not self.breaks

    @property
    def breaks(self) -> list[Hashable]:
        """Return what its broken runs broke. Equal values are the same failure."""
        broken = [history for history in self.histories if history.verdict != "holds"]
        now = [signature(each.failure.broken) if each.failure and not each.fault else each.fault for each in broken]
        return [*self.before.breaks, *now]

    @property
    def is_full(self) -> bool:
        """Return whether it counted enough states or has enough failures."""
        return self.states >= self.shard.states or enough([self.breaks], self.shard.failures_max) is not None

    def progress(self) -> ShardProgress:
        """Return the progress after this turn."""
        hit = Counter(self.before.hit)
        for history in self.histories:
            hit.update(history.tally.hit)
        return ShardProgress(
            runs=self.before.runs + len(self.histories),
            states=self.states,
            all_states=self.all_states,
            hit={name: count for name, count in hit.items() if count},
            breaks=tuple(self.breaks),
            canary=self.canary,
            red=tuple(sorted(self.red)),
            seconds=self.spent_s,
        )


def enough(breaks: Iterable[Sequence[Hashable]], failures_max: int) -> int | None:
    """Return the index of the first shard at which there are enough failures, or None.

    `breaks` has the failures of each shard. Later shards do not count, so that it does not matter what else was running
    at the same time.
    """
    broken, different = 0, set[Hashable]()
    for place, some in enumerate(breaks):
        broken += len(some)
        different.update(some)
        if len(different) >= failures_max or broken >= BROKEN_MAX:
            return place
    return None


Watch = Callable[[SeedRun], None]
"""Called with the current run after each state."""


@rarely_collected()
def run_shard(
    run: ShardRun,
    *,
    tracker: DirtyTracker,
    is_over: Callable[[], bool] = lambda: False,
    is_given_up: Callable[[], bool] = lambda: False,
    is_paused: Callable[[], bool] = lambda: False,
    watch: Watch = lambda history: None,
) -> None:
    """Run the shard of an empty `run`, and fill it on the way.

    Raises nothing that a run raises. Violations and the canary come first, so that even a shard that is stopped early
    has shown that it can find; later turns have them from the first one. Once `is_over` (time limit) or `is_given_up`
    (interrupt) is true, no further states are explored. An interrupt also ends the canary. The turn ends after at least
    one run once `is_paused` is true.
    """

    def is_ended() -> bool:
        run.cut = run.cut or is_over() or is_given_up()
        return run.cut

    if not run.before.runs:
        try:
            _show_that_it_could_find(run, tracker=tracker, is_given_up=is_given_up)
        except Exception as error:
            run.histories.append(SeedRun("canary", fault=f"{type(error).__name__}: {error}"))
            return
    hit = Counter(run.before.hit)
    for run_seed in run.shard.run_seeds(run.before.runs):
        counted = run.states
        history = SeedRun(run_seed, configuration_of(run.shard.strategy, run_seed).text())
        run.histories.append(history)
        owed = partial(_owed, run.shard, hit)
        _explore(
            run.shard, history, counted, owed, tracker=tracker, is_ended=is_ended, is_stopped=is_given_up, watch=watch
        )
        if is_ended():
            break
        if _is_repeated(run.shard, history):
            with _stage(run, "repeat"):
                _repeat(run.shard, history, counted, owed, tracker=tracker, is_ended=is_ended, is_stopped=is_given_up)
        if run.is_full:
            break
        if is_paused():
            run.paused = True
            break
        hit.update(history.tally.hit)


def _show_that_it_could_find(run: ShardRun, *, tracker: DirtyTracker, is_given_up: Callable[[], bool]) -> None:
    """Let the judges refuse their violations, and catch a planted bug."""
    with _stage(run, "violations"):
        run.red += judges_that_go_red(tracker)
    with _stage(run, "canary"):
        run.canary = caught_canary(
            run.shard.settings,
            run.shard.run_seeds(),
            strategy=run.shard.strategy,
            tracker=tracker,
            is_over=is_given_up,
        )


def _owed(shard: Shard, before: Counter[str], tally: Tally) -> list[str]:
    """Return what must be hit and was not hit by the runs `before` or the current one."""
    return [name for name in silent(tally, shard.settings.disk, judges_refuse=True) if not before[name]]


def _explore(
    shard: Shard,
    history: SeedRun,
    counted: int,
    owed: Callable[[Tally], list[str]],
    *,
    tracker: DirtyTracker,
    is_ended: Callable[[], bool],
    is_stopped: Callable[[], bool],
    watch: Watch,
) -> None:
    """Run one seed into `history`; `counted` states came before it in its shard."""
    started = perf_counter()
    tally = history.tally
    try:
        for failure in explore_seed(
            history.seed,
            shard.settings,
            tracker=tracker,
            tally=tally,
            strategy=shard.strategy,
            fault_rules=shard.fault_rules,
            is_over=lambda: counted + tally.states >= shard.states or is_ended(),
            owed=partial(owed, tally),
            is_stopped=is_stopped,
        ):
            history.seconds = perf_counter() - started
            watch(history)
            if failure is not None:
                history.failure = failure
                break
    except Exception as error:
        history.fault = f"{type(error).__name__}: {error}"
    finally:
        history.seconds = perf_counter() - started


def _is_repeated(shard: Shard, history: SeedRun) -> bool:
    """Return whether to repeat a run: one in twenty, and the first one of a campaign."""
    drawn = zlib.crc32(history.seed.encode()) % REPEATED_SHARE == 0
    return not history.fault and (drawn or history.seed == f"{shard.seed}:0")


def _repeat(
    shard: Shard,
    history: SeedRun,
    counted: int,
    owed: Callable[[Tally], list[str]],
    *,
    tracker: DirtyTracker,
    is_ended: Callable[[], bool],
    is_stopped: Callable[[], bool],
) -> None:
    """Repeat a run and compare everything it counted and found."""
    again = SeedRun(history.seed, history.mix)
    _explore(
        shard,
        again,
        counted,
        owed,
        tracker=tracker,
        is_ended=is_ended,
        is_stopped=is_stopped,
        watch=lambda history: None,
    )
    if is_ended():
        return
    history.repeated = True
    equal = replace(again.tally, seconds=history.tally.seconds) == history.tally
    if not equal or again.failure != history.failure or again.fault:
        history.fault = "a repetition of the run gives other results"


@contextmanager
def _stage(run: ShardRun, name: str) -> Iterator[None]:
    """Measure the time of a stage that is not exploring."""
    started = perf_counter()
    try:
        yield
    finally:
        run.seconds[name] = run.seconds.get(name, 0.0) + perf_counter() - started
