"""Try the mutants of a sample with the strategies, and the unit tests beside them.

A mutant of the subsample is tried with every strategy. Another mutant is tried with one strategy after the other until
one kills it. Afterwards the trial `trace` compares each survivor with the original.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.campaign.workers import Died, JobPool, Plain
from tornpage.properties.mutation.mutants import Mutant
from tornpage.properties.mutation.trials import (
    KILLED,
    PRELOAD,
    TRACE,
    MutantEnd,
    MutantKey,
    MutantRow,
    run_mutant_trial,
    trace_of_original,
)
from tornpage.properties.mutation.unit_tests import UNIT_TESTS, run_unit_tests

__all__ = ["MutationPlan", "TrialsDone", "settled", "try_mutants"]

_WALL_OF_CPU_MAX = 20
"""Seconds of the wall clock that one processor second may take before a trial counts as hung."""

_SLACK_S = 120.0
_TRACE_S = 60.0
_FIRST = {"replication": ("cluster",)}
"""The strategies that come first for mutants of a package. The order changes the cost and not the result."""

_NEEDS = {"cluster": frozenset({"replication"})}
"""The strategies that run only code of these packages that no other strategy runs, and are not tried on others."""


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """Plan trials of `mutants` with `strategies`.

    A trial has up to `budget_s` seconds of processor time. The first `everywhere` mutants are tried with every
    strategy. `unit_tests` also runs the unit tests on each mutant.
    """

    mutants: tuple[Mutant, ...]
    strategies: tuple[str, ...]
    budget_s: float
    base_seed: int
    everywhere: int = 0
    unit_tests: bool = False

    def strategies_of(self, mutant: Mutant) -> tuple[str, ...]:
        """Return the strategies for a mutant in the order in which they are tried."""
        first = _FIRST.get(mutant.package, ())
        ordered = sorted(self.strategies, key=lambda name: name not in first)
        return tuple(name for name in ordered if mutant.package in _NEEDS.get(name, {mutant.package}))

    def asked(self, rows: Iterable[MutantRow]) -> dict[MutantKey, MutantRow]:
        """Return the rows of this plan that are valid for its budget, the last one of each trial."""
        wanted = {mutant.id for mutant in self.mutants}
        return {
            row.key: row
            for row in rows
            if row.mutant in wanted and row.base_seed == self.base_seed and row.answers(self.budget_s)
        }


@dataclass(frozen=True, slots=True)
class TrialsDone:
    """Report the progress: mutants with a result, all mutants, and kills so far."""

    done: int
    total: int
    killed: int


@dataclass
class _Queue:
    """Decide which trial comes next. Trials that run count as tried."""

    plan: MutationPlan
    rows: dict[MutantKey, MutantRow]
    running: set[MutantKey] = field(default_factory=set)
    _at: int = 0

    def take(self) -> Iterator[MutantKey]:
        """Yield trials until none is left that may be needed."""
        while (key := self._next()) is not None:
            self.running.add(key)
            yield key

    def _next(self) -> MutantKey | None:
        """Return the next trial of the first mutant that needs one and has none running."""
        busy = {key.mutant for key in self.running}
        for number in range(self._at, len(self.plan.mutants)):
            mutant = self.plan.mutants[number]
            key = self.wanted(number)
            if key is None:
                if number == self._at:
                    self._at += 1
            elif mutant.id not in busy:
                return key
        return None

    def wanted(self, number: int) -> MutantKey | None:
        """Return the next trial that a mutant needs, or None if it has its result."""
        mutant, plan = self.plan.mutants[number], self.plan
        killed = False
        for name in plan.strategies_of(mutant):
            key = MutantKey(mutant.id, name, plan.base_seed)
            row = self.rows.get(key)
            if row is None:
                return None if killed and number >= plan.everywhere else key
            killed = killed or row.end in KILLED
        if not killed and (key := MutantKey(mutant.id, TRACE, plan.base_seed)) not in self.rows:
            return key
        if plan.unit_tests and (key := MutantKey(mutant.id, UNIT_TESTS, plan.base_seed)) not in self.rows:
            return key
        return None


def try_mutants(
    plan: MutationPlan,
    *,
    workers: int,
    kept: ResumeRows[MutantRow],
    progress: Callable[[TrialsDone], None],
    confirm: Callable[[MutantRow], bool],
) -> None:
    """Run the trials missing in `kept`, and add each to it when it ends.

    `confirm` returns whether the original keeps what a row says is broken. A keyboard interrupt ends the running trials
    and is raised to the caller; finished trials are kept.
    """
    queue = _Queue(plan, plan.asked(kept.rows))
    limit_s = max(plan.budget_s, _TRACE_S) * _WALL_OF_CPU_MAX + _SLACK_S

    def tell() -> None:
        total = len(plan.mutants)
        done = sum(queue.wanted(number) is None for number in range(total))
        killed = {row.mutant for row in queue.rows.values() if row.end in KILLED and row.strategy != UNIT_TESTS}
        progress(TrialsDone(done, total, len(killed)))

    job = Plain(partial(_run, budget_s=plan.budget_s))
    pool = JobPool(job, queue.take(), workers, limit_s, PRELOAD)
    with closing(pool.results()) as results:
        for key, made in results:
            row = _lost(key, plan, made) if isinstance(made, Died) else made
            row = settled(row, confirm=confirm, original=_original)
            kept.add(row)
            queue.rows[row.key] = row
            queue.running.discard(key)
            tell()


def settled(row: MutantRow, *, confirm: Callable[[MutantRow], bool], original: Callable[[], str]) -> MutantRow:
    """Return a row after the comparison with the original store.

    A broken promise that the original breaks as well is unconfirmed. A trace that equals that of the original is the
    same.
    """
    if row.token and row.end == "killed" and not confirm(row):
        return replace(row, end="unconfirmed", why="the original breaks the promise as well")
    if row.strategy == TRACE and row.end == "different" and row.digest == original():
        return replace(row, end="same")
    return row


@lru_cache(maxsize=1)
def _original() -> str:
    return trace_of_original()


def _run(key: MutantKey, budget_s: float) -> MutantRow:
    return run_unit_tests(key, budget_s) if key.strategy == UNIT_TESTS else run_mutant_trial(key, budget_s)


def _lost(key: MutantKey, plan: MutationPlan, died: Died[MutantKey]) -> MutantRow:
    end: MutantEnd = "hung" if died.is_hung else "died"
    return MutantRow(key.mutant, key.strategy, key.base_seed, plan.budget_s, end, plan.budget_s, why=died.how)


# ---- results ---------------------------------------------------------------------------------------------------------

__all__ += ["Judged", "judge_mutants"]


@dataclass(frozen=True, slots=True)
class Judged:
    """Hold the result of one mutant.

    `verdict` is `killed`, `presumed equivalent`, `not reached`, `difference not judged` or `no result`. A survivor is
    presumed equivalent if its changed statement ran and 2,000 crash states are as those of the original. It is not
    reached if the statement never ran in any trial. `seconds` is the least processor time of a kill.
    """

    mutant: Mutant
    verdict: str
    seconds: float = 0.0
    strategy: str = ""
    end: str = ""
    by_strategy: dict[str, MutantRow] = field(default_factory=dict)


def judge_mutants(plan: MutationPlan, rows: Sequence[MutantRow]) -> list[Judged]:
    """Return the result of each mutant of a plan."""
    of_mutant: dict[str, dict[str, MutantRow]] = defaultdict(dict)
    for key, row in plan.asked(rows).items():
        of_mutant[key.mutant][key.strategy] = row
    return [_judged(mutant, plan, of_mutant[mutant.id]) for mutant in plan.mutants]


def _judged(mutant: Mutant, plan: MutationPlan, found: dict[str, MutantRow]) -> Judged:
    searches = [found[name] for name in plan.strategies_of(mutant) if name in found]
    kills = [row for row in searches if row.end in KILLED]
    if kills:
        best = min(kills, key=lambda row: row.seconds)
        return Judged(mutant, "killed", best.seconds, best.strategy, best.end, found)
    trace = found.get(TRACE)
    if len(searches) < len(plan.strategies_of(mutant)) or trace is None:
        return Judged(mutant, "no result", by_strategy=found)
    if not any(row.is_reached for row in (*searches, trace)):
        return Judged(mutant, "not reached", by_strategy=found)
    if trace.end == "same":
        return Judged(mutant, "presumed equivalent", by_strategy=found)
    return Judged(mutant, "difference not judged", by_strategy=found)
