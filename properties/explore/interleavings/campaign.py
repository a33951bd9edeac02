"""Run a campaign of interleavings: some of each scenario, with a canary and repetitions.

It holds only if every effect that the scenarios are made for has happened, the same engine caught a planted bug in the
same run, and equal draws gave equal results. A history whose order was not found in time is `unknown`, which never
counts as holding.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count, islice
from random import Random

from tornpage.properties.campaign.engine import Budget, CanaryTime, Progress, explore
from tornpage.properties.campaign.replay import signature
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Launcher
from tornpage.properties.contract import HarnessError, Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.draws import draw_interleaving, draw_modules, draw_priorities, sequential
from tornpage.properties.explore.interleavings.families import FAMILIES, SMALLEST, Family, topic_deletion
from tornpage.properties.explore.interleavings.part_searches import PartTally, part_searches
from tornpage.properties.explore.interleavings.run import Ran, run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving, shrink
from tornpage.properties.explore.interleavings.token import token_of
from tornpage.properties.scheduler import following

__all__ = ["CANARY", "EFFECTS", "InterleavingResult", "InterleavingTally", "explore_interleavings", "interleavings"]

CANARY = "deleted-beside-puts"
"""The planted bug that must be caught. It shows within some dozens of draws of its scenarios."""

EFFECTS = (
    "commits",
    "puts",
    "rolls",
    "reads_found",
    "queries_found",
    "reads_between",
    "dispatched_between",
    "promises",
    "log_files_deleted",
    "topics_deleted",
    "closed_between",
    "power_losses",
)
"""What must happen in a campaign; otherwise a result without findings proves nothing (`judges.count_effects`)."""

_MODULES_OF_EACH = 3
_DRAWN_OF_EACH = 5
_REPEAT_EVERY = 20
_SEARCHES_FIRST, _SEARCHES_MAX = 2, 24
"""The searches of part programs beside the first scenario, and beside later ones. In between they grow by one.

