"""Define the search strategies.

Each takes settings with a bug and yields counts and detections. A strategy draws and judges like the commands `explore
crashes`, `check` and `explore interleavings`. No strategy uses which bug is planted. Each searches until the time is
over or nothing is left to try.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from hypothesis.errors import Flaky

from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.replay import replay
from tornpage.properties.cluster.replay import CLUSTERS
from tornpage.properties.consumers.replay import CONSUMER_GROUPS
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.cluster.campaign import draw_run
from tornpage.properties.explore.consumers.campaign import draw_run as draw_group_run
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.scheduling import Strategy as Mix
from tornpage.properties.explore.exhaustive.search import search_exhaustively
from tornpage.properties.explore.interleavings.campaign import InterleavingTally, interleavings
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving
from tornpage.properties.explore.machines.check import MACHINES, SHORT_TURNS, TURN_EXAMPLES_MAX, check
from tornpage.properties.explore.raft.campaign import draw_run as draw_raft_run
from tornpage.properties.planted import RAFT_REPRODUCERS
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.cluster_case import ClusterSettings
from tornpage.properties.program.drawing import draw_try_functions
from tornpage.properties.program.group_case import GroupSettings
from tornpage.properties.program.raft_case import RaftSettings
from tornpage.properties.raft.replay import RAFT_GROUPS
from tornpage.properties.score.detections import CaseDetection, Detection, InterleavingDetection, StepsDetection

__all__ = [
    "STRATEGIES",
    "Clusters",
    "ConsumerGroups",
    "Exhaustive",
    "Interleaved",
    "IsOver",
    "Machines",
    "PartPrograms",
    "RandomRuns",
    "Strategy",
    "UnknownStrategy",
    "strategies_named",
    "traced_runs",
]

IsOver = Callable[[], bool]
Sought = Iterator[tuple[int, Detection | None]]
"""The count so far, and the detection made there, if any."""

_EXAMPLES_MAX = 1_000_000
_SEEDS_APART = 1_000
_PART_SEARCHES = 140
"""The searches of part programs beside each scenario of a store, about a turn of all parts. They cost most of the time.
"""

_EXHAUSTED_FIRST = 200


class Strategy(Protocol):
    """Search for a bug.

    `counts` names the unit of its count: states, operations, interleavings.
    """

    @property
    def counts(self) -> str:
        """Return the unit of the count."""

    @property
    def is_seeded(self) -> bool:
        """Return whether another seed gives other draws. Without a seed a single trial is enough."""

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        """Yield the count so far at short intervals, with the detection made there, if any.

        The caller may close the generator at any time. It calls `is_over` itself where it cannot yield, and ends when
        nothing is left to try. Equal arguments yield equal results, whatever the time limit.
        """


@dataclass(frozen=True, slots=True)
class RandomRuns:
    """Run seeded random programs one after the other, crashed at drawn events (`explore`).

    With the `mix` random all draw with the same weights. With covering each has a row of a covering array. Settings in
    `fixed` are not drawn. The clock is set back by `clock_back_ms` once in each session.
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
                yield tally.all_states, None if failure is None else CaseDetection(failure)


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """Check every crash state of every workload, one operation longer at a time (`exhaust`)."""

    counts = "states"
    is_seeded = False

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        states = search_exhaustively(settings.bug, tracker=tracker, disk=settings.disk, is_over=is_over)
        for number, failure in enumerate(states, 1):
            yield number, None if failure is None else CaseDetection(failure)


class _TimeIsUp(KeyboardInterrupt):
    """End a machine at the time limit.

    Otherwise only its number of examples ends it. Hypothesis treats this as a user's interrupt.
    """


@dataclass(frozen=True, slots=True)
class Machines:
    """Run Hypothesis machines in turns of examples, up to `steps` steps each (`check`)."""

    machines: tuple[str, ...] = tuple(MACHINES)
    steps: int = 25
    turn_examples: int | Mapping[str, int] = TURN_EXAMPLES_MAX
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
                # Hypothesis calls an example flaky if it repeats an earlier one that was ended early
                if not ended:
                    raise
                yield operations, None
                return
            before = operations
            yield operations, None if result.failure is None else CaseDetection(result.failure)


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Run interleavings of a store's threads, one scenario after the other.

    The command is `tornpage explore interleavings`.
    """

    counts = "interleavings"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        drawn = interleavings(seed, settings.bug, _EXHAUSTED_FIRST, InterleavingTally(), searches=_PART_SEARCHES)
        interleaving = next(drawn)
        for number in count(1):
            ran = run_interleaving(interleaving, tracker=tracker)
            failure = (
                None if ran.broken is None else BrokenInterleaving(interleaving.as_run(ran.trace), ran.broken, ran)
            )
            yield number, None if failure is None else InterleavingDetection(failure)
            interleaving = drawn.send(ran)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Run drawn clusters, of two and of three nodes in turn (`tornpage explore cluster`)."""

    counts = "states"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        states = 0
        for number in count():
            cluster = ClusterSettings(nodes=2 + number % 2, disk=settings.disk, bug=settings.bug)
            run = draw_run(cluster, f"{seed}:{number}", tracker=tracker)
            states += run.states
            yield states, None if run.failure is None else StepsDetection(run.failure, CLUSTERS)


