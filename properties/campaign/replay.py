"""Run a case again, and make it small.

A failure is told from others by its contract number and its sentence without the numbers in it; shrinking never
wanders from one to another.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from model.operations import Choice, Crash, Others
from properties.campaign.passes import DETOURS
from properties.campaign.shrink import Budget, Ended, Shrinking, ShrinkStep, Watch
from properties.contract import GuaranteeBroken
from properties.disk.choosing import chosen, exceptions, fewest_exceptions
from properties.disk.dirty import DirtyTracker
from properties.disk.images import Fact, disk_state, facts_of
from properties.explore.foreign.choosing import AnyTrial, trial_of
from properties.program.case import Case

__all__ = ["Failure", "ShrinkStep", "Shrunk", "replay", "shrink", "signature"]

TRIES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """One broken promise and the case that shows it.

    `losses` counts the facts (pages, sizes, names) of which the latest version did not survive its power losses,
    `lost_pages` the pages among them: lost, older or torn.
    """

    case: Case
    broken: GuaranteeBroken
    losses: int = 0
    lost_pages: int = 0


@dataclass(frozen=True, slots=True)
class Shrunk(Failure):
    """A failure made small, and how: `one_minimal` if no single simplification fails in the same way.

    Else `ended` says what came first: the end of the tries, of the time, or an interrupt; or that the case "holds" now.
    """

    one_minimal: bool = False
    ended: Ended = ""
    tries: int = 0
    seconds: float = 0.0
    history: tuple[ShrinkStep, ...] = ()


def replay(case: Case, *, tracker: DirtyTracker) -> Failure | None:
    """Carry a case out; return the failure with the operations up to it, or None when every promise holds."""
    trial: AnyTrial | None = None
    try:
        trial = trial_of(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
    except GuaranteeBroken as broken:
        if trial is None:
            return Failure(Case(case.settings, ()), broken)
        lost = [fact for facts in trial.losses for fact in facts]
        pages = sum(fact.kind == "page" for fact in lost)
        return Failure(Case(case.settings, tuple(trial.performed)), broken, len(lost), pages)
    return None


def signature(broken: GuaranteeBroken) -> tuple[int, str]:
    """Return what makes two failures the same: the promise, and the sentence without numbers and paths."""
    return broken.contract, re.sub(r"/\S+|\d+", "", broken.sentence)


def shrink(
    failure: Failure,
    *,
    tracker: DirtyTracker,
    tries_max: int = TRIES_MAX,
    seconds: float | None = None,
    clock: Callable[[], float] = perf_counter,
    watch: Watch = lambda tries, operations, losses: None,
) -> Shrunk:
    """Return the smallest case found that fails in the same way; cost: up to `tries_max` replays, or `seconds`.

    `watch` is called after each replay of the search. An interrupt ends it with what was found by then, and `ended`
    says so: it is for the caller to end as well.

    Without a time it is a function of the failure. The last form of each power loss is the one that names fewer facts.
    """
    wanted = signature(failure.broken)

    def failing(case: Case) -> Failure | None:
        found = replay(case, tracker=tracker)
        return found if found is not None and signature(found.broken) == wanted else None

    budget = Budget(tries_max, seconds, clock)
    ended: Ended = "holds"
    try:
        again = failing(failure.case)
    except KeyboardInterrupt:
        again, ended = None, "interrupt"
    if again is None:
        return Shrunk(failure.case, failure.broken, failure.losses, failure.lost_pages, ended=ended)
    shrinking = Shrinking(
        again,
        failing,
        budget,
        named=lambda case: _restated(case, _what_was_lost, tracker),
        detours=(*DETOURS, lambda case: iter((_restated(case, _what_survived, tracker),))),
        watch=watch,
    )
    shrinking.run()
    small = shrinking.best
    try:
        told = failing(_restated(small.case, fewest_exceptions, tracker))
    except KeyboardInterrupt:
        told, budget.ended = None, "interrupt"
    small = small if told is None or told.losses != small.losses else told
    one_minimal = shrinking.one_minimal and budget.ended != "interrupt"
    return Shrunk(
        small.case,
        small.broken,
        small.losses,
        small.lost_pages,
        one_minimal=one_minimal,
        ended="" if one_minimal else budget.ended,
        tries=budget.tries,
        seconds=budget.spent_s,
        history=tuple(shrinking.history),
    )


Restate = Callable[[Sequence[Fact], dict[str, Choice]], tuple[dict[str, Choice], Others]]


def _what_was_lost(facts: Sequence[Fact], choices: dict[str, Choice]) -> tuple[dict[str, Choice], Others]:
    return exceptions(facts, choices, "kept"), "kept"


def _what_survived(facts: Sequence[Fact], choices: dict[str, Choice]) -> tuple[dict[str, Choice], Others]:
    return exceptions(facts, choices, "lost"), "lost"


def _restated(case: Case, restate: Restate, tracker: DirtyTracker) -> Case:
    """Say the same power losses in another form; a case that cannot be carried out stays as it is."""
    operations = []
    try:
        trial = trial_of(case.settings, tracker=tracker)
        for operation in case.operations:
            if isinstance(operation, Crash) and not operation.kill:
                operation = _restated_crash(trial, operation, restate)
            operations.append(operation)
            trial.run(operation)
    except GuaranteeBroken:
        return Case(case.settings, (*operations, *case.operations[len(operations) :]))
    return Case(case.settings, tuple(operations))


def _restated_crash(trial: AnyTrial, crash: Crash, restate: Restate) -> Crash:
    back = min(crash.back, trial.windows[-1].last - trial.windows[-1].first)
    disk = disk_state(trial.files.base, trial.files.journal, trial.position(back), disk=trial.settings.disk)
    facts = facts_of(disk)
    survived, others = restate(facts, chosen(facts, crash.survived, crash.others))
    return replace(crash, survived=survived, others=others)
