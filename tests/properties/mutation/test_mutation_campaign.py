"""Test which trials a mutant gets, and what they make of it."""

from dataclasses import replace

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.mutation.campaign import MutationPlan, TrialsDone, judge_mutants, settled, try_mutants
from tornpage.properties.mutation.confirming import original_keeps
from tornpage.properties.mutation.mutants import Mutant, mutant_of
from tornpage.properties.mutation.trials import TRACE, MutantEnd, MutantRow
from tornpage.properties.mutation.unit_tests import UNIT_TESTS

LYING_SYNC = "dispatch.derived:Derived.flush:removed-sync:1"


def mutant(name: str, package: str = "log") -> Mutant:
    return Mutant(name, f"tornpage.impl.{package}.x", package, "constant", "f", 1, "0", "1")


def plan(*mutants: Mutant, everywhere: int = 0, unit_tests: bool = False) -> MutationPlan:
    return MutationPlan(mutants, ("machine", "random", "cluster"), 10.0, 0, everywhere, unit_tests)


def row(name: str, strategy: str, end: MutantEnd, *, seconds: float = 1.0, reached: bool = True) -> MutantRow:
    return MutantRow(name, strategy, 0, 10.0, end, seconds, is_reached=reached)


def verdict(wanted: MutationPlan, *rows: MutantRow) -> str:
    return judge_mutants(wanted, rows)[0].verdict


def test_survivors_are_told_apart() -> None:
    survived = row("a", "machine", "survived"), row("a", "random", "survived")
    one = plan(mutant("a"))
    assert verdict(one) == "no result"
    assert verdict(one, *survived) == "no result"
    assert verdict(one, *survived, row("a", TRACE, "different")) == "difference not judged"
    assert verdict(one, *survived, row("a", TRACE, "same")) == "presumed equivalent"
    unreached = [replace(each, is_reached=False) for each in (*survived, row("a", TRACE, "same"))]
    assert verdict(one, *unreached) == "not reached"
    assert verdict(one, row("a", "machine", "survived"), row("a", "random", "hung")) == "killed"


def test_mutant_that_is_never_reached_is_not_called_equivalent() -> None:
    rows = [row("a", name, "exhausted", reached=False) for name in ("machine", "random")]
    assert verdict(plan(mutant("a")), *rows, row("a", TRACE, "same", reached=False)) == "not reached"


def test_failure_that_the_original_has_as_well_is_no_kill() -> None:
    rows = row("a", "machine", "unconfirmed"), row("a", "random", "survived"), row("a", TRACE, "same")
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
    assert verdict(plan(mutant("a"), unit_tests=True), *rows) == "difference not judged"


def test_replication_is_tried_in_clusters_first_and_other_packages_are_not() -> None:
    wanted = plan()
    assert wanted.strategies_of(mutant("a", "replication")) == ("cluster", "machine", "random")
    assert wanted.strategies_of(mutant("a", "log")) == ("machine", "random")


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
    assert settled(found, confirm=lambda _: True, original=str).end == "killed"
    assert settled(found, confirm=lambda _: False, original=str).end == "unconfirmed"


def test_trace_of_the_original_is_the_same_and_another_one_is_not() -> None:
    found = replace(row("a", TRACE, "different"), digest="one")
    assert settled(found, confirm=lambda _: True, original=lambda: "one").end == "same"
    assert settled(found, confirm=lambda _: True, original=lambda: "two").end == "different"
