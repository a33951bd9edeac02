"""Run a case again, and make it small.

A failure is told from others by its contract number and its sentence without the numbers in it; shrinking never
wanders from one to another.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from properties.case import Case
from properties.recorder.dirty import DirtyTracker
from properties.simpler import SIMPLER
from properties.trial import Trial
from properties.verdict import GuaranteeBroken

__all__ = ["Failure", "replay", "shrink", "signature"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One broken promise and the case that shows it."""

    case: Case
    broken: GuaranteeBroken


def replay(case: Case, *, tracker: DirtyTracker) -> Failure | None:
    """Carry a case out; return the failure with the operations up to it, or None when every promise holds."""
    trial: Trial | None = None
    try:
        trial = Trial(case.settings, tracker=tracker)
        for operation in case.operations:
            trial.run(operation)
    except GuaranteeBroken as broken:
        done = tuple(trial.performed) if trial is not None else ()
        return Failure(Case(case.settings, done), broken)
    return None


def signature(broken: GuaranteeBroken) -> tuple[int, str]:
    """Return what makes two failures the same: the promise, and the sentence without numbers and paths."""
    return broken.contract, re.sub(r"/\S+|\d+", "", broken.sentence)


def shrink(failure: Failure, *, tracker: DirtyTracker, tries_max: int = 2_000) -> Failure:
    """Return the smallest case found that fails in the same way; cost: up to `tries_max` replays."""
    wanted = signature(failure.broken)
    tries = 0

    def failing(case: Case) -> Failure | None:
        nonlocal tries
        tries += 1
        again = replay(case, tracker=tracker)
        return again if again is not None and signature(again.broken) == wanted else None

    best = failing(failure.case) or failure
    improved = True
    while improved and tries < tries_max:
        improved = False
        for simpler in SIMPLER:
            smaller = _reduce(best, simpler, failing, lambda: tries < tries_max)
            improved |= smaller is not best
            best = smaller
    return best


def _reduce(
    best: Failure,
    simpler: Callable[[Case], Iterator[Case]],
    failing: Callable[[Case], Failure | None],
    may_go_on: Callable[[], bool],
) -> Failure:
    """Take the first candidate that still fails, and start over from it, until none does."""
    found = True
    while found and may_go_on():
        found = False
        for candidate in simpler(best.case):
            smaller = failing(candidate)
            if smaller is not None and smaller.case != best.case:
                best, found = smaller, True
                break
            if not may_go_on():
                break
    return best
