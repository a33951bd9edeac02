"""Test which trials a mutant gets, and what they make of it."""

import subprocess
import sys
from dataclasses import replace

import pytest

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.mutation.campaign import MutationPlan, TrialsDone, _Queue, judge_mutants, settled, try_mutants
from tornpage.properties.mutation.confirming import original_keeps
from tornpage.properties.mutation.mutants import Mutant, mutant_of
from tornpage.properties.mutation.reach import Reach, ReachRow
from tornpage.properties.mutation.trials import TRACE, MutantEnd, MutantKey, MutantRow
from tornpage.properties.mutation.unit_tests import UNIT_TESTS, unit_tests_of

LYING_SYNC = "dispatch.derived:Derived.flush:removed-sync:1"


def mutant(name: str, package: str = "log") -> Mutant:
    return Mutant(name, f"tornpage.impl.{package}.x", package, "constant", "f", 3, 2, "0", "1")


def plan(*mutants: Mutant, everywhere: int = 0, unit_tests: int = 0, reach: Reach | None = None) -> MutationPlan:
    strategies = ("machine", "random", "cluster")
    return MutationPlan(mutants, strategies, 10.0, 0, everywhere, unit_tests, reach or Reach({}))


def reach(**first: dict[str, float]) -> Reach:
    return Reach({name: ReachRow(name, 0, 10.0, statements) for name, statements in first.items()})


def row(name: str, strategy: str, end: MutantEnd, *, seconds: float = 1.0, reached: bool = True) -> MutantRow:
    return MutantRow(name, strategy, 0, 10.0, end, seconds, is_reached=reached)


def same(*, reached: bool = True) -> list[MutantRow]:
    """Return the rows of all comparisons of `plan`, without a difference."""
    return [row("a", name, "same", reached=reached) for name in (TRACE, "trace cluster", "trace machine")]


def verdict(wanted: MutationPlan, *rows: MutantRow) -> str:
    return judge_mutants(wanted, rows)[0].verdict


def test_survivors_are_told_apart() -> None:
    survived = row("a", "machine", "survived"), row("a", "random", "survived")
    one = plan(mutant("a"))
    assert verdict(one) == "no result"
    assert verdict(one, *survived) == "not compared"
    assert verdict(one, *survived, row("a", TRACE, "different")) == "difference not judged"
    assert verdict(one, *survived, *same()) == "presumed equivalent"
    unreached = [replace(each, is_reached=False) for each in (*survived, *same())]
    assert verdict(one, *unreached) == "not reached"
    assert verdict(one, row("a", "machine", "survived"), row("a", "random", "hung")) == "killed"


def test_mutant_is_equivalent_only_if_every_comparison_that_runs_it_is_equal() -> None:
    survived = row("a", "machine", "survived"), row("a", "random", "survived"), row("a", TRACE, "same")
    assert verdict(plan(mutant("a")), *survived) == "not compared"
    two = row("a", "trace machine", "same"), row("a", "trace cluster", "same", reached=False)
    assert verdict(plan(mutant("a")), *survived, *two) == "presumed equivalent"
    other = row("a", "trace machine", "different"), two[1]
    assert verdict(plan(mutant("a")), *survived, *other) == "difference not judged"


def test_a_removed_lock_is_equivalent_only_if_interleavings_are_equal() -> None:
    lock = replace(mutant("a"), operator="removed lock")
    wanted = replace(plan(lock), strategies=("machine", "interleavings"))
    survived = row("a", "machine", "survived"), row("a", "interleavings", "survived")
    assert wanted.traces_of(lock) == ("trace interleavings",)
    assert verdict(wanted, *survived, *same()) == "not compared"
    assert verdict(wanted, *survived, row("a", "trace interleavings", "same")) == "presumed equivalent"