A short run therefore has enough scenarios for all `EFFECTS`.
"""
_CANARY_MAX = 400
_EXHAUSTED_MAX = 200
"""The number of interleavings of one small scenario tried in order, switching only at locks."""


@dataclass
class InterleavingTally:
    """Count what was run.

    `distinct` has the key of each interleaving, `outcomes` what callers could distinguish. `exhausted` has, for the
    small scenario, the number of interleavings at its locks that were tried, and whether that was all. `parts` counts
    the searches of part programs, and the runs by priorities.
    """

    interleavings: int = 0
    scenarios: int = 0
    unknown: int = 0
    points: int = 0
    distinct: set[bytes] = field(default_factory=set)
    outcomes: set[bytes] = field(default_factory=set)
    effects: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    exhausted: tuple[int, bool] = (0, False)
    parts: PartTally = field(default_factory=PartTally)

    def add(self, ran: Ran) -> None:
        """Count an interleaving."""
        self.interleavings += 1
        self.points += ran.trace.steps
        self.distinct.add(ran.key)
        self.outcomes.add(blake2b(repr(ran.outcome).encode(), digest_size=16).digest())
        self.effects += ran.effects
        self.unknown += ran.verdict is Verdict.UNKNOWN


InterleavingResult = CampaignResult[InterleavingTally, BrokenInterleaving]
"""The result of a campaign of interleavings."""


def explore_interleavings(
    *,
    bug: str,
    seed: int,
    states: int | None,
    seconds: float | None,
    tracker: DirtyTracker,
    progress: Progress,
    families: Sequence[Family] = FAMILIES,
) -> InterleavingResult:
    """Explore until `states` interleavings are run or `seconds` have passed.

    Scenarios are of these `families` in turn. Raises HarnessError if an interleaving does not repeat.
    """
    explorer = _Explorer(bug, seed, states, families, tracker)
    result = explore(explorer, seconds=seconds, progress=progress)
    if result.faults:
        raise HarnessError(result.faults[0])
    return result


@dataclass(frozen=True, slots=True)
class _InterleavingJob:
    """Run interleavings in this process."""

    tracker: DirtyTracker

    @contextmanager
    def opened(self) -> Iterator[Callable[[Interleaving, Control], Ran]]:
        """Return the function that runs an interleaving."""
        yield lambda interleaving, control: run_interleaving(interleaving, tracker=self.tracker)


class _Explorer:
    """Present interleavings as parts of a campaign.

    Each draw depends on the result of the last one.
    """

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "last"

    def __init__(
        self, bug: str, seed: int, states: int | None, families: Sequence[Family], tracker: DirtyTracker
    ) -> None:
        self.job = _InterleavingJob(tracker)
        self._bug, self._seed, self._states, self._families = bug, seed, states, families
        self._tracker = tracker
        self._tally = InterleavingTally()
        self._last: Ran | None = None

    def parts(self) -> Iterator[Interleaving]:
        """Yield interleavings until the requested number is reached."""
        most = _EXHAUSTED_MAX if self._states is None else min(_EXHAUSTED_MAX, self._states // 4)
        drawn = interleavings(self._seed, self._bug, most, self._tally, self._families)
        interleaving = next(drawn)
        while self._states is None or self._tally.interleavings < self._states:
            yield interleaving
            assert self._last is not None
            interleaving = drawn.send(self._last)

    def known(self, part: Interleaving) -> Ran | None:
        """Return None, since no results are kept."""
        return None

    def tally(self) -> InterleavingTally:
        """Return the tally of this campaign, still empty."""
        return self._tally

    def count(self, made: Ran) -> int:
        """Return 1 for each interleaving."""
        return 1

    def take(self, result: InterleavingResult, part: Interleaving, made: Ran | Died[Interleaving]) -> bool:
        """Take the result of an interleaving, up to the first failure.

        Raises HarnessError if one does not repeat.
        """
        assert isinstance(made, Ran)
        self._last = made
        result.tally.add(made)
        if made.broken is not None:
            result.meet(signature(made.broken), BrokenInterleaving(part.as_run(made.trace), made.broken, made))
            return False
        if result.tally.interleavings % _REPEAT_EVERY == 0:
            _repeat(part.as_run(made.trace), made, self._tracker)
            result.repeated += 1
        return True

    def canary(self) -> str:
        """Return the planted bug that was caught."""
        return _caught_canary(self._seed, self._tracker)

    def conclude(self, result: InterleavingResult) -> None:
        """Report what never happened, and the number of histories without an order found in time."""
        result.silent = [effect for effect in EFFECTS if not result.tally.effects[effect]]
        if result.tally.unknown:
            result.undecided.append(f"no order was found in time for {result.tally.unknown} histories")

    def shrink(
        self, failure: BrokenInterleaving, budget: Budget, watch: Watch
    ) -> tuple[BrokenInterleaving | None, bool]:
        """Return the smallest failure found, or the best so far at an interrupt."""
        again = run_interleaving(failure.interleaving, tracker=self._tracker)
        if again.broken is None or again.key != failure.ran.key:
            return None, False
        best = [failure]
        try:
            return shrink(failure, tracker=self._tracker, took=best.append), False
        except KeyboardInterrupt:
            return best[-1], True

    def describe(self, failure: BrokenInterleaving) -> str:
        """Return the broken guarantee and the token."""
        return f"{failure.broken}; {token_of(failure.interleaving)}"


def interleavings(
    seed: int,
    bug: str,
    most: int,
    tally: InterleavingTally,
    families: Sequence[Family] = FAMILIES,
    *,
    searches: int | None = None,
) -> Generator[Interleaving, Ran, None]:
    """Yield interleavings without end, and receive the result of each.

    The first `most` of them are those of a small scenario in order. Afterwards a scenario of a family and `searches` of
    programs of single parts take turns. Without that number there are few of them beside the first scenarios. A planted
    bug changes the parts of a store, so there are no part programs then.
    """
    yield from _in_order(_planted(SMALLEST, bug), most, tally)
    of_parts = part_searches(Random(f"parts {seed}"), tally.parts) if not bug and families is FAMILIES else iter(())
    for number in count():
        beside = min(_SEARCHES_FIRST + number, _SEARCHES_MAX) if searches is None else searches
        for search in islice(of_parts, beside):
            yield from search
        drawn = families[number % len(families)](Random(f"interleaving {seed}:{number}"))
        yield from _of_scenario(_planted(drawn, bug), tally, seed, number)


def _of_scenario(
    scenario: Scenario, tally: InterleavingTally, seed: int, number: int
) -> Generator[Interleaving, Ran, None]:
    """Yield interleavings of one scenario in the ways that are drawn, in turns."""
    rng = Random(f"ways {seed}:{number}")
    tally.scenarios += 1
    tally.families[scenario.name] += 1
    for _ in range(_MODULES_OF_EACH):
        modules = draw_modules(rng)
        ran = yield sequential(scenario, modules)
        for way in range(_DRAWN_OF_EACH):
            if way % 2 and scenario.task_count > 1:
                drawn = draw_priorities(scenario, rng, modules=modules, steps=ran.trace.steps)
                tally.parts.drawn(scenario.task_count, ran.trace.steps, len(drawn.changes or ()) + 1)
                yield drawn
            else:
                yield draw_interleaving(scenario, rng, modules=modules, points=len(ran.trace.options))


def _planted(scenario: Scenario, bug: str) -> Scenario:
    return replace(scenario, settings=replace(scenario.settings, bug=bug))


def _in_order(scenario: Scenario, most: int, tally: InterleavingTally) -> Generator[Interleaving, Ran, None]:
    """Yield up to `most` interleavings of a small scenario that switch only at locks."""
    schedule: tuple[int, ...] | None = ()
    while schedule is not None and tally.exhausted[0] < most:
        ran = yield replace(sequential(scenario, ()), schedule=schedule)
        schedule = following(schedule, ran.trace.options)
        tally.exhausted = tally.exhausted[0] + 1, schedule is None


def _repeat(interleaving: Interleaving, before: Ran, tracker: DirtyTracker) -> None:
    """Repeat an interleaving and compare what it did and what callers received."""
    again = run_interleaving(interleaving, tracker=tracker)
    if (again.key, again.outcome, again.verdict) != (before.key, before.outcome, before.verdict):
        raise HarnessError(f"a repetition of an interleaving gives other results: {token_of(interleaving)}")


def _caught_canary(seed: int, tracker: DirtyTracker) -> str:
    """Return the planted bug that this engine caught within some interleavings, or ""."""
    drawn = interleavings(seed, CANARY, 0, InterleavingTally(), (topic_deletion,))
    interleaving = next(drawn)
    for _ in range(_CANARY_MAX):
        ran = run_interleaving(interleaving, tracker=tracker)
        if ran.broken is not None:
            return CANARY
        interleaving = drawn.send(ran)
    return ""
