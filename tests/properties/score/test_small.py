"""Test shrinking the shortest failure of each bug: choice, repeats, and error rows."""

from dataclasses import replace
from functools import cache

import pytest

from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.token import from_token
from tornpage.properties.program.case import Case
from tornpage.properties.program.raft_case import RaftCase
from tornpage.properties.raft.replay import replay_raft
from tornpage.properties.score.shrunk import ShrunkRow, shortest_failures, shrink_all
from tornpage.properties.score.trials import TrialKey, TrialRow, run_trial


@cache
def killed(bug: str, strategy: str) -> TrialRow:
    row = run_trial(TrialKey(bug, strategy, 0, 0), 30.0, "cpu")
    assert row.end == "killed"
    return row


def made_small(
    *failures: TrialRow, known: tuple[ShrunkRow, ...] = (), budget_s: float = 20.0
) -> tuple[list[ShrunkRow], list[str]]:
    rows: list[ShrunkRow] = []
    told: list[str] = []
    shrink_all(failures, budget_s=budget_s, clock="cpu", workers=2, known=known, take=rows.append, progress=told.append)
    return rows, told


def test_the_kill_with_the_fewest_operations_is_chosen() -> None:
    row = TrialRow("a", "x", 0, 0, "wall", 60.0, "killed", 1.5, operations=9, token="tp1-x")
    shorter, longer = replace(row, number=1, operations=4), replace(row, strategy="y", operations=20)
    survived = replace(row, number=2, end="survived", operations=0)
    assert shortest_failures([survived, row, shorter, longer]) == (shorter,)
    assert shortest_failures([survived]) == ()


def test_a_case_made_small_breaks_the_same_promise() -> None:
    met = killed("lying-flush", "random")
    (small,), told = made_small(met)
    assert told == ["lying-flush"]
    assert (small.bug, small.met, small.ended, small.one_minimal) == ("lying-flush", met.token, "", True)
    assert 0 < small.operations <= small.operations_met == met.operations
    with choose_tracker("auto") as tracker:
        failure = replay(Case.from_token(small.token), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == met.contract
    assert (len(failure.case.operations), failure.lost_pages) == (small.operations, small.lost_pages)


def test_a_case_of_a_raft_group_is_made_small_too() -> None:
    (small,), _ = made_small(killed("LB11", "raft"))
    assert (small.ended, small.one_minimal) == ("", None)
    assert 0 < small.operations <= small.operations_met
    with choose_tracker("auto") as tracker:
        assert replay_raft(RaftCase.from_token(small.token), tracker=tracker) is not None


@pytest.mark.slow
def test_an_interleaving_is_made_small_too() -> None:
    (small,), _ = made_small(killed("RMQ-B76", "interleavings"))
    assert small.one_minimal is None
    assert small.operations <= small.operations_met
    with choose_tracker("auto") as tracker:
        assert run_interleaving(from_token(small.token)[0], tracker=tracker).broken is not None


def test_what_is_known_is_not_done_again_unless_there_is_more_time_for_it() -> None:
    met = killed("lying-flush", "random")
    done = ShrunkRow(met.bug, met.strategy, met.token, 1.0, "cpu", met.operations, token="tp1-small")
    assert made_small(met, known=(done,)) == ([], ["lying-flush"])
    cut = replace(done, ended="time")
    assert made_small(met, known=(cut,), budget_s=1.0)[0] == []
    assert [row.ended for row in made_small(met, known=(cut,), budget_s=20.0)[0]] == [""]


@pytest.mark.parametrize(("token", "ended"), [("tp1-nonsense", "died"), ("", "holds")])
def test_a_failure_that_cannot_be_made_small_is_a_row(token: str, ended: str) -> None:
    met = killed("lying-flush", "random")
    case = Case.from_token(met.token)
    holds = Case(replace(case.settings, bug=""), case.operations).token()
    ((row,), _) = made_small(replace(met, token=token or holds))
    assert (row.ended, row.token, row.bug) == (ended, "", "lying-flush")
