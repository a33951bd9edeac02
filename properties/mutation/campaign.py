"""Try the mutants of a sample with the strategies, and the unit tests beside them.

1. Each strategy runs on the original store, and the statements that it runs are noted. A mutant of a statement that no
   strategy runs is not tried.
2. The first `everywhere` mutants of the sample are tried with every strategy that runs their statements. Each other
   mutant is tried with one strategy after the other, until one kills it.
3. The trials in `TRACES` compare each survivor with the original.

A mutant that is proved equivalent is not tried. A mutant that a review found equivalent is tried, so that a kill shows
a wrong review, and is not compared.
"""

import resource
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.campaign.workers import Died, JobPool, Plain
from tornpage.properties.mutation.equivalence import proof_of
from tornpage.properties.mutation.mutants import Mutant
from tornpage.properties.mutation.reach import Reach, ReachRow, measure_reach
from tornpage.properties.mutation.review import reason_of
from tornpage.properties.mutation.trials import (
    KILLED,
    PRELOAD,
    TRACE,
    TRACES,
    MutantEnd,
    MutantKey,
    MutantRow,
    run_mutant_trial,
)
from tornpage.properties.mutation.unit_tests import UNIT_TESTS, UNIT_TESTS_S, run_unit_tests

__all__ = ["MutationPlan", "NotMeasured", "TrialsDone", "known_reach", "measure", "settled", "try_mutants"]

_WALL_OF_CPU_MAX = 200
"""Seconds of the wall clock that one processor second may take before a trial counts as hung.

A trial that uses no processor time ends sooner, so that only a machine with much other work comes near this.
"""

_CPU_OF_BUDGET_MAX = 3
"""Processor time of a trial as a multiple of its budget, before it counts as hung. A replay follows a detection."""

_SLACK_S = 20.0
_TRACE_S = 20.0
"""Processor time of the trial `trace`, about."""

_MEMORY_BYTES_MAX = 4 << 30
"""The most memory of a trial."""
_IDLE_S_MAX = 30.0
"""Seconds of the wall clock in which a trial may use no processor time before it counts as hung."""

_PACKAGES = {
    "cluster": frozenset({"replication", "serving"}),
    "consumers": frozenset({"consumer", "groups"}),
    "raft": frozenset({"raft", "serving"}),
}
"""The strategies that search some packages of the store, with these packages.

They are tried first on their own packages. On other packages they are tried only if no other strategy runs the changed
statement.
"""

_OF_THREADS = {"removed lock": "interleavings", "swapped in lock": "interleavings"}
"""The strategy that is tried first on the mutants of an operator."""

_TRACE_OF_THREADS = "trace interleavings"


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """Plan trials of `mutants` with `strategies`.

    A trial has up to `budget_s` seconds of processor time. The first `everywhere` mutants are tried with every
    strategy. The first `unit_tests` mutants also get the unit tests. `reach` tells which strategies run a statement.
    """

    mutants: tuple[Mutant, ...]
    strategies: tuple[str, ...]
    budget_s: float
    base_seed: int
    everywhere: int = 0
    unit_tests: int = 0
    reach: Reach = field(default_factory=lambda: Reach({}))

    def strategies_of(self, mutant: Mutant) -> tuple[str, ...]:
        """Return the strategies for a mutant in the order in which they are tried.

        Those for its package come first, then the one that runs the changed statement first. Interleavings come before
        all others if the change is about a lock. The order changes the cost and not the result.
        """
        ordered = self.reach.order(mutant.statement, self.strategies)
        own = tuple(name for name in ordered if mutant.package in _PACKAGES.get(name, ()))
        general = tuple(name for name in ordered if name not in _PACKAGES)
        found = (*own, *general) or ordered
        first = _OF_THREADS.get(mutant.operator)
        return tuple(sorted(found, key=lambda name: name != first))

    def traces_of(self, mutant: Mutant) -> tuple[str, ...]:
        """Return the trials of `TRACES` that run the changed statement.

        A removed lock changes nothing in one thread, so only interleavings are compared.
        """
        wanted = (_TRACE_OF_THREADS,) if mutant.operator == "removed lock" else self.traces
        return tuple(name for name in self.traces if name in wanted and self.reach.runs(name, mutant.statement))

    @property
    def traces(self) -> tuple[str, ...]:
        """The trials of `TRACES` that go with the strategies."""
        return (TRACE, *(name for name in TRACES if name.removeprefix(f"{TRACE} ") in self.strategies))

    def proof_of(self, mutant: Mutant) -> str:
        """Return why a mutant is equivalent, or an empty string."""
        return proof_of(mutant)

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


_Stage = Literal["search", "compare", "unit tests"]
_STAGES: tuple[_Stage, ...] = ("search", "compare", "unit tests")


