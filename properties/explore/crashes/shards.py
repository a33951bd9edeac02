"""A shard: a range of history seeds, run whole, with a canary of its own and all judges shown a violation.

A shard is a pure function of its description, so that it does not matter who runs it: this process, another one
(properties/campaign/workers.py) or a Spark task (pipeline/campaign/campaign.py). What it gives is a row for each
history (explore/crashes/rows.py), and the same tallies and failures, whoever ran it; only a time limit or an interrupt
makes it depend on anything else, and then it is `cut`.
"""

import gc
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from time import perf_counter

from tornpage.model.operations import AimFault
from tornpage.properties.campaign.coverage import Tally, merged
from tornpage.properties.campaign.replay import Failure, signature
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.scheduling import Strategy, mix_of, silent
from tornpage.properties.explore.crashes.violations import judges_that_go_red
from tornpage.properties.program.case import Disk, Settings

__all__ = [
    "BROKEN_MAX",
    "FAILURES_MAX",
    "FIRST_STATES",
    "SHARD_STATES",
    "HistoryRun",
    "Shard",
    "ShardRun",
    "canary_bug",
    "caught_canary",
    "enough",
    "run_shard",
]


NEW_OBJECTS_MAX = 20_000
"""So many new objects are about 20 stores with their disks: some megabytes, which a cache holds better than more."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Look for garbage rarely, and not among what lives already; afterwards as before."""
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

    A kill loses nothing that was written, so there it is one that leaves a backlog of dispatch undone.
    """
    return "RMQ-B03" if disk == "kill" else "lying-flush"


def caught_canary(
    base: Settings,
    history_seeds: Iterable[str],
    *,
    strategy: Strategy,
    tracker: DirtyTracker,
    is_over: Callable[[], bool],
) -> str:
    """Return the planted bug that this engine caught in the first of these histories, or nothing.

    Then its silence about the store proves nothing. All puts wait for the disk: a flush that lies does so soon.
    """
    bug = canary_bug(base.disk)
    planted = replace(base, bug=bug)
    for history_seed in islice(history_seeds, CANARY_SEEDS_MAX):
        found = explore_seed(
            history_seed,
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
"""Counted states of a shard, unless somebody asks for others."""

FAILURES_MAX = 3
"""Different failures after which a shard, and a campaign, ends."""

FIRST_STATES = 100
"""Counted states of the first history of a shard where time may end the campaign."""

BROKEN_MAX = 10
"""Histories that break, in whatever way, after which a shard, and a campaign, ends."""

SEEDS_PER_SHARD = 1_000_000
_REPEATED_SHARE = 20


@dataclass(frozen=True, slots=True)
class Shard:
    """Histories `seed:number` from `number * 1000000` on, until `states` states are counted.

    A shard with a failure ends before, after `failures_max` different ones. In each life one of the `aims` is armed.
    The first history ends after `first_states`, if they are given, so that all that ends a history comes soon.
    """

    number: int
    seed: int
    states: int
    settings: Settings
    strategy: Strategy = "random"
    failures_max: int = FAILURES_MAX
    aims: tuple[AimFault, ...] = ()
    first_states: int | None = None

    def history_seeds(self) -> Iterator[str]:
        """Yield the seeds of the shard's histories."""
        first = self.number * SEEDS_PER_SHARD
        for number in range(first, first + SEEDS_PER_SHARD):
            yield f"{self.seed}:{number}"