def test_comparisons_end_with_the_first_difference() -> None:
    ends: dict[str, MutantEnd] = {TRACE: "same", "trace cluster": "different"}
    queue = _Queue(plan(mutant("a")), {})
    tried = []
    for key in queue.take():
        tried.append(key.strategy)
        queue.running.discard(key)
        queue.rows[key] = row(key.mutant, key.strategy, ends.get(key.strategy, "survived"))
    assert tried == ["machine", "random", TRACE, "trace cluster"]


def test_all_mutants_are_searched_for_before_a_survivor_is_compared() -> None:
    queue = _Queue(plan(mutant("a"), mutant("b")), {})
    tried = []
    for key in queue.take():
        tried.append((key.mutant, key.strategy))
        queue.running.discard(key)
        end: MutantEnd = "killed" if key.mutant == "b" else "survived"
        queue.rows[key] = row(key.mutant, key.strategy, end)
    assert tried == [("a", "machine"), ("a", "random"), ("b", "machine"), ("a", TRACE)]
    assert queue.is_done(0)
    assert queue.is_done(1)


def test_results_after_an_unfinished_mutant_do_not_count() -> None:
    measured = reach(machine={"log.x:2": 1.0}, random={}, cluster={}, trace={})
    other = replace(mutant("c"), statement_line=9)
    wanted = plan(mutant("a"), mutant("b"), other, reach=measured)
    judged = judge_mutants(wanted, [row("a", "machine", "killed"), row("a", "random", "survived")])
    assert [each.verdict for each in judged] == ["killed", "no result", "no result"]
    judged = judge_mutants(wanted, [row("a", "machine", "killed"), row("b", "machine", "killed")])
    assert [each.verdict for each in judged] == ["killed", "killed", "not reached"]


def test_mutant_that_is_never_reached_is_not_called_equivalent() -> None:
    rows = [row("a", name, "exhausted", reached=False) for name in ("machine", "random")]
    assert verdict(plan(mutant("a")), *rows, row("a", TRACE, "same", reached=False)) == "not reached"


def test_failure_that_the_original_has_as_well_is_no_kill() -> None:
    rows = row("a", "machine", "unconfirmed"), row("a", "random", "survived"), *same()
    assert verdict(plan(mutant("a")), *rows) == "presumed equivalent"


def test_best_strategy_is_the_fastest_one() -> None:
    rows = row("a", "machine", "killed", seconds=7), row("a", "random", "raised", seconds=3)
    found = judge_mutants(plan(mutant("a"), everywhere=1), rows)[0]
    assert (found.verdict, found.strategy, found.seconds, found.end) == ("killed", "random", 3, "raised")


def test_unit_tests_do_not_count_as_a_strategy() -> None:
    rows = (
        row("a", "machine", "survived"),
        row("a", "random", "survived"),
        row("a", TRACE, "different"),
        row("a", UNIT_TESTS, "killed"),
    )
    assert verdict(plan(mutant("a"), unit_tests=1), *rows) == "difference not judged"


def test_unit_tests_of_the_changed_package_run_on_the_first_mutants() -> None:
    killed = {MutantKey(name, "machine", 0): row(name, "machine", "killed") for name in "ab"}
    queue = _Queue(plan(mutant("a"), mutant("b"), unit_tests=1), killed)
    assert [(key.mutant, key.strategy) for key in queue.take()] == [("a", UNIT_TESTS)]
    folders = [unit_tests_of(name) for name in ("queue", "statistics", "no such package")]
    assert [folder and folder.name for folder in folders] == ["queue", "statistics", "impl"]


def test_clusters_are_tried_first_on_replication_and_not_on_the_log() -> None:
    wanted = plan()
    assert wanted.strategies_of(mutant("a", "replication")) == ("cluster", "machine", "random")
    assert wanted.strategies_of(mutant("a", "log")) == ("machine", "random")


@pytest.mark.parametrize(
    ("package", "first"),
    [
        ("consumer", "consumers"),
        ("groups", "consumers"),
        ("raft", "raft"),
        ("replication", "cluster"),
        ("log", "random"),
    ],
)
def test_strategy_of_a_package_is_tried_first_on_it(package: str, first: str) -> None:
    wanted = replace(plan(), strategies=("random", "cluster", "consumers", "raft"))
    assert wanted.strategies_of(mutant("a", package))[0] == first


