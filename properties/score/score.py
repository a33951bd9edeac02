"""All trials of a score, in an order in which what is known early is worth most.

Fair over bugs: every bug has its n-th trial with every strategy before any bug has its next one. Within a round a bug
that nobody has killed comes before one that was killed, and among equals the strategy that has cost least so far.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from tornpage.properties.campaign.resume import KeptRows
from tornpage.properties.campaign.workers import Apart, Died, Plain
from tornpage.properties.score.plan import Plan
from tornpage.properties.score.trials import PRELOAD, TrialKey, TrialRow, run_trial

__all__ = ["SLACK_S", "Progress", "Queue", "score"]

SLACK_S = 60.0
"""So long beyond its budget a trial may take, to start and to replay what it has seen; then it hangs."""

_WALL_OF_CPU_MAX = 20
"""A second of the processor may take so many of the wall before a trial counts as one that hangs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a score is: trials done, `new` of them by this call, and those in all.

    `seconds_left_max` is None where the budget is not in seconds of the wall.
    """

    done: int
    total: int
    new: int
    seconds_left_max: float | None


@dataclass
class Queue:
    """Trials that are still to do."""

    open: list[TrialKey]
    _killed: set[str] = field(default_factory=set)
    _tried: Counter[tuple[str, int]] = field(default_factory=Counter)
    _seconds: defaultdict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def note(self, row: TrialRow) -> None:
        """Learn from a trial."""
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
    kept: KeptRows[TrialRow],
    may_see: Callable[[str, str], bool],
    progress: Callable[[Progress], None],
    slack_s: float = SLACK_S,
) -> None:
    """Carry out what `kept` does not know yet, and add each trial to it as it ends.

    A bug is not tried with a strategy that may not see it (bug, strategy). A keyboard interrupt ends the trials that
    run and goes on to the caller; what has ended is kept.
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
    apart = Apart(job, _taken(queue), workers, limit_s, PRELOAD, tell)
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
