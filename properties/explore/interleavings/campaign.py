"""A campaign of interleavings: scenarios one after the other, several interleavings of each, a canary, repeats.

It holds only if everything that scenarios are there for did happen, a planted bug was caught by the same engine in the
same run, and equal draws gave equal results. `unknown` is a history whose order nobody found in time: never green.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count
from random import Random

from tornpage.properties.campaign.engine import Budget, CanaryTime, Progress, explore
from tornpage.properties.campaign.replay import signature
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Launcher
from tornpage.properties.contract import HarnessError, Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.draws import draw_interleaving, draw_modules, sequential
from tornpage.properties.explore.interleavings.families import FAMILIES, SMALLEST, Family, topic_deletion
from tornpage.properties.explore.interleavings.run import Ran, run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving, shrink
from tornpage.properties.explore.interleavings.token import token_of
from tornpage.properties.scheduler import following

__all__ = ["CANARY", "EFFECTS", "InterleavingResult", "InterleavingTally", "explore_interleavings", "interleavings"]

CANARY = "deleted-beside-puts"
"""The planted bug that has to be caught: found in some dozens of draws of the scenarios in which it can show."""

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
)
"""What has to happen in a campaign, or its silence proves nothing (`judges.count_effects`)."""

_MODULES_OF_EACH = 3
_DRAWN_OF_EACH = 5
_REPEAT_EVERY = 20
_CANARY_MAX = 400
_EXHAUSTED_MAX = 200
"""How many interleavings of one small scenario are tried in order, switching at locks alone."""


@dataclass
class InterleavingTally:
    """What was run: `distinct` has the key of each interleaving, `outcomes` what callers could tell apart.

    `exhausted` says, for the small scenario, how many interleavings at its locks were tried and whether that was all.
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

    def add(self, ran: Ran) -> None:
        """Count an interleaving."""
        self.interleavings += 1
        self.points += ran.trace.steps
        self.distinct.add(ran.key)
        self.outcomes.add(blake2b(repr(ran.outcome).encode(), digest_size=16).digest())
        self.effects += ran.effects
        self.unknown += ran.verdict is Verdict.UNKNOWN


InterleavingResult = CampaignResult[InterleavingTally, BrokenInterleaving]
"""What a campaign of interleavings found."""


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
    """Explore until `states` interleavings are run or `seconds` have passed, whichever is given and comes first.

    Scenarios are of these `families` in turn. Raises HarnessError when an interleaving does not repeat.
    """
    explorer = _Explorer(bug, seed, states, families, tracker)
    result = explore(explorer, seconds=seconds, progress=progress)
    if result.faults:
        raise HarnessError(result.faults[0])
    return result


@dataclass(frozen=True, slots=True)
class _InterleavingJob:
    """Runs interleavings in this process."""

    tracker: DirtyTracker

    @contextmanager
    def opened(self) -> Iterator[Callable[[Interleaving, Control], Ran]]:
        """Return what runs an interleaving."""
        yield lambda interleaving, control: run_interleaving(interleaving, tracker=self.tracker)


