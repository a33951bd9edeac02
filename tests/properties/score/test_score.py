"""Test a score: the order of its trials, repeated trials, and results kept at interrupts."""

from pathlib import Path

import pytest

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.planted import PLANTED, bugs_named
from tornpage.properties.score.plan import Plan, may_see, reason_why_not
from tornpage.properties.score.score import Progress, Queue, score
from tornpage.properties.score.strategies import STRATEGIES
from tornpage.properties.score.trials import TrialEnd, TrialKey, TrialRow, trial_rows

BUGS, STRATEGY = ("lying-flush", "floor-ahead"), ("random",)


def keys(bugs: tuple[str, ...], strategies: tuple[str, ...], trials: int) -> list[TrialKey]:
    return [TrialKey(b, s, n, 0) for n in range(trials) for s in strategies for b in bugs]


def ended(key: TrialKey, end: TrialEnd, seconds: float) -> TrialRow:
    return TrialRow(key.bug, key.strategy, key.number, key.base_seed, "wall", 60.0, end, seconds)


def order(queue: Queue, killers: dict[tuple[str, str], float]) -> list[str]:
    taken = []
    while queue.open:
        key = queue.take()
        taken.append(f"{key.bug}{key.strategy}{key.number}")
        seconds = killers.get((key.bug, key.strategy))
        queue.note(ended(key, "survived" if seconds is None else "killed", 60.0 if seconds is None else seconds))
    return taken


def test_every_bug_has_its_turn_before_any_has_the_next_and_the_living_come_first() -> None:
    taken = order(Queue(keys(("a", "b"), ("x", "y"), 1)), {("a", "x"): 1.0})
    assert taken == ["ax0", "bx0", "by0", "ay0"]


def test_in_later_rounds_the_cheapest_strategy_comes_first() -> None:
    taken = order(Queue(keys(("a",), ("x", "y"), 2)), {("a", "x"): 9.0, ("a", "y"): 2.0})
    assert taken == ["ax0", "ay0", "ay1", "ax1"]


def test_no_two_trials_have_one_seed() -> None:
    seeds = [key.seed for key in keys(("a", "b"), ("x", "y"), 30)]
    assert len(set(seeds)) == len(seeds)
    assert TrialKey("a", "x", 0, 0).seed != TrialKey("a", "x", 0, 1).seed


def carry_out(
    kept: ResumeRows[TrialRow], *, trials: int = 1, budget_s: float = 20.0, stop_at: int = 1_000
) -> list[Progress]:
    told: list[Progress] = []

    def progress(now: Progress) -> None:
        told.append(now)
        if now.done >= stop_at:
            raise KeyboardInterrupt

    plan = Plan(BUGS, STRATEGY, trials, budget_s, "cpu", 0)
    score(plan, workers=2, kept=kept, may_see=may_see, progress=progress)
    return told


@pytest.mark.slow
def test_a_score_is_gone_on_with_where_it_was_left(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        carry_out(trial_rows(tmp_path), trials=2, stop_at=1)
    kept = trial_rows(tmp_path)
    first = list(kept.rows)
    assert 1 <= len(first) < 4
    told = carry_out(kept, trials=2)
    assert (told[-1].done, told[-1].total, told[-1].new) == (4, 4, 4 - len(first))
    assert kept.rows[: len(first)] == first
    assert {row.end for row in kept.rows} == {"killed"}
    assert carry_out(trial_rows(tmp_path), trials=2)[-1].new == 0
    assert len({row.key for row in kept.rows}) == 4


def test_a_trial_that_dies_is_a_row(tmp_path: Path) -> None:
    kept = trial_rows(tmp_path)
    plan = Plan(("lying-flush",), ("no such strategy",), 1, 1.0, "wall", 0)
    score(plan, workers=1, kept=kept, may_see=may_see, progress=lambda now: None)
    assert [(row.end, row.why) for row in kept.rows] == [("died", "KeyError: 'no such strategy'")]


def test_a_strategy_without_a_seed_has_one_trial() -> None:
    told: list[Progress] = []

    def stop(now: Progress) -> None:
        told.append(now)
        raise KeyboardInterrupt

    plan = Plan(BUGS, ("random", "exhaustive"), 30, 1.0, "wall", 0)
    with pytest.raises(KeyboardInterrupt):
        score(plan, workers=1, kept=trial_rows(None), may_see=may_see, progress=stop)
    assert told[0].total == len(BUGS) * (30 + 1)


def test_what_cannot_be_seen_has_a_reason() -> None:
    needing_threads = [bug.id for bug in PLANTED.values() if bug.needs_threads]
    assert needing_threads
    for bug in needing_threads:
        assert any(may_see(bug, name) for name in STRATEGIES)
        assert reason_why_not(bug, "random")
    assert not reason_why_not("lying-flush", "random")
    assert not reason_why_not("RB09", "cluster")
    assert reason_why_not("RB09", "random") == "the bug needs two nodes"
    assert reason_why_not("lying-flush", "cluster")
    assert not reason_why_not("CB01", "consumers")
    assert reason_why_not("CB01", "random") == "the bug needs consumers"
    assert reason_why_not("lying-flush", "parts") == "this strategy runs parts of the store as they are"
    assert reason_why_not("RB09", "consumers")


def test_bugs_are_named_by_id_and_group() -> None:
    assert bugs_named(["RMQ-B13"]) == ("RMQ-B13",)
    assert bugs_named([]) == tuple(PLANTED)
    assert bugs_named(["RMQ-B13"], "durability").count("RMQ-B13") == 1