@dataclass
class HistoryRun:
    """One history: what it counted, and how it ended.

    `failure` is a broken promise as it was met; `fault` says in a sentence what our own tooling did wrong. `repeated`
    says that it was run twice, with equal results.
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
        """Holds, broken or harness."""
        return "harness" if self.fault else "holds" if self.failure is None else "broken"


@dataclass
class ShardRun:
    """What a shard came to. `canary` is the planted bug it caught, `red` the judges that refused their violation.

    `cut` says that time or somebody ended it before it was through. `seconds` is everything but exploring: repeats,
    canary and violations. `worker` tells apart the processes in which shards ran at the same time.
    """

    shard: Shard
    histories: list[HistoryRun] = field(default_factory=list)
    canary: str = ""
    red: list[str] = field(default_factory=list)
    cut: bool = False
    worker: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def states(self) -> int:
        """How many states it has counted."""
        return sum(history.tally.states for history in self.histories)

    @property
    def explored_s(self) -> float:
        """Seconds of exploring, one history after the other."""
        return sum(history.seconds for history in self.histories)

    @property
    def needs_canary(self) -> bool:
        """A shard that has found something has shown that it can."""
        return all(history.verdict == "holds" for history in self.histories)

    @property
    def breaks(self) -> list[Hashable]:
        """What its broken histories broke: equal values are the same failure."""
        broken = (history for history in self.histories if history.verdict != "holds")
        return [signature(each.failure.broken) if each.failure and not each.fault else each.fault for each in broken]

    @property
    def is_full(self) -> bool:
        """Whether it counted what it should, or broke often enough."""
        return self.states >= self.shard.states or enough([self.breaks], self.shard.failures_max) is not None


def enough(breaks: Iterable[Sequence[Hashable]], failures_max: int) -> int | None:
    """Return the place of the first shard with which there are enough failures, given what each broke; or None.

    What comes behind that shard counts no more, so that it does not matter what else was run at the same time.
    """
    broken, different = 0, set[Hashable]()
    for place, some in enumerate(breaks):
        broken += len(some)
        different.update(some)
        if len(different) >= failures_max or broken >= BROKEN_MAX:
            return place
    return None


Watch = Callable[[HistoryRun], None]
"""Called after each state with the history under way."""


@rarely_collected()
def run_shard(
    run: ShardRun,
    *,
    tracker: DirtyTracker,
    is_over: Callable[[], bool] = lambda: False,
    is_given_up: Callable[[], bool] = lambda: False,
    watch: Watch = lambda history: None,
) -> None:
    """Run the shard of an empty `run`, which is filled as it goes. Raises nothing that a history raises.

    Violations and canary come first, so that a shard that is broken off has shown that it could have found something.
    Once `is_over` (the time is up) or `is_given_up` (somebody interrupted) no further states are explored; an interrupt
    ends the canary too.
    """

    def is_ended() -> bool:
        run.cut = run.cut or is_over() or is_given_up()
        return run.cut

    try:
        _show_that_it_could_find(run, tracker=tracker, is_given_up=is_given_up)
    except Exception as error:
        run.histories.append(HistoryRun("canary", fault=f"{type(error).__name__}: {error}"))
        return
    for history_seed in run.shard.history_seeds():
        counted = run.states
        history = HistoryRun(history_seed, mix_of(run.shard.strategy, history_seed).text())
        run.histories.append(history)
        owed = partial(_owed, run.shard, merged(each.tally for each in run.histories[:-1]))
        _explore(run.shard, history, counted, owed, tracker=tracker, is_ended=is_ended, watch=watch)
        if is_ended():
            break
        if _is_repeated(run.shard, history):
            with _stage(run, "repeat"):
                _repeat(run.shard, history, counted, owed, tracker=tracker, is_ended=is_ended)
        if run.is_full:
            break


def _show_that_it_could_find(run: ShardRun, *, tracker: DirtyTracker, is_given_up: Callable[[], bool]) -> None:
    """Have the judges refuse what is planted for each, and catch a planted bug."""
    with _stage(run, "violations"):
        run.red += judges_that_go_red(tracker)
    with _stage(run, "canary"):
        run.canary = caught_canary(
            run.shard.settings,
            run.shard.history_seeds(),
            strategy=run.shard.strategy,
            tracker=tracker,
            is_over=is_given_up,
        )


def _owed(shard: Shard, before: Tally, tally: Tally) -> list[str]:
    """Return what has to be hit, and was not by the histories of a shard `before`, nor by the one that counts now."""
    return [name for name in silent(tally, shard.settings.disk, judges_refuse=True) if not before.fired[name]]


def _explore(
    shard: Shard,
    history: HistoryRun,
    counted: int,
    owed: Callable[[Tally], list[str]],
    *,
    tracker: DirtyTracker,
    is_ended: Callable[[], bool],
    watch: Watch,
) -> None:
    """Run one history into `history`, of which `counted` states went before in its shard."""
    started = perf_counter()
    tally = history.tally
    most = shard.states if counted or shard.first_states is None else shard.first_states
    try:
        for failure in explore_seed(
            history.seed,
            shard.settings,
            tracker=tracker,
            tally=tally,
            strategy=shard.strategy,
            aims=shard.aims,
            is_over=lambda: counted + tally.states >= shard.states or tally.states >= most or is_ended(),
            owed=partial(owed, tally),
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


def _is_repeated(shard: Shard, history: HistoryRun) -> bool:
    """A twentieth of all histories, and the first one of a campaign."""
    drawn = zlib.crc32(history.seed.encode()) % _REPEATED_SHARE == 0
    return not history.fault and (drawn or history.seed == f"{shard.seed}:0")


def _repeat(
    shard: Shard,
    history: HistoryRun,
    counted: int,
    owed: Callable[[Tally], list[str]],
    *,
    tracker: DirtyTracker,
    is_ended: Callable[[], bool],
) -> None:
    """Run a history again and compare everything it counted and found."""
    again = HistoryRun(history.seed, history.mix)
    _explore(shard, again, counted, owed, tracker=tracker, is_ended=is_ended, watch=lambda history: None)
    if is_ended():
        return
    history.repeated = True
    equal = replace(again.tally, seconds=history.tally.seconds) == history.tally
    if not equal or again.failure != history.failure or again.fault:
        history.fault = "the history gives other results when it is run again"


@contextmanager
def _stage(run: ShardRun, name: str) -> Iterator[None]:
    """Count the time of what is not exploring."""
    started = perf_counter()
    try:
        yield
    finally:
        run.seconds[name] = run.seconds.get(name, 0.0) + perf_counter() - started
