"""Test the board: kills by engine and time, censored trials, and trials without a result."""

import math
from typing import Any

from tornpage.properties.score.board import IN_TURNS, Board, board_of
from tornpage.properties.score.plan import Plan
from tornpage.properties.score.trials import TrialRow


def row(bug: str, strategy: str, number: int = 0, **changes: Any) -> TrialRow:
    known: dict[str, Any] = {"base_seed": 0, "clock": "wall", "budget_s": 60.0, "end": "killed", "seconds": 1.0}
    return TrialRow(bug, strategy, number, **(known | changes))


def board(*rows: TrialRow, bugs: tuple[str, ...] = ("a", "b"), trials: int = 3, budget_s: float = 60.0) -> Board:
    return board_of(Plan(bugs, ("x", "y"), trials, budget_s, "wall", 0), rows)


def survived(bug: str, strategy: str, number: int = 0, **changes: Any) -> TrialRow:
    return row(bug, strategy, number, **({"end": "survived", "seconds": 60.0} | changes))


def test_half_of_the_trials_have_to_kill() -> None:
    two_of_three = board(row("a", "x", 0, seconds=5.0), row("a", "x", 1, seconds=9.0), survived("a", "x", 2))
    one_of_three = board(row("a", "x", 0), survived("a", "x", 1), survived("a", "x", 2))
    assert two_of_three.best["a"].median_s.value == 9.0
    assert (two_of_three.killed_within, one_of_three.killed_within) == (1, 0)
    assert one_of_three.best["a"].kills == 1
    assert one_of_three.never_killed == ()


def test_a_bug_that_nobody_kills_is_named_and_counts_in_the_median() -> None:
    found = board(row("a", "x", seconds=4.0), survived("b", "x"), survived("b", "y"))
    assert found.never_killed == ("b",)
    assert found.median_kill_s == 4.0
    assert board(row("a", "x"), bugs=("a", "b", "c")).median_kill_s == math.inf


def test_a_kill_beyond_the_budget_is_censored() -> None:
    late = row("a", "x", seconds=30.0)
    assert board(late, budget_s=60.0).best["a"].kills == 1
    assert board(late, budget_s=20.0).best["a"].kills == 0


def test_a_trial_of_a_smaller_budget_says_nothing_unless_it_killed() -> None:
    assert "a" not in board(survived("a", "x", budget_s=20.0, seconds=20.0)).best
    assert board(row("a", "x", budget_s=20.0)).best["a"].kills == 1


def test_trials_that_died_are_counted_apart() -> None:
    found = board(row("a", "x", 0), row("a", "x", 1, end="died"), row("a", "x", 2, end="hung"))
    assert found.best["a"].median_s.value == 1.0
    assert (found.best["a"].trials, found.best["a"].lost) == (3, 2)
    assert dict(found.lost) == {"died": 1, "hung": 1}


def test_the_fastest_strategy_wins_and_in_turns_it_takes_its_share_of_the_time() -> None:
    found = board(
        row("a", "x", seconds=7.0), row("a", "y", seconds=2.0), survived("b", "y"), row("b", "x", seconds=40.0)
    )
    wins = {each.strategy: each.wins for each in found.strategies}
    assert (wins["x"], wins["y"]) == (1, 1)
    turns = {each.bug: each.median_s.value for each in found.scores if each.strategy == IN_TURNS}
    assert turns == {"a": 4.0, "b": math.inf}


def test_in_turns_the_one_trial_of_a_strategy_without_a_seed_is_that_of_every_number() -> None:
    rows = [row("a", "exhaustive", seconds=3.0), *(row("a", "random", number, seconds=9.0) for number in range(2))]
    found = board_of(Plan(("a",), ("random", "exhaustive"), 2, 60.0, "wall", 0), rows)
    (turns,) = (each for each in found.scores if each.strategy == IN_TURNS)
    assert (turns.trials, turns.kills, turns.p95_s.value) == (2, 2, 6.0)


def test_what_was_not_asked_for_is_left_out() -> None:
    found = board(
        row("a", "x", 3), row("c", "x"), row("a", "z"), row("a", "x", base_seed=1), row("a", "x", clock="cpu")
    )
    assert found.scores == ()
    assert dict(found.best) == {}


def test_curves_are_of_all_trials_of_a_strategy() -> None:
    found = board(row("a", "x", seconds=5.0), survived("b", "x"))
    (curve,) = (each.survival for each in found.strategies if each.strategy == "x")
    assert curve == ((5.0, 0.5),)
