"""Run a case again, and make it small.

A failure is told from others by its contract number and its sentence without the numbers in it; shrinking never
wanders from one to another.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from tornpage.model.operations import Choice, Crash, Others
from tornpage.properties.campaign.shrink import Budget, Ended, Shrinking, ShrinkStep, Watch
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.choosing import PowerLoss, exceptions, fewest_exceptions
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.images import InFlightWrite
from tornpage.properties.explain.evidence import Evidence, Witness
from tornpage.properties.findings import Finding
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, describe

__all__ = ["Failure", "ShrinkStep", "Shrunk", "replay", "shrink", "signature", "with_evidence"]

TRIES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """One broken promise and the case that shows it.

    `losses` counts the facts (pages, sizes, names) of which the latest version did not survive its power losses,
    `lost_pages` the pages among them: lost, older or torn. `power_losses` is what a replay of the case has met; None
    says that the case was not replayed. `evidence` is of the run that met it, where it was kept.
    """

    case: Case
    broken: GuaranteeBroken
    losses: int = 0
    lost_pages: int = 0
    power_losses: tuple[PowerLoss, ...] | None = field(default=None, compare=False, repr=False)
    evidence: Evidence | None = field(default=None, compare=False, repr=False)

    def finding(self) -> Finding:
        """Return the entry of a run document."""
        return Finding.of_broken(
            self.broken,
            expected=self.broken.expected,
            found=self.broken.found,
            program=[describe(operation) for operation in self.case.operations],
            settings=self.case.document()["settings"],
            losses=self.losses,
            lost_pages=self.lost_pages,
            token=self.case.token(),
        )

    def account(self) -> dict[str, Any] | None:
        """Return what the page of the failure shows, as plain values; None where no account was kept."""
        account = None if self.evidence is None else self.evidence.account
        if account is None:
            return None
        told = self.finding().document()
        names = ("sentence", "expected", "found", "settings", "token", "losses", "lost_pages")
        settings = self.case.settings
        named = {"contract": self.broken.contract, "bug": settings.bug, "disk": settings.disk}
        return named | {name: told[name] for name in names} | account.document()


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


def replay(case: Case, *, tracker: DirtyTracker, witness: Witness | None = None) -> Failure | None:
    """Carry a case out; return the failure with the operations up to it, or None when every promise holds.

    With a `witness` the failure has the evidence of this run.
    """
    trial: Lockstep | TargetTrial | None = None
    try:
        settings = case.settings
        trial = TargetTrial(settings) if settings.target else lockstep_of(settings, tracker=tracker)
        for operation in case.operations:
            if witness is not None:
                witness.note(trial, operation)
            trial.run(operation)
    except GuaranteeBroken as broken:
        if trial is None:
            return Failure(Case(case.settings, ()), broken, power_losses=())
        lost = [fact for loss in trial.losses for fact in loss.lost]
        pages = sum(fact.kind == "page" for fact in lost)
        evidence = None if witness is None else witness.evidence()
        performed = Case(case.settings, tuple(trial.performed))
        return Failure(performed, broken, len(lost), pages, tuple(trial.losses), evidence)
    return None


def with_evidence(failure: Failure, *, tracker: DirtyTracker) -> Failure:
    """Return a failure with evidence; one that has none, since its search was interrupted, is carried out once more."""
    if failure.evidence is not None:
        return failure
    again = replay(failure.case, tracker=tracker, witness=Witness())
    return failure if again is None else replace(failure, evidence=again.evidence)


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
    keep_evidence: bool = False,
) -> Shrunk:
    """Return the smallest case found that fails in the same way; cost: up to `tries_max` replays, or `seconds`.

    A failure that `replay` returned is taken as it is; any other is replayed first. `watch` is called after each replay
    of the search. An interrupt ends the search with the smallest case by then; `ended` says so, and the caller has to
    end as well. Without a time the result is a function of the failure. The last form of each power loss is the one
    that names fewer facts. With `keep_evidence` a witness watches the last run.
    """
    wanted = signature(failure.broken)

    def failing(case: Case, witness: Witness | None = None) -> Failure | None:
        found = replay(case, tracker=tracker, witness=witness)
        return found if found is not None and signature(found.broken) == wanted else None

    budget = Budget(tries_max, seconds, clock)
    ended: Ended = "holds"
    again: Failure | None = failure
    if failure.power_losses is None:
        try:
            again = failing(failure.case)
        except KeyboardInterrupt:
            again, ended = None, "interrupt"
    if again is None:
        return Shrunk(failure.case, failure.broken, failure.losses, failure.lost_pages, ended=ended)
    shrinking = Shrinking(again, failing, budget, named=_by_what_was_lost, restated=_by_what_survived, watch=watch)
    shrinking.run()
    small = shrinking.best
    last_form, told = _restated(small, fewest_exceptions), None
    try:
        if keep_evidence or last_form != small.case:
            told = failing(last_form, Witness() if keep_evidence else None)
        if told is not None and told.losses == small.losses:
            small = told
        elif keep_evidence:
            small = failing(small.case, Witness()) or small
    except KeyboardInterrupt:
        budget.ended = "interrupt"
    one_minimal = shrinking.one_minimal and budget.ended != "interrupt"
    return Shrunk(
        small.case,
        small.broken,
        small.losses,
        small.lost_pages,
        small.power_losses,
        small.evidence,
        one_minimal=one_minimal,
        ended="" if one_minimal else budget.ended,
        tries=budget.tries,
        seconds=budget.spent_s,
        history=tuple(shrinking.history),
    )


Restate = Callable[[Sequence[InFlightWrite], dict[str, Choice]], tuple[dict[str, Choice], Others]]


def _by_what_was_lost(failure: Failure) -> Case:
    return _restated(failure, lambda facts, choices: (exceptions(facts, choices, "kept"), "kept"))


def _by_what_survived(failure: Failure) -> Iterator[Case]:
    yield _restated(failure, lambda facts, choices: (exceptions(facts, choices, "lost"), "lost"))


def _restated(failure: Failure, restate: Restate) -> Case:
    """Say the same power losses in another form; those that the run did not reach stay as they are."""
    losses = iter(failure.power_losses or ())
    operations = list(failure.case.operations)
    for number, operation in enumerate(operations):
        if isinstance(operation, Crash) and not operation.kill and (loss := next(losses, None)) is not None:
            survived, others = restate(loss.writes, dict(loss.choices))
            operations[number] = replace(operation, survived=survived, others=others)
    return Case(failure.case.settings, tuple(operations))