@dataclass
class _Queue:
    """Decide which trial comes next. Trials that run count as tried.

    All mutants are searched for before the first survivor is compared, so that an interrupted run has the kill rate of
    many.
    """

    plan: MutationPlan
    rows: dict[MutantKey, MutantRow]
    running: set[MutantKey] = field(default_factory=set)
    _at: dict[_Stage, int] = field(default_factory=lambda: dict.fromkeys(_STAGES, 0))

    def take(self) -> Iterator[MutantKey]:
        """Yield trials until none is left that may be needed."""
        while (key := self._next()) is not None:
            self.running.add(key)
            yield key

    def _next(self) -> MutantKey | None:
        """Return the next trial of the first mutant that needs one and has none running."""
        busy = {key.mutant for key in self.running}
        for stage in _STAGES:
            for number in range(self._at[stage], len(self.plan.mutants)):
                mutant = self.plan.mutants[number]
                if mutant.id in busy:
                    continue
                key = self._wanted(number, stage)
                if key is not None:
                    return key
                if number == self._at[stage] and (stage == "search" or self._at["search"] > number):
                    self._at[stage] += 1
        return None

    def is_done(self, number: int) -> bool:
        """Return whether a mutant needs no more trials."""
        return all(self._wanted(number, stage) is None for stage in _STAGES)

    def _wanted(self, number: int, stage: _Stage) -> MutantKey | None:
        """Return the next trial of a mutant in a stage, or None if it needs none now."""
        mutant, plan = self.plan.mutants[number], self.plan
        strategies = plan.strategies_of(mutant)
        if stage != "unit tests" and plan.proof_of(mutant):
            return None
        ends = [self.rows.get(MutantKey(mutant.id, name, plan.base_seed)) for name in strategies]
        killed = any(row is not None and row.end in KILLED for row in ends)
        missing = [name for name, row in zip(strategies, ends, strict=True) if row is None]
        name = missing[0] if missing and (not killed or number < plan.everywhere) else ""
        if stage == "compare":
            is_left = strategies and not killed and not missing and not reason_of(mutant)
            name = self._next_trace(mutant) if is_left else ""
        elif stage == "unit tests":
            name = UNIT_TESTS if number < plan.unit_tests else ""
        key = MutantKey(mutant.id, name, plan.base_seed)
        return None if not name or key in self.rows else key

    def _next_trace(self, mutant: Mutant) -> str:
        """Return the next trial that compares a mutant.

        It is empty after the last one, and after one that differs.
        """
        for name in self.plan.traces_of(mutant):
            row = self.rows.get(MutantKey(mutant.id, name, self.plan.base_seed))
            if row is None:
                return name
            if row.end != "same":
                break
        return ""


class NotMeasured(RuntimeError):
    """Raise this if a strategy could not be measured on the original store."""


def known_reach(plan: MutationPlan, rows: Iterable[ReachRow]) -> MutationPlan:
    """Return the plan with what earlier measurements say about its strategies."""
    wanted = (*plan.strategies, *plan.traces)
    return replace(plan, reach=Reach({row.strategy: row for row in rows if row.strategy in wanted}))


def measure(
    plan: MutationPlan, *, budget_s: float, workers: int, kept: ResumeRows[ReachRow], progress: Callable[[str], None]
) -> MutationPlan:
    """Return the plan with the statements that its strategies run.

    Missing measurements are made and added to `kept`. Each strategy runs for `budget_s` seconds of processor time on
    the original store. Raises NotMeasured.
    """
    done = known_reach(plan, kept.rows).reach.rows
    parts = iter([name for name in (*plan.strategies, *plan.traces) if name not in done])
    job = Plain(partial(measure_reach, base_seed=plan.base_seed, budget_s=budget_s))
    limit_s = max(budget_s, _TRACE_S) * _WALL_OF_CPU_MAX + _SLACK_S
    with closing(JobPool(job, parts, workers, limit_s, PRELOAD).results()) as results:
        for name, made in results:
            if isinstance(made, Died):
                raise NotMeasured(f"the strategy {name} was not measured on the original store: {made.how}")
            kept.add(made)
            progress(name)
    return known_reach(plan, kept.rows)


def try_mutants(
    plan: MutationPlan,
    *,
    workers: int,
    kept: ResumeRows[MutantRow],
    progress: Callable[[TrialsDone], None],
    confirm: Callable[[MutantRow], bool],
) -> None:
    """Run the trials missing in `kept`, and add each to it when it ends.

    `confirm` returns whether the original keeps the broken guarantee of a row. A keyboard interrupt ends the running
    trials and is raised to the caller; finished trials are kept.
    """
    queue = _Queue(plan, plan.asked(kept.rows))

    def tell() -> None:
        total = len(plan.mutants)
        done = sum(map(queue.is_done, range(total)))
        killed = {row.mutant for row in queue.rows.values() if row.end in KILLED and row.strategy != UNIT_TESTS}
        progress(TrialsDone(done, total, len(killed)))

    longest_s = max(plan.budget_s, _TRACE_S, UNIT_TESTS_S if plan.unit_tests else 0)
    job = Plain(partial(_run, budget_s=plan.budget_s, digests={name: plan.reach.digests(name) for name in plan.traces}))
    pool = JobPool(
        job, queue.take(), workers, longest_s * _WALL_OF_CPU_MAX + _SLACK_S, PRELOAD,
        cpu_limit_s=max(plan.budget_s * _CPU_OF_BUDGET_MAX, _TRACE_S) + _SLACK_S,
        idle_limit_s=None if plan.unit_tests else _IDLE_S_MAX,
    )  # fmt: skip
    with closing(pool.results()) as results:
        for key, made in results:
            row = _lost(key, plan, made) if isinstance(made, Died) else made
            row = settled(row, confirm=confirm)
            kept.add(row)
            queue.rows[row.key] = row
            queue.running.discard(key)
            tell()


