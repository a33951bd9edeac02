"""Run an exhaustive campaign: all workloads of a plan, a brute-force check, and a canary.

The shortest workloads come first. Workloads are independent, so several processes may share them. The engine takes
results in the order of the workloads. Only lengths that were finished are claimed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import islice
from time import perf_counter
from typing import Literal, Protocol

from tornpage.properties.campaign.engine import Budget, CanaryTime, Progress, explore, ignored
from tornpage.properties.campaign.replay import Failure, replay, signature
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Launcher
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explain.evidence import Witness
from tornpage.properties.explore.exhaustive.checking import Checked, check_workload
from tornpage.properties.explore.exhaustive.explored import Explored, Plan, explore_workload
from tornpage.properties.explore.exhaustive.operation_set import Workload, workloads
from tornpage.properties.explore.exhaustive.search import search_exhaustively
from tornpage.properties.program.case import Disk

__all__ = ["ExhaustResult", "ExhaustTally", "Keeping", "Task", "canary_bug", "caught_canary", "run_exhaust"]

CANARY_STATES_MAX = 4_000
_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class Task:
    """Describe one workload to explore or check.

    `completes` is the length that is finished with it, or -1 if more of that length follow.
    """

    kind: Literal["explore", "check"]
    workload: Workload
    completes: int = -1


Made = Explored | Checked


class Keeping(Protocol):
    """Provide results of earlier runs, and keep those of this one."""

    explored: dict[Workload, Explored]
    checked: dict[Workload, Checked]

    def add(self, done: Made) -> None:
        """Keep one more result."""


@dataclass
class ExhaustTally:
    """Count what was enumerated.

    `explored` are the finished workloads in order. `ops` is the greatest length of which all are finished, or -1;
    `checked_ops` is that of the check. `again` is the number of results kept from an earlier run. `exploring_seconds`
    does not include check and canary.
    """

    plan: Plan
    explored: list[Explored] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    ops: int = -1
    checked_ops: int = -1
    again: int = 0
    exploring_seconds: float = 0.0

    @property
    def states_per_s(self) -> float:
        """Return the crash states of the bound settled per second."""
        return sum(each.states for each in self.explored) / max(self.exploring_seconds, 1e-9)

    @property
    def is_through(self) -> bool:
        """Return whether the whole bound is explored and checked."""
        return self.ops >= self.plan.ops and self.checked_ops >= min(self.plan.check_ops, self.plan.ops)

    @property
    def claimed(self) -> list[Explored]:
        """Return the workloads of the finished lengths."""
        return [each for each in self.explored if len(each.workload) <= self.ops]

    @property
    def result_hash(self) -> str:
        """Return a hash of every state, image and outcome of the claimed workloads."""
        digest = blake2b(digest_size=16)
        for each in self.claimed:
            digest.update(repr((each.workload, each.digest)).encode())
        return digest.hexdigest()


ExhaustResult = CampaignResult[ExhaustTally, Failure]
"""The result of an exhaustive campaign."""


def run_exhaust(
    plan: Plan,
    *,
    workers: int = 1,
    seconds: float | None = None,
    kept: Keeping | None = None,
    progress: Progress = ignored,
) -> ExhaustResult:
    """Explore a plan in `workers` processes until `seconds` have passed, if given.

    A keyboard interrupt ends it and keeps its results. Raises HarnessError if brute force disagrees, an image is
    illegal, a failure does not replay or a worker dies, and OSError if results cannot be kept.
    """
    result = explore(_Explorer(plan, kept), workers=workers, seconds=seconds, progress=progress)
    if result.faults:
        raise HarnessError(result.faults[0])
    return result


@dataclass(frozen=True, slots=True)
class _WorkloadJob:
    """Explore or check workloads of a plan."""

    plan: Plan

    @contextmanager
    def opened(self) -> Iterator[Callable[[Task, Control], Made | None]]:
        """Return the function that does a task in this process. It returns None if it was stopped."""
        with choose_tracker("auto") as tracker:
            yield partial(_perform, self.plan, tracker)


def _perform(plan: Plan, tracker: DirtyTracker, task: Task, control: Control) -> Made | None:
    def is_over() -> bool:
        return control.is_over() or control.is_stopped()

    if task.kind == "explore":
        return explore_workload(task.workload, plan, tracker=tracker, is_over=is_over)
    return check_workload(task.workload, plan.settings, plan.check_bound, tracker=tracker, is_over=is_over)


class _Explorer:
    """Present the workloads of a plan as parts of a campaign."""

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "last"

    def __init__(self, plan: Plan, kept: Keeping | None) -> None:
        self.job = _WorkloadJob(plan)
        self._plan = plan
        self._kept = kept
        self._tally = ExhaustTally(plan)
        self._taken_at = perf_counter()

    def parts(self) -> Iterator[Task]:
        """Yield the tasks: all lengths in turn, and the check as soon as its bound is explored.

        With a planted bug the check comes last, so that the bug is found first. There may be billions of tasks.
        """
        plan = self._plan
        check_ops = min(plan.check_ops, plan.ops)
        for length in range(plan.ops + 1):
            yield from _level("explore", workloads(plan.operation_set, length), length)
            if length == (plan.ops if plan.bug else check_ops):
                short = (each for shorter in range(check_ops + 1) for each in workloads(plan.operation_set, shorter))
                yield from _level("check", short, check_ops)

    def known(self, part: Task) -> Made | None:
        """Return the kept result of a task."""
        if self._kept is None:
            return None
        kept = self._kept.explored if part.kind == "explore" else self._kept.checked
        return kept.get(part.workload)

    def tally(self) -> ExhaustTally:
        """Return the tally of this campaign, still empty."""
        return self._tally

    def count(self, made: Made | None) -> int:
        """Return the number of crash states."""
        return 0 if made is None else made.states

    def take(self, result: ExhaustResult, part: Task, made: Made | Died[Task] | None) -> bool:
        """Take the result of a workload, up to the first failure.

        Raises HarnessError if the check failed.
        """
        if isinstance(made, Died):
            raise HarnessError(f"an exploring process has died: it {made.how}")
        if made is None:
            result.is_cut = True
            return False
        now = perf_counter()
        if part.kind == "explore":
            result.tally.exploring_seconds += now - self._taken_at
        self._taken_at = now
        is_kept = self.known(part) is not None
        result.tally.again += is_kept
        self._add(result, part, made)
        if self._kept is not None and not is_kept:
            self._kept.add(made)
        return not result.found

    def _add(self, result: ExhaustResult, part: Task, made: Made) -> None:
        tally = result.tally
        if isinstance(made, Checked):
            if made.differences:
                differences = "; ".join(made.differences[:_SHOWN_MAX])
                name = " ".join(made.workload) or "open"
                raise HarnessError(f"pruning and brute force disagree on the workload {name}: {differences}")
            tally.checked.append(made)
            tally.checked_ops = max(tally.checked_ops, part.completes)
            return
        tally.explored.append(made)
        if made.failure is None:
            tally.ops = max(tally.ops, part.completes)
        else:
            result.meet(signature(made.failure.broken), made.failure)

    def canary(self) -> str:
        """Return the planted bug that was caught, or "" if time ended the campaign early."""
        if not self._tally.is_through:
            return ""
        with choose_tracker("auto") as tracker:
            return caught_canary(self._plan, tracker=tracker)

    def conclude(self, result: ExhaustResult) -> None:
        """Report whether the bound was finished."""
        result.result_hash = result.tally.result_hash
        if not result.tally.is_through:
            result.undecided.append(f"the bound of {self._plan.ops} operations was not finished")

    def shrink(self, failure: Failure, budget: Budget, watch: Watch) -> tuple[Failure | None, bool]:
        """Return the failure with its evidence, or None if it does not show again.

        It is not shrunk, since shorter workloads came first.
        """
        with choose_tracker("auto") as tracker:
            again = replay(failure.case, tracker=tracker, witness=Witness())
        if again is None or signature(again.broken) != signature(failure.broken):
            return None, False
        return replace(failure, evidence=again.evidence), False

    def describe(self, failure: Failure) -> str:
        """Return the broken guarantee and the case."""
        return f"{failure.broken}; case: {failure.case.token()}"


def _level(kind: Literal["explore", "check"], level: Iterator[Workload], length: int) -> Iterator[Task]:
    """Yield a task for each workload; the last one completes the length."""
    before = next(level)
    for workload in level:
        yield Task(kind, before)
        before = workload
    yield Task(kind, before, completes=length)


def canary_bug(disk: Disk) -> str:
    """Return the planted bug that has to be caught on a disk, in every mode."""
    return "zero-is-new" if disk == "kill" else "erase-not-synced"


def caught_canary(plan: Plan, *, tracker: DirtyTracker) -> str:
    """Return the planted bug caught by the same enumeration in the same mode, or ""."""
    bug = canary_bug(plan.disk)
    hunt = search_exhaustively(bug, tracker=tracker, disk=plan.disk, modes=(plan.mode,))
    return bug if any(failure is not None for failure in islice(hunt, CANARY_STATES_MAX)) else ""
