"""A campaign of interleavings: scenarios one after the other, several interleavings of each, a canary, repeats.

It holds only if everything that scenarios are there for did happen, a planted bug was caught by the same engine in the
same run, and equal draws gave equal results. `unknown` is a history whose order nobody found in time: never green.
"""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count
from random import Random
from time import perf_counter

from properties.contract import HarnessError, Verdict
from properties.disk.dirty import DirtyTracker
from properties.explore.interleavings.draws import draw_interleaving, draw_modules, sequential
from properties.explore.interleavings.families import FAMILIES, SMALLEST, Family, topic_deletion
from properties.explore.interleavings.run import Ran, run_interleaving
from properties.explore.interleavings.scenario import Interleaving, Scenario
from properties.explore.interleavings.shrink import BrokenInterleaving, shrink
from properties.explore.interleavings.token import token_of
from properties.scheduler import following

__all__ = ["CANARY", "EFFECTS", "InterleavingResult", "explore_interleavings", "interleavings"]

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
class InterleavingResult:
    """What a campaign found: `distinct` has the key of each interleaving, `outcomes` what callers could tell.

    `exhausted` says, for the small scenario, how many interleavings at its locks were tried and whether that was all.
    """

    verdict: Verdict = Verdict.HOLDS
    interleavings: int = 0
    scenarios: int = 0
    unknown: int = 0
    repeated: int = 0
    points: int = 0
    seconds: float = 0.0
    distinct: set[bytes] = field(default_factory=set)
    outcomes: set[bytes] = field(default_factory=set)
    effects: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    exhausted: tuple[int, bool] = (0, False)
    failure: BrokenInterleaving | None = None
    silent: list[str] = field(default_factory=list)
    canary: str = ""
    interrupted: bool = False

    def took(self, ran: Ran) -> None:
        """Count an interleaving."""
        self.interleavings += 1
        self.points += ran.trace.steps
        self.distinct.add(ran.key)
        self.outcomes.add(blake2b(repr(ran.outcome).encode(), digest_size=16).digest())
        self.effects += ran.effects
        self.unknown += ran.verdict is Verdict.UNKNOWN


def explore_interleavings(
    *,
    bug: str,
    seed: int,
    states: int | None,
    seconds: float | None,
    tracker: DirtyTracker,
    progress: Callable[[int, float], None],
    families: Sequence[Family] = FAMILIES,
) -> InterleavingResult:
    """Explore until `states` interleavings are run or `seconds` have passed, whichever is given and comes first.

    Scenarios are of these `families` in turn. Raises HarnessError when an interleaving does not repeat.
    """
    result, started = InterleavingResult(), perf_counter()

    def is_over() -> bool:
        result.seconds = perf_counter() - started
        progress(result.interleavings, result.seconds)
        return (states is not None and result.interleavings >= states) or (
            seconds is not None and result.seconds >= seconds
        )

    try:
        most = _EXHAUSTED_MAX if states is None else min(_EXHAUSTED_MAX, states // 4)
        drawn = interleavings(seed, bug, most, result, families)
        interleaving = next(drawn)
        while not is_over():
            ran = run_interleaving(interleaving, tracker=tracker)
            result.took(ran)
            if ran.broken is not None:
                _broken(result, BrokenInterleaving(interleaving, ran.broken, ran), tracker)
                return result
            if result.interleavings % _REPEAT_EVERY == 0:
                _repeat(interleaving, ran, tracker)
                result.repeated += 1
            interleaving = drawn.send(ran)
        result.canary = _caught_canary(seed, tracker)
    except KeyboardInterrupt:
        result.interrupted = True
    if result.failure is not None:
        return result
    result.silent = [effect for effect in EFFECTS if not result.effects[effect]]
    if result.unknown:
        result.verdict = Verdict.UNKNOWN
    elif result.silent or not result.canary:
        result.verdict = Verdict.VACUOUS
    return result


def interleavings(
    seed: int, bug: str, most: int, result: InterleavingResult, families: Sequence[Family] = FAMILIES
) -> Generator[Interleaving, Ran, None]:
    """Yield interleavings without end, and be sent what became of each; `most` of them are tried in order first."""
    yield from _in_order(_planted(SMALLEST, bug), most, result)
    for number in count():
        rng = Random(f"interleaving {seed}:{number}")
        scenario = _planted(families[number % len(families)](rng), bug)
        result.scenarios += 1
        result.families[scenario.name] += 1
        for _ in range(_MODULES_OF_EACH):
            modules = draw_modules(rng)
            ran = yield sequential(scenario, modules)
            for _ in range(_DRAWN_OF_EACH):
                ran = yield draw_interleaving(scenario, rng, modules=modules, points=len(ran.trace.options))


def _planted(scenario: Scenario, bug: str) -> Scenario:
    return replace(scenario, settings=replace(scenario.settings, bug=bug))


def _in_order(scenario: Scenario, most: int, result: InterleavingResult) -> Generator[Interleaving, Ran, None]:
    """Yield the interleavings of a small scenario that switch at locks alone, each once, up to a number of them."""
    schedule: tuple[int, ...] | None = ()
    while schedule is not None and result.exhausted[0] < most:
        ran = yield replace(sequential(scenario, ()), schedule=schedule)
        schedule = following(schedule, ran.trace.options)
        result.exhausted = result.exhausted[0] + 1, schedule is None


def _broken(result: InterleavingResult, failure: BrokenInterleaving, tracker: DirtyTracker) -> None:
    """Keep a failure, and then each smaller one: whoever interrupts has the last."""

    def took(smallest: BrokenInterleaving) -> None:
        result.verdict, result.failure = Verdict.BROKEN, smallest

    again = run_interleaving(failure.interleaving, tracker=tracker)
    if again.broken is None or again.key != failure.ran.key:
        raise HarnessError(f"a failure does not replay: {failure.broken}; {token_of(failure.interleaving)}")
    took(failure)
    shrink(failure, tracker=tracker, took=took)


def _repeat(interleaving: Interleaving, before: Ran, tracker: DirtyTracker) -> None:
    """Run one again and compare what it did, and what callers were told."""
    again = run_interleaving(interleaving, tracker=tracker)
    if (again.key, again.outcome, again.verdict) != (before.key, before.outcome, before.verdict):
        raise HarnessError(f"an interleaving gives other results when it is run again: {token_of(interleaving)}")


def _caught_canary(seed: int, tracker: DirtyTracker) -> str:
    """Return the planted bug that this engine caught within some interleavings, or nothing."""
    drawn = interleavings(seed, CANARY, 0, InterleavingResult(), (topic_deletion,))
    interleaving = next(drawn)
    for _ in range(_CANARY_MAX):
        ran = run_interleaving(interleaving, tracker=tracker)
        if ran.broken is not None:
            return CANARY
        interleaving = drawn.send(ran)
    return ""