def settled(row: MutantRow, *, confirm: Callable[[MutantRow], bool]) -> MutantRow:
    """Return a row after the comparison with the original store.

    A broken guarantee that the original breaks as well is unconfirmed.
    """
    if row.token and row.end == "killed" and not confirm(row):
        return replace(row, end="unconfirmed", why="the original breaks the promise as well")
    return row


def _run(key: MutantKey, budget_s: float, digests: Mapping[str, Sequence[str]]) -> MutantRow:
    _bound_memory()
    if key.strategy == UNIT_TESTS:
        return run_unit_tests(key, budget_s)
    return run_mutant_trial(key, budget_s, digests.get(key.strategy, ()))


def _bound_memory() -> None:
    """Let this process, which has one trial, take a bounded amount of memory.

    A mutant that takes more gets MemoryError. Without a bound the system would end some process of the machine.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = _MEMORY_BYTES_MAX if hard == resource.RLIM_INFINITY else min(_MEMORY_BYTES_MAX, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _lost(key: MutantKey, plan: MutationPlan, died: Died[MutantKey]) -> MutantRow:
    end: MutantEnd = "hung" if died.is_hung else "died"
    return MutantRow(key.mutant, key.strategy, key.base_seed, plan.budget_s, end, plan.budget_s, why=died.how)


# ---- results ---------------------------------------------------------------------------------------------------------

__all__ += ["REVIEWED", "Judged", "judge_mutants"]

REVIEWED = "by review: "
"""The begin of the reason if a review found a mutant equivalent."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Hold the result of one mutant.

    `verdict` is `killed`, `presumed equivalent`, `not reached`, `not compared`, `difference not judged` or `no result`.
    A survivor is presumed equivalent if its changed statement ran in trials of `TRACES` and their states are as those
    of the original, or if a proof or a review says so; then it is the `reason`. It is not compared if no trial of
    `TRACES` runs the statement, or if one of them was not run yet. It is not reached if the statement never ran in any
    trial. `seconds` is the least processor time of a kill.
    """

    mutant: Mutant
    verdict: str
    seconds: float = 0.0
    strategy: str = ""
    end: str = ""
    by_strategy: dict[str, MutantRow] = field(default_factory=dict)
    reason: str = ""


def judge_mutants(plan: MutationPlan, rows: Sequence[MutantRow]) -> list[Judged]:
    """Return the result of each mutant of a plan, up to the first one without a result.

    Later mutants count as without a result. The order of a sample is random, so the mutants before the first one
    without a result are a sample as well. Mutants of statements that no strategy runs have their results at once, and
    would make the share of survivors too large.
    """
    of_mutant: dict[str, dict[str, MutantRow]] = defaultdict(dict)
    for key, row in plan.asked(rows).items():
        of_mutant[key.mutant][key.strategy] = row
    judged = [_judged(mutant, plan, of_mutant[mutant.id]) for mutant in plan.mutants]
    first = next((number for number, each in enumerate(judged) if each.verdict == "no result"), len(judged))
    return judged[:first] + [replace(each, verdict="no result") for each in judged[first:]]


def _judged(mutant: Mutant, plan: MutationPlan, found: dict[str, MutantRow]) -> Judged:
    searches = [found[name] for name in plan.strategies_of(mutant) if name in found]
    kills = [row for row in searches if row.end in KILLED]
    if kills:
        best = min(kills, key=lambda row: row.seconds)
        return Judged(mutant, "killed", best.seconds, best.strategy, best.end, found)
    if proof := plan.proof_of(mutant):
        return Judged(mutant, "presumed equivalent", by_strategy=found, reason=proof)
    if len(searches) < len(plan.strategies_of(mutant)):
        return Judged(mutant, "no result", by_strategy=found)
    if review := reason_of(mutant):
        return Judged(mutant, "presumed equivalent", by_strategy=found, reason=f"{REVIEWED}{review}")
    traces = {name: found[name] for name in plan.traces if name in found}
    if not any(row.is_reached for row in (*searches, *traces.values())):
        return Judged(mutant, "not reached", by_strategy=found)
    wanted = plan.traces_of(mutant)
    ran = [name for name, row in traces.items() if row.is_reached and (name in wanted or row.end != "same")]
    if any(traces[name].end != "same" for name in ran):
        return Judged(mutant, "difference not judged", by_strategy=found)
    if not ran or set(wanted) - set(traces):
        return Judged(mutant, "not compared", by_strategy=found)
    return Judged(mutant, "presumed equivalent", by_strategy=found, reason=f"the same states in: {', '.join(ran)}")
