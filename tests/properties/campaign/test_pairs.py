"""Test the count of exercised pairs and threes against their definition."""

from itertools import combinations

from tornpage.properties.campaign.pairs import exercised_by
from tornpage.properties.program.covering import Pair

FACTORS = {"a": ("0", "1"), "b": ("0", "1"), "c": ("0", "1", "2")}
EXCLUDED: list[Pair] = [(("a", "0"), ("b", "0"))]


def test_each_pair_that_a_run_had_counts_once() -> None:
    found = exercised_by(["a=0 b=1 c=0", "a=0 b=1 c=0", "a=1 c=0"], FACTORS, excluded=EXCLUDED)
    assert len(found.pairs) == 3 + 6 + 6
    assert found.exercised == 4
    assert (("a", "0"), ("b", "1")) not in found.missing
    assert (("a", "1"), ("b", "1")) in found.missing
    assert (found.threes, found.threes_exercised) == (9, 1)


def test_rows_sum_up_the_pairs_of_each_level() -> None:
    found = exercised_by(["a=1 b=0 b=1 c=2"], FACTORS, excluded=EXCLUDED)
    rows = {(row["factor"], row["level"]): (row["pairs"], row["exercised"]) for row in found.rows()}
    assert rows["a", "1"] == (5, 3)
    assert rows["a", "0"] == (4, 0)
    assert rows["c", "2"] == (4, 3)
    assert list(rows) == [(factor, level) for factor, levels in FACTORS.items() for level in levels]
    assert sum(count for _, count in rows.values()) == 2 * found.exercised


def test_a_run_with_both_levels_of_an_excluded_pair_exercises_the_others() -> None:
    found = exercised_by(["a=0 b=0 c=1"], FACTORS, excluded=EXCLUDED)
    assert found.exercised == 2
    assert found.threes_exercised == 0


def test_all_threes_are_reached_by_all_runs() -> None:
    levels = [(factor, level) for factor, some in FACTORS.items() for level in some]
    runs = [
        " ".join(f"{factor}={level}" for factor, level in three)
        for three in combinations(levels, 3)
        if len({factor for factor, _ in three}) == 3
    ]
    found = exercised_by(runs, FACTORS, excluded=EXCLUDED)
    assert found.missing == ()
    assert found.threes_exercised == found.threes


def test_unknown_levels_are_left_out() -> None:
    assert exercised_by(["a=7 d=0", ""], FACTORS).exercised == 0