def test_interleavings_are_tried_first_on_changes_of_locks() -> None:
    wanted = replace(plan(), strategies=("random", "consumers", "interleavings"))
    lock = replace(mutant("a", "consumer"), operator="removed lock")
    assert wanted.strategies_of(lock) == ("interleavings", "consumers", "random")
    assert wanted.strategies_of(mutant("a", "consumer")) == ("consumers", "random", "interleavings")


def test_strategy_of_another_package_is_tried_if_no_other_one_runs_the_statement() -> None:
    measured = reach(machine={}, random={}, cluster={"log.x:2": 3.0})
    assert plan(reach=measured).strategies_of(mutant("a", "log")) == ("cluster",)


def test_strategies_are_tried_in_the_order_in_which_they_run_the_statement() -> None:
    measured = reach(machine={"log.x:2": 4.0}, random={"log.x:2": 1.5}, cluster={})
    assert plan(reach=measured).strategies_of(mutant("a")) == ("random", "machine")


def test_strategy_that_does_not_run_the_statement_is_not_tried() -> None:
    measured = reach(machine={"log.x:2": 4.0}, random={"log.x:3": 0.0}, cluster={})
    assert plan(reach=measured).strategies_of(mutant("a")) == ("machine",)


def test_mutant_of_a_statement_that_no_strategy_runs_is_not_reached_without_a_trial() -> None:
    one = plan(mutant("a"), reach=reach(machine={}, random={}, cluster={}, trace={}))
    assert verdict(one) == "not reached"
    done: list[TrialsDone] = []
    try_mutants(one, workers=1, kept=ResumeRows(None, MutantRow), progress=done.append, confirm=original_keeps)
    assert done == []


def test_survivor_that_the_trace_does_not_run_is_not_compared() -> None:
    there = {"log.x:2": 1.0}
    survived = row("a", "machine", "survived"), row("a", "random", "survived")
    assert verdict(plan(mutant("a"), reach=reach(machine=there, random=there, trace={})), *survived) == "not compared"
    unreached = row("a", TRACE, "same", reached=False)
    assert verdict(plan(mutant("a")), *survived, unreached) == "not compared"
    assert (
        verdict(plan(mutant("a"), reach=reach(machine=there, random=there, trace=there)), *survived) == "not compared"
    )


def test_trial_with_a_smaller_budget_is_run_again_unless_it_ended_before() -> None:
    short = replace(row("a", "machine", "survived"), budget_s=5.0)
    assert not plan(mutant("a")).asked([short])
    assert plan(mutant("a")).asked([replace(short, end="killed")])


def test_mutant_without_a_sync_is_killed_and_the_next_strategy_is_not_needed() -> None:
    kept = ResumeRows(None, MutantRow)
    one = MutationPlan((mutant_of(LYING_SYNC),), ("random", "machine"), 30.0, 0)
    done: list[TrialsDone] = []
    try_mutants(one, workers=1, kept=kept, progress=done.append, confirm=original_keeps)
    assert [(each.strategy, each.end) for each in kept.rows] == [("random", "killed")]
    assert judge_mutants(one, kept.rows)[0].verdict == "killed"
    assert (done[-1].done, done[-1].killed) == (1, 1)


def test_broken_promise_counts_only_if_the_original_keeps_it() -> None:
    found = replace(row("a", "machine", "killed"), token="tp1-x")
    assert settled(found, confirm=lambda _: True).end == "killed"
    assert settled(found, confirm=lambda _: False).end == "unconfirmed"


def test_memory_of_a_trial_is_bounded() -> None:
    program = """
from tornpage.properties.mutation.campaign import _MEMORY_BYTES_MAX, _bound_memory
_bound_memory()
try:
    bytearray(_MEMORY_BYTES_MAX)
except MemoryError:
    print("bounded")
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "bounded\n"