@dataclass(frozen=True, slots=True)
class ConsumerGroups:
    """Run drawn consumer groups of two and of three members in turn.

    The command is `tornpage explore consumers`.
    """

    counts = "states"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        states = 0
        for number in count():
            group = GroupSettings(members=2 + number % 2, disk=settings.disk, bug=settings.bug)
            run = draw_group_run(group, f"{seed}:{number}", tracker=tracker)
            states += run.states
            yield states, None if run.failure is None else StepsDetection(run.failure, CONSUMER_GROUPS)


@dataclass(frozen=True, slots=True)
class RaftGroups:
    """Run drawn Raft groups, of one to five members in turn (`tornpage explore raft`).

    All members have stores if only a store can show the bug.
    """

    counts = "states"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        states, known = 0, RAFT_REPRODUCERS.get(settings.bug)
        store = known is not None and known.settings.store
        for number in count():
            members = (3, 5, 1, 2, 3, 4)[number % 6]
            group = RaftSettings(members=members, disk=settings.disk, bug=settings.bug, store=store)
            run = draw_raft_run(group, f"{seed}:{number}", tracker=tracker)
            states += run.states
            yield states, None if run.failure is None else StepsDetection(run.failure, RAFT_GROUPS)


@dataclass(frozen=True, slots=True)
class PartPrograms:
    """Compare functions and parts of the store alone, with one drawn number after the other.

    Runs of `explore crashes` do the same now and then, in the operation `try_functions`.
    """

    counts = "programs"
    is_seeded = True

    def seek(self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver) -> Sought:
        rng = random.Random(f"parts {seed}")
        for number in count(1):
            failure = replay(Case(settings, (draw_try_functions(rng),)), tracker=tracker)
            yield number, None if failure is None else CaseDetection(failure)


STRATEGIES: dict[str, Strategy] = {
    "random": RandomRuns(),
    "covering": RandomRuns(mix="covering"),
    "exhaustive": Exhaustive(),
    "machine": Machines(turn_examples=SHORT_TURNS),
    "interleavings": Interleaved(),
    "cluster": Clusters(),
    "consumers": ConsumerGroups(),
    "raft": RaftGroups(),
    "parts": PartPrograms(),
}
"""The strategies by name; all bugs that they can show are scored with the same ones."""


class UnknownStrategy(ValueError):
    """Raise this if no strategy has the given name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no strategy {name!r}; there are: {', '.join(STRATEGIES)}")


def strategies_named(names: str) -> tuple[str, ...]:
    """Return the strategies in a comma-separated list of names, or all for an empty list.

    Raises UnknownStrategy.
    """
    wanted = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in wanted:
        if name not in STRATEGIES:
            raise UnknownStrategy(name)
    return wanted or tuple(STRATEGIES)


# ---- runs that are compared ------------------------------------------------------------------------------------------


def traced_runs(strategy: str, tracker: DirtyTracker) -> Iterator[str]:
    """Yield what each run of a strategy did, as text.

    The text has the end of the run, what happened in it, and what it broke. The runs have fixed seeds. Raises KeyError
    for a strategy without traced runs.
    """
    return {
        "cluster": _traced_clusters,
        "consumers": _traced_groups,
        "raft": _traced_raft,
        "machine": _traced_machines,
        "interleavings": _traced_interleavings,
    }[strategy](tracker)


def _traced_clusters(tracker: DirtyTracker) -> Iterator[str]:
    for number in count():
        run = draw_run(ClusterSettings(nodes=2 + number % 2), f"trace:{number}", tracker=tracker)
        yield f"{run.digest} {_sorted(run.hit)}"


def _traced_groups(tracker: DirtyTracker) -> Iterator[str]:
    for number in count():
        run = draw_group_run(GroupSettings(members=2 + number % 2), f"trace:{number}", tracker=tracker)
        yield f"{run.digest} {_sorted(run.hit)}"


def _traced_raft(tracker: DirtyTracker) -> Iterator[str]:
    for number in count():
        run = draw_raft_run(RaftSettings(members=(3, 5, 1)[number % 3]), f"trace:{number}", tracker=tracker)
        yield f"{run.digest} {_sorted(run.hit)}"


def _traced_machines(tracker: DirtyTracker) -> Iterator[str]:
    for number in count():
        result = check(
            bug="",
            examples=sum(SHORT_TURNS.values()),
            steps=15,
            start_seed=number * _SEEDS_APART,
            tracker=tracker,
            shrink_tries_max=0,
            keep_evidence=False,
            turn_examples_max=SHORT_TURNS,
        )
        tally, failure = result.tally, result.failure
        effects = [(name, _sorted(each)) for name, each in sorted(tally.effects.items())]
        yield f"{tally.examples} {_sorted(tally.fired)} {effects} {failure and failure.broken}"


def _traced_interleavings(tracker: DirtyTracker) -> Iterator[str]:
    drawn = interleavings(0, "", _EXHAUSTED_FIRST, InterleavingTally(), searches=_PART_SEARCHES)
    interleaving = next(drawn)
    while True:
        ran = run_interleaving(interleaving, tracker=tracker)
        yield f"{ran.outcome} {_sorted(ran.effects)} {ran.broken}"
        interleaving = drawn.send(ran)


def _sorted(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted((name, number) for name, number in counted.items() if number)
