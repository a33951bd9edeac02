"""All trials of a score, in an order in which what is known early is worth most.

Fair over bugs: every bug has its n-th trial with every strategy before any bug has its next one. Within a round a bug
that nobody has killed comes before one that was killed, and among equals the strategy that has cost least so far.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from properties.campaign.resume import KeptRows
from properties.score.apart import Answer, Apart
from properties.score.plan import Plan
from properties.score.trials import ClockName, TrialEnd, TrialKey, TrialRow, run_trial

__all__ = ["SLACK_S", "Progress", "Queue", "score"]

SLACK_S = 60.0
"""So long beyond its budget a trial may take, to start and to replay what it has seen; then it hangs."""

_LOOK_EVERY_S = 0.5
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
    apart: Apart[TrialKey] = Apart(run_trial, workers)

    def tell() -> None:
        left = len(queue.open) + apart.busy
        at_most = left * plan.budget_s / workers if plan.clock == "wall" else None
        progress(Progress(len(wanted) - left, len(wanted), missing - left, at_most))

    try:
        while queue.open or apart.busy:
            while queue.open and apart.has_room:
                key = queue.take()
                apart.start(key, (key, plan.budget_s, plan.clock), limit_s=limit_s)
            tell()
            for row in _rows(apart.finished(timeout_s=_LOOK_EVERY_S), plan.budget_s, plan.clock):
                kept.add(row)
                queue.note(row)
        tell()
    finally:
        apart.stop()


def _rows(answers: Iterable[Answer[TrialKey]], budget_s: float, clock: ClockName) -> Iterable[TrialRow]:
    for answer in answers:
        if answer.end == "answered":
            row: TrialRow = answer.value
            yield row
        else:
            end: TrialEnd = answer.end
            key = answer.key
            yield TrialRow(
                key.bug, key.strategy, key.number, key.base_seed, clock, budget_s, end, seconds=budget_s, why=answer.why
            )
