"""Run a case again, and make it small.

A failure is told from others by its contract number and its sentence without the numbers in it; shrinking never
wanders from one to another.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from properties.campaign.shrinking import Budget, Ended, Shrinking, ShrinkStep, Watch
from properties.campaign.simpler import DETOURS
from properties.contract import GuaranteeBroken
from properties.disk.choosing import Others, chosen, exceptions, fewest_exceptions
from properties.disk.dirty import DirtyTracker
from properties.disk.images import Choice, Fact, disk_state, facts_of
from properties.explain.evidence import Evidence, Witness
from properties.explore.foreign.choosing import AnyTrial, trial_of
from properties.findings import Finding
from properties.program.case import Case, Crash, describe

__all__ = ["Failure", "ShrinkStep", "Shrunk", "replay", "shrink", "signature", "with_evidence"]

TRIES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """One broken promise and the case that shows it.

    `losses` counts the facts (pages, sizes, names) of which the latest version did not survive its power losses,
    `lost_pages` the pages among them: lost, older or torn. `evidence` is of the run that met it, where it was kept.
    """

    case: Case
    broken: GuaranteeBroken
    losses: int = 0
    lost_pages: int = 0
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
    trial: AnyTrial | None = None
    try:
        trial = trial_of(case.settings, tracker=tracker)
        for operation in case.operations:
            if witness is not None:
                witness.note(trial, operation)
            trial.run(operation)
    except GuaranteeBroken as broken:
        if trial is None:
            return Failure(Case(case.settings, ()), broken)
        lost = [fact for facts in trial.losses for fact in facts]
        pages = sum(fact.kind == "page" for fact in lost)
        evidence = None if witness is None else witness.evidence()
        return Failure(Case(case.settings, tuple(trial.performed)), broken, len(lost), pages, evidence)
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

    `watch` is called after each replay of the search. An interrupt ends it with what was found by then, and `ended`
    says so: it is for the caller to end as well.

    Without a time it is a function of the failure. The last form of each power loss is the one that names fewer facts.
    With `keep_evidence` the last run is watched by a witness, unless there was an interrupt.
    """
    wanted = signature(failure.broken)

    def failing(case: Case, witness: Witness | None = None) -> Failure | None:
        found = replay(case, tracker=tracker, witness=witness)
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
        told = failing(_restated(small.case, fewest_exceptions, tracker), Witness() if keep_evidence else None)
        small = small if told is None or told.losses != small.losses else told
        if keep_evidence and small is not told and budget.ended != "interrupt":
            small = failing(small.case, Witness()) or small
    except KeyboardInterrupt:
        budget.ended = "interrupt"
    one_minimal = shrinking.one_minimal and budget.ended != "interrupt"
    return Shrunk(
        small.case,
        small.broken,
        small.losses,
        small.lost_pages,
        small.evidence,
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
