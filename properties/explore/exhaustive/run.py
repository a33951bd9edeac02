"""An exhaustive run: every workload of a plan, shortest first, the check against brute force, the canary.

Workloads are independent of each other, so that several processes may share them; results are taken in the order of
the workloads, and nothing that is said of them depends on who did what. Only a length that was finished is claimed.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from time import monotonic, perf_counter
from typing import Literal

from properties.campaign.replay import Failure, replay, signature
from properties.contract import HarnessError, Verdict
from properties.disk.dirty import DirtyTracker, choose_tracker
from properties.disk.disk import Disk
from properties.explain.evidence import Witness
from properties.explore.exhaustive.alphabet import Workload, workloads
from properties.explore.exhaustive.checking import Checked
from properties.explore.exhaustive.explored import Explored, Plan
from properties.explore.exhaustive.hunting import hunt_exhaustively
from properties.explore.exhaustive.processes import Done, Keeping, Task, performed

__all__ = ["ExhaustResult", "Progress", "canary_bug", "run_exhaust"]

Progress = Callable[[int, float], None]
"""Called with the crash states so far and the seconds spent."""

CANARY_STATES_MAX = 4_000
_SHOWN_MAX = 3


@dataclass
class ExhaustResult:
    """What a run came to: `explored` are the workloads that are done, in order; `ops` is the longest length of which
    all are, -1 for none; `checked_ops` that of the check. `again` is how many results were kept from an earlier run.
    `exploring_seconds` is without check and canary.
    """

    plan: Plan
    explored: list[Explored] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    ops: int = -1
    checked_ops: int = -1
    again: int = 0
    seconds: float = 0.0
    exploring_seconds: float = 0.0
    failure: Failure | None = None
    canary: str = ""
    interrupted: bool = False
    timed_out: bool = False

    @property
    def states_per_s(self) -> float:
        """How many crash states of the bound were settled in a second."""
        return sum(each.states for each in self.explored) / max(self.exploring_seconds, 1e-9)

    @property
    def verdict(self) -> Verdict:
        """Broken; vacuous without a canary; unknown before all of the bound is done and checked."""
        if self.failure is not None:
            return Verdict.BROKEN
        if self.ops < self.plan.ops or self.checked_ops < min(self.plan.check_ops, self.plan.ops):
            return Verdict.UNKNOWN
        return Verdict.HOLDS if self.canary else Verdict.VACUOUS

    @property
    def claimed(self) -> list[Explored]:
        """The workloads of the lengths that were finished."""
        return [each for each in self.explored if len(each.workload) <= self.ops]

    @property
    def result_hash(self) -> str:
        """A hash of every state, image and outcome of what is claimed."""
        digest = blake2b(digest_size=16)
        for each in self.claimed:
            digest.update(repr((each.workload, each.digest)).encode())
        return digest.hexdigest()


def run_exhaust(
    plan: Plan,
    *,
    workers: int = 1,
    seconds: float | None = None,
    kept: Keeping | None = None,
    progress: Progress = lambda states, seconds: None,
) -> ExhaustResult:
    """Explore a plan, until `seconds` have passed if they are given, in so many processes.

    A keyboard interrupt ends it with what it has. Raises HarnessError when brute force says otherwise, an image is
    illegal, or a failure does not replay; OSError when nothing can be kept.
    """
    result = ExhaustResult(plan)
    started = perf_counter()
    deadline = None if seconds is None else monotonic() + seconds
    try:
        with closing(performed(_tasks(plan), plan, workers=workers, deadline=deadline, kept=kept)) as doing:
            _follow(doing, result, started, kept, progress)
        if result.failure is not None:
            result.failure = _replayed(result.failure)
            return result
        with choose_tracker("auto") as tracker:
            result.canary = "" if result.timed_out else caught_canary(plan, tracker=tracker)
    except KeyboardInterrupt:
        result.interrupted = True
    finally:
        result.seconds = perf_counter() - started
    return result


def _follow(
    doing: Iterator[Done | None], result: ExhaustResult, started: float, kept: Keeping | None, progress: Progress
) -> None:
    """Take results in until there are no more, time is up or one is a failure."""
    states = 0
    for done in doing:
        before, result.seconds = result.seconds, perf_counter() - started
        if done is None:
            result.timed_out = True
            return
        if done.task.kind == "explore":
            result.exploring_seconds += result.seconds - before
        _take(result, done)
        if kept is not None and not done.is_kept:
            kept.add(done.what)
        states += done.what.states
        progress(states, result.seconds)
        if result.failure is not None:
            return


def _tasks(plan: Plan) -> Iterator[Task]:
    """Yield what is to be done: all lengths in turn, and the check as soon as its bound is explored.

    Where a bug is planted the check comes last: who plants one wants to see it found. There may be billions.
    """
    check_ops = min(plan.check_ops, plan.ops)
    for length in range(plan.ops + 1):
        yield from _level("explore", workloads(plan.letters, length), length)
        if length == (plan.ops if plan.bug else check_ops):
            short = (each for shorter in range(check_ops + 1) for each in workloads(plan.letters, shorter))
            yield from _level("check", short, check_ops)


def _level(kind: Literal["explore", "check"], level: Iterator[Workload], length: int) -> Iterator[Task]:
    """Yield a task for each workload; the last one completes the length."""
    before = next(level)
    for workload in level:
        yield Task(kind, before)
        before = workload
    yield Task(kind, before, completes=length)


def _take(result: ExhaustResult, done: Done) -> None:
    """Take a result in. Raises HarnessError where the check has failed."""
    result.again += done.is_kept
    if isinstance(done.what, Checked):
        if done.what.differences:
            told = "; ".join(done.what.differences[:_SHOWN_MAX])
            name = " ".join(done.what.workload) or "open"
            raise HarnessError(f"pruning and brute force disagree on the workload {name}: {told}")
        result.checked.append(done.what)
        result.checked_ops = max(result.checked_ops, done.task.completes)
        return
    result.explored.append(done.what)
    result.failure = done.what.failure
    if result.failure is None:
        result.ops = max(result.ops, done.task.completes)


def _replayed(failure: Failure) -> Failure:
    """Return a failure with its evidence. Raises HarnessError unless it shows again from its case alone."""
    with choose_tracker("auto") as tracker:
        again = replay(failure.case, tracker=tracker, witness=Witness())
    if again is None or signature(again.broken) != signature(failure.broken):
        raise HarnessError(f"a failure does not replay: {failure.broken}; case: {failure.case.token()}")
    return replace(failure, evidence=again.evidence)


def canary_bug(disk: Disk) -> str:
    """Return the planted bug that has to be caught on a disk, in every mode."""
    return "zero-is-new" if disk == "kill" else "erase-not-synced"


def caught_canary(plan: Plan, *, tracker: DirtyTracker) -> str:
    """Return the planted bug that the same enumeration catches in the same mode on the same disk, or nothing."""
    bug = canary_bug(plan.disk)
    hunt = hunt_exhaustively(bug, tracker=tracker, disk=plan.disk, modes=(plan.mode,))
    return bug if any(failure is not None for failure in islice(hunt, CANARY_STATES_MAX)) else ""