class _Explorer:
    """Interleavings as parts of a campaign; what is drawn next depends on what became of the last one."""

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
        """Yield interleavings until there are as many as were asked for."""
        most = _EXHAUSTED_MAX if self._states is None else min(_EXHAUSTED_MAX, self._states // 4)
        drawn = interleavings(self._seed, self._bug, most, self._tally, self._families)
        interleaving = next(drawn)
        while self._states is None or self._tally.interleavings < self._states:
            yield interleaving
            assert self._last is not None
            interleaving = drawn.send(self._last)

    def known(self, part: Interleaving) -> Ran | None:
        """Know none."""
        return None

    def tally(self) -> InterleavingTally:
        """Return the tally of this campaign, still of nothing."""
        return self._tally

    def count(self, made: Ran) -> int:
        """Count interleavings."""
        return 1

    def take(self, result: InterleavingResult, part: Interleaving, made: Ran | Died[Interleaving]) -> bool:
        """Take an interleaving in, up to the first failure. Raises HarnessError if one does not repeat."""
        assert isinstance(made, Ran)
        self._last = made
        result.tally.add(made)
        if made.broken is not None:
            result.meet(signature(made.broken), BrokenInterleaving(part, made.broken, made))
            return False
        if result.tally.interleavings % _REPEAT_EVERY == 0:
            _repeat(part, made, self._tracker)
            result.repeated += 1
        return True

    def canary(self) -> str:
        """Return the planted bug that was caught."""
        return _caught_canary(self._seed, self._tracker)

    def conclude(self, result: InterleavingResult) -> None:
        """Say what never happened, and of how many histories no order was found in time."""
        result.silent = [effect for effect in EFFECTS if not result.tally.effects[effect]]
        if result.tally.unknown:
            result.undecided.append(f"of {result.tally.unknown} histories no order was found in time")

    def small(
        self, failure: BrokenInterleaving, budget: Budget, watch: Watch
    ) -> tuple[BrokenInterleaving | None, bool]:
        """Return the smallest failure found, by an interrupt at the latest."""
        again = run_interleaving(failure.interleaving, tracker=self._tracker)
        if again.broken is None or again.key != failure.ran.key:
            return None, False
        best = [failure]
        try:
            return shrink(failure, tracker=self._tracker, took=best.append), False
        except KeyboardInterrupt:
            return best[-1], True

    def told(self, failure: BrokenInterleaving) -> str:
        """Return the broken guarantee and the token."""
        return f"{failure.broken}; {token_of(failure.interleaving)}"


def interleavings(
    seed: int, bug: str, most: int, tally: InterleavingTally, families: Sequence[Family] = FAMILIES
) -> Generator[Interleaving, Ran, None]:
    """Yield interleavings without end, and be sent what became of each; `most` of them are tried in order first."""
    yield from _in_order(_planted(SMALLEST, bug), most, tally)
    for number in count():
        rng = Random(f"interleaving {seed}:{number}")
        scenario = _planted(families[number % len(families)](rng), bug)
        tally.scenarios += 1
        tally.families[scenario.name] += 1
        for _ in range(_MODULES_OF_EACH):
            modules = draw_modules(rng)
            ran = yield sequential(scenario, modules)
            for _ in range(_DRAWN_OF_EACH):
                ran = yield draw_interleaving(scenario, rng, modules=modules, points=len(ran.trace.options))


def _planted(scenario: Scenario, bug: str) -> Scenario:
    return replace(scenario, settings=replace(scenario.settings, bug=bug))


def _in_order(scenario: Scenario, most: int, tally: InterleavingTally) -> Generator[Interleaving, Ran, None]:
    """Yield the interleavings of a small scenario that switch at locks alone, each once, up to a number of them."""
    schedule: tuple[int, ...] | None = ()
    while schedule is not None and tally.exhausted[0] < most:
        ran = yield replace(sequential(scenario, ()), schedule=schedule)
        schedule = following(schedule, ran.trace.options)
        tally.exhausted = tally.exhausted[0] + 1, schedule is None


def _repeat(interleaving: Interleaving, before: Ran, tracker: DirtyTracker) -> None:
    """Run one again and compare what it did, and what callers were told."""
    again = run_interleaving(interleaving, tracker=tracker)
    if (again.key, again.outcome, again.verdict) != (before.key, before.outcome, before.verdict):
        raise HarnessError(f"an interleaving gives other results when it is run again: {token_of(interleaving)}")


def _caught_canary(seed: int, tracker: DirtyTracker) -> str:
    """Return the planted bug that this engine caught within some interleavings, or nothing."""
    drawn = interleavings(seed, CANARY, 0, InterleavingTally(), (topic_deletion,))
    interleaving = next(drawn)
    for _ in range(_CANARY_MAX):
        ran = run_interleaving(interleaving, tracker=tracker)
        if ran.broken is not None:
            return CANARY
        interleaving = drawn.send(ran)
    return ""
