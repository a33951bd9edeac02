"""Ways to look for a bug: each is handed settings with the bug, and yields what it has counted and what it has met.

What a strategy draws and how it judges is what the commands draw and judge (`explore crashes`, `check`, `explore
interleavings`); no strategy knows which bug it is after. Each looks until it is told that the time is over, or until
it has nothing left to try.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from hypothesis.errors import Flaky

from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.scheduling import Strategy as Mix
from tornpage.properties.explore.exhaustive.hunting import hunt_exhaustively
from tornpage.properties.explore.interleavings.campaign import InterleavingTally, interleavings
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving
from tornpage.properties.explore.machines.check import MACHINES, TURN_EXAMPLES_MAX, check
from tornpage.properties.program.case import Settings
from tornpage.properties.score.sightings import SeenCase, SeenInterleaving, Sighting

__all__ = [
    "STRATEGIES",
    "Exhaustive",
    "Interleaved",
    "IsOver",
    "Machines",
    "RandomHistories",
    "Strategy",
    "UnknownStrategy",
    "strategies_named",
]

IsOver = Callable[[], bool]
Sought = Iterator[tuple[int, Sighting | None]]
"""The count so far, and what was met there, if anything."""

_EXAMPLES_MAX = 1_000_000
_SEEDS_APART = 1_000
_EXHAUSTED_FIRST = 200
_SHORT_TURN = 4
"""With ten examples a turn the last of eight machines begins after some 2,000 operations: six seconds and more."""


class Strategy(Protocol):
    """A way to look for a bug. `counts` says what its numbers are: states, operations, interleavings."""

    @property
    def counts(self) -> str:
        """What is counted."""

    @property
    def is_seeded(self) -> bool:
        """Whether another seed means other draws; without one a single trial says all."""

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        """Yield the count so far, often, and with it what was met there, if anything.

        It may be left at any time, asks `is_over` itself where it cannot yield, and ends when nothing is left to try.
        Equal arguments yield equal things, however long it is let.
        """


@dataclass(frozen=True, slots=True)
class RandomHistories:
    """Seeded random histories, one after the other, crashed at every event (`tornpage explore`).

    They are of one `mix` of operations and faults, or swarm: each draws its own. Settings that are `fixed` are not
    drawn; the clock is set back by `clock_back_ms` once in each life.
    """

    mix: Mix = "random"

    fixed: Mapping[str, Any] = field(default_factory=dict)
    clock_back_ms: int = 0

    counts = "states"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        tally = Tally()
        for number in count():
            for failure in explore_seed(
                f"{seed}:{number}",
                settings,
                tracker=tracker,
                tally=tally,
                strategy=self.mix,
                fixed=self.fixed,
                clock_back_ms=self.clock_back_ms,
            ):
                yield tally.all_states, None if failure is None else SeenCase(failure)


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """Every crash state of every workload, the workloads growing by an operation at a time (`tornpage exhaust`)."""

    counts = "states"
    is_seeded = False

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        states = hunt_exhaustively(settings.bug, tracker=tracker, disk=settings.disk, is_over=is_over)
        for number, failure in enumerate(states, 1):
            yield number, None if failure is None else SeenCase(failure)


class _TimeIsUp(KeyboardInterrupt):
    """Ends a machine, which otherwise ends by examples only; Hypothesis takes it for a user's interrupt."""


@dataclass(frozen=True, slots=True)
class Machines:
    """Hypothesis machines in turns of so many examples, each of up to `steps` steps (`tornpage check`)."""

    machines: tuple[str, ...] = tuple(MACHINES)
    steps: int = 25
    turn_examples: int = TURN_EXAMPLES_MAX
    fixed: Mapping[str, Any] = field(default_factory=dict)

    counts = "operations"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        before = operations = 0
        ended = False

        def progress(done: int) -> None:
            nonlocal operations, ended
            operations = before + done
            if is_over():
                ended = True
                raise _TimeIsUp

        for number in count():
            try:
                result = check(
                    bug=settings.bug,
                    examples=_EXAMPLES_MAX,
                    steps=self.steps,
                    start_seed=seed + number * _SEEDS_APART,
                    tracker=tracker,
                    machines=self.machines,
                    progress=progress,
                    shrink_tries_max=0,
                    keep_evidence=False,
                    fixed=self.fixed,
                    turn_examples_max=self.turn_examples,
                )
            except (_TimeIsUp, Flaky):
                # an example that repeats an earlier one, and was ended in the middle, is called flaky by Hypothesis
                if not ended:
                    raise
                yield operations, None
                return
            before = operations
            yield operations, None if result.failure is None else SeenCase(result.failure)


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Interleavings of a store's threads, scenario after scenario (`tornpage explore interleavings`)."""

    counts = "interleavings"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        drawn = interleavings(seed, settings.bug, _EXHAUSTED_FIRST, InterleavingTally())
        interleaving = next(drawn)
        for number in count(1):
            ran = run_interleaving(interleaving, tracker=tracker)
            failure = None if ran.broken is None else BrokenInterleaving(interleaving, ran.broken, ran)
            yield number, None if failure is None else SeenInterleaving(failure)
            interleaving = drawn.send(ran)


STRATEGIES: dict[str, Strategy] = {
    "random": RandomHistories(),
    "swarm": RandomHistories(mix="swarm"),
    "exhaustive": Exhaustive(),
    "machine": Machines(turn_examples=_SHORT_TURN),
    "interleavings": Interleaved(),
}
"""What bugs are scored with, by name: the same for every bug."""


class UnknownStrategy(ValueError):
    """There is no strategy of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no strategy {name!r}; there are: {', '.join(STRATEGIES)}")


def strategies_named(names: str) -> tuple[str, ...]:
    """Return the strategies that a list of names with commas between means, all for an empty one.

    Raises UnknownStrategy.
    """
    wanted = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in wanted:
        if name not in STRATEGIES:
            raise UnknownStrategy(name)
    return wanted or tuple(STRATEGIES)
