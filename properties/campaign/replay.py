"""Replay a case and shrink it.

A failure is identified by its contract number and its sentence without numbers. Shrinking never moves from one failure
to another.
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
from tornpage.properties.foreign.trial import TargetTrial, crashes_in_first_open, is_in_first_open
from tornpage.properties.foreign.zygote import zygotes
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, describe

__all__ = [
    "Failure",
    "ShrinkStep",
    "Shrunk",
    "Tries",
    "replay",
    "replay_several",
    "shrink",
    "signature",
    "with_evidence",
]

TRIES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """Hold one broken promise and the case that shows it.

    `losses` counts the in-flight writes (pages, sizes, names) whose latest version did not survive the power losses of
    the case. `lost_pages` counts the pages among them, which were lost, older or torn. `power_losses` are those that a
    replay of the case met; None means that the case was not replayed. `evidence` belongs to the failing run, if it was
    kept.
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
        """Return the plain values of the failure's page, or None if no explanation was kept."""
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
    """Hold a shrunk failure and how it was shrunk.

    `one_minimal` means that no single simplification fails in the same way. Otherwise `ended` says what ended the
    search: the limit of tries, the time limit or an interrupt. It is "holds" if the case does not fail any more.
    """

    one_minimal: bool = False
    ended: Ended = ""
    tries: int = 0
    seconds: float = 0.0
    history: tuple[ShrinkStep, ...] = ()


@zygotes()
def replay(case: Case, *, tracker: DirtyTracker, witness: Witness | None = None) -> Failure | None:
    """Run a case; return its failure with the operations up to it, or None if all hold.

    With a `witness` the failure carries the evidence of this run.
    """
    trial: Lockstep | TargetTrial | None = None
    try:
        settings = case.settings
        trial = TargetTrial(settings) if settings.target else lockstep_of(settings, tracker=tracker)
        last_crash = max((number for number, each in enumerate(case.operations) if isinstance(each, Crash)), default=-1)
        for number, operation in enumerate(case.operations):
            if witness is not None:
                witness.note(trial, operation)
            elif number == last_crash and isinstance(trial, TargetTrial):
                trial.record_no_more()  # tracing costs more than the work of a small store
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


@dataclass(frozen=True, slots=True)
class Tries:
    """Count how often a case failed: in `shown` of `tries`. `failure` is the first one."""

    failure: Failure | None
    shown: int
    tries: int


@zygotes()
def replay_several(case: Case, tries: int, *, tracker: DirtyTracker, witness: Witness | None = None) -> Tries:
    """Run a case up to `tries` times. A case that fails at the first try is run once.

    A failure that depends on timing shows in some tries only. All tries are then made, so that the rate is known.
    """
    first: Failure | None = None
    shown = 0
    for number in range(1, tries + 1):
        fails = replay(case, tracker=tracker, witness=witness if first is None else None)
        shown += fails is not None
        first = first or fails
        if number == 1 and fails is not None:
            return Tries(first, 1, 1)
    return Tries(first, shown, tries)


def with_evidence(failure: Failure, *, tracker: DirtyTracker) -> Failure:
    """Return a failure with evidence, replaying it once if it has none.

    A failure has none if its search was interrupted.
    """
    if failure.evidence is not None:
        return failure
    again = replay(failure.case, tracker=tracker, witness=Witness())
    return failure if again is None else replace(failure, evidence=again.evidence)


def signature(broken: GuaranteeBroken) -> tuple[int, str]:
    """Return the identity of a failure: contract number, sentence without numbers and paths."""
    return broken.contract, re.sub(r"/\S+|\d+", "", broken.sentence)


@zygotes()
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
    """Return the simplest case found that fails in the same way.

    The cost is at most `tries_max` replays, or `seconds`. A failure that `replay` returned is used as it is; any other
    is replayed first. `watch` is called after each replay of the search. An interrupt ends the search with the simplest
    case found so far; `ended` says so, and the caller has to end as well. Without a time limit the result is a function
    of the failure alone. Each power loss is finally written in the form that names fewer in-flight writes. With
    `keep_evidence` a witness watches the last run.
    """
    wanted = signature(failure.broken), is_in_first_open(failure.case)
    may_crash_in_first_open = crashes_in_first_open(failure.case)

    def failing(case: Case, witness: Witness | None = None) -> Failure | None:
        found = replay(case, tracker=tracker, witness=witness)
        if found is None or (crashes_in_first_open(found.case) and not may_crash_in_first_open):
            return None
        return found if (signature(found.broken), is_in_first_open(found.case)) == wanted else None

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
    shrinking = Shrinking(again, failing, budget, named=_by_losses, restated=_by_survivors, watch=watch)
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


def _by_losses(failure: Failure) -> Case:
    return _restated(failure, lambda facts, choices: (exceptions(facts, choices, "kept"), "kept"))


def _by_survivors(failure: Failure) -> Iterator[Case]:
    yield _restated(failure, lambda facts, choices: (exceptions(facts, choices, "lost"), "lost"))


def _restated(failure: Failure, restate: Restate) -> Case:
    """Write the same power losses in another form.

    Those that the run did not reach stay unchanged.
    """
    losses = iter(failure.power_losses or ())
    operations = list(failure.case.operations)
    for number, operation in enumerate(operations):
        if isinstance(operation, Crash) and not operation.kill and (loss := next(losses, None)) is not None:
            survived, others = restate(loss.writes, dict(loss.choices))
            operations[number] = replace(operation, survived=survived, others=others)
    return Case(failure.case.settings, tuple(operations))
