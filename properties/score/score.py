"""Run all trials of a score, in an order in which early results are worth most.

Bugs are treated fairly: every bug has its n-th trial with every strategy before any bug has its next one. Within a
round a bug without a kill comes before one with a kill. Among equals the strategy with the least cost so far comes
first.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.campaign.workers import Died, JobPool, Plain
from tornpage.properties.score.plan import Plan
from tornpage.properties.score.trials import PRELOAD, TrialKey, TrialRow, run_trial

__all__ = ["SLACK_S", "Progress", "Queue", "score"]

SLACK_S = 60.0
"""Seconds beyond its budget that a trial may take to start and to replay what it found. After that it counts as hung.
"""

_WALL_OF_CPU_MAX = 20
"""Seconds of the wall clock that one processor second may take before a trial counts as hung."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Report the progress of a score: trials done, those `new` in this call, and all.

    `seconds_left_max` is None if the budget is not in seconds of the wall clock.
    """

    done: int
    total: int
    new: int
    seconds_left_max: float | None


@dataclass
class Queue:
    """Queue the trials that remain."""

    open: list[TrialKey]
    _killed: set[str] = field(default_factory=set)
    _tried: Counter[tuple[str, int]] = field(default_factory=Counter)
    _seconds: defaultdict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def note(self, row: TrialRow) -> None:
        """Record a trial."""
        if row.end == "killed":
            self._killed.add(row.bug)
        self._tried[row.bug, row.number] += 1
        self._seconds[row.bug, row.strategy].append(row.seconds)

    def take(self) -> TrialKey:
        """Return the next trial."""
        chosen = min(self.open, key=self._rank)
        self.open.remove(chosen)
        return chosen

    def _rank(self, key: TrialKey) -> tuple[object, ...]:
        spent = self._seconds[key.bug, key.strategy]
        cost = sum(spent) / len(spent) if spent else 0.0
        return key.number, self._tried[key.bug, key.number], key.bug in self._killed, cost


def score(
    plan: Plan,
    *,
    workers: int,
    kept: ResumeRows[TrialRow],
    may_see: Callable[[str, str], bool],
    progress: Callable[[Progress], None],
    slack_s: float = SLACK_S,
) -> None:
    """Run the trials missing in `kept`, and add each to it when it ends.

    A bug is not tried with a strategy for which `may_see(bug, strategy)` is false. A keyboard interrupt ends the
    running trials and is raised to the caller; finished trials are kept.
    """
    wanted = plan.keys(may_see)
    known = [row for row in kept.rows if row.answers(plan.budget_s, plan.clock)]
    have = {row.key for row in known}
    queue = Queue([key for key in wanted if key not in have])
    missing = len(queue.open)
    for row in known:
        queue.note(row)
    limit_s = plan.budget_s * (_WALL_OF_CPU_MAX if plan.clock == "cpu" else 1) + slack_s

    def tell() -> None:
        left = len(queue.open) + len(apart.pool)
        at_most = left * plan.budget_s / workers if plan.clock == "wall" else None
        progress(Progress(len(wanted) - left, len(wanted), missing - left, at_most))

    job = Plain(partial(run_trial, budget_s=plan.budget_s, clock=plan.clock))
    apart = JobPool(job, _taken(queue), workers, limit_s, PRELOAD, tell)
    with closing(apart.results()) as results:
        for key, made in results:
            row = _lost(key, plan, made) if isinstance(made, Died) else made
            kept.add(row)
            queue.note(row)
    tell()


def _taken(queue: Queue) -> Iterator[TrialKey]:
    while queue.open:
        yield queue.take()


def _lost(key: TrialKey, plan: Plan, died: Died[TrialKey]) -> TrialRow:
    """Return the row of a trial that died or hung."""
    return TrialRow(
        key.bug,
        key.strategy,
        key.number,
        key.base_seed,
        plan.clock,
        plan.budget_s,
        "hung" if died.is_hung else "died",
        seconds=plan.budget_s,
        why=died.how,
    )
