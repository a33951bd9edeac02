"""Test covering arrays: all pairs, then threes; exclusions; equal seeds, equal rows."""

from itertools import combinations, islice

import pytest

from tornpage.properties.program.covering import CoveringArray, Level, Pair, Row, possible_pairs

FACTORS = {"mode": "abcde", "pages": "1248", "index": "xyz", "trailer": "01", "light": "01", "disks": "01"}
EXCLUDED: list[Pair] = [
    (("mode", "a"), ("pages", "8")),
    (("index", "x"), ("light", "1")),
    (("mode", "b"), ("disks", "1")),
]


def pairs_of(rows: list[Row]) -> set[frozenset[Level]]:
    return {frozenset(pair) for row in rows for pair in combinations(row.items(), 2)}


def rows_until_all_pairs(array: CoveringArray) -> list[Row]:
    rows: list[Row] = []
    while not rows or array.pairs_left:
        rows.append(array.row(len(rows)))
    return rows


def test_rows_have_every_possible_pair_and_no_excluded_one() -> None:
    array = CoveringArray(FACTORS, excluded=EXCLUDED, seed="1")
    wanted = {frozenset(pair) for pair in possible_pairs(FACTORS, excluded=EXCLUDED)}
    assert array.pairs_left == len(wanted)
    rows = rows_until_all_pairs(array)
    assert pairs_of(rows) == wanted
    assert not array.impossible
    assert len(rows) < 30, "5 times 4 rows at least"
    assert all(list(row) == list(FACTORS) for row in rows)


def test_rows_after_the_last_pair_have_every_three() -> None:
    factors = {"a": "12", "b": "123", "c": "12", "d": "123"}
    array = CoveringArray(factors, excluded=[(("a", "1"), ("b", "3"))])
    rows = list(islice(array.rows(), 30))
    threes = {frozenset(three) for row in rows for three in combinations(row.items(), 3)}
    pairs = {frozenset(pair) for pair in possible_pairs(factors, excluded=[(("a", "1"), ("b", "3"))])}
    wanted = {
        frozenset(three)
        for names in combinations(factors, 3)
        for three in _all_of(factors, names)
        if all(frozenset(pair) in pairs for pair in combinations(three, 2))
    }
    assert threes == wanted


def _all_of(factors: dict[str, str], names: tuple[str, ...]) -> list[tuple[Level, ...]]:
    found: list[tuple[Level, ...]] = [()]
    for name in names:
        found = [(*some, (name, level)) for some in found for level in factors[name]]
    return found


def test_equal_seeds_give_equal_rows_and_others_do_not() -> None:
    one, two, other = (list(islice(CoveringArray(FACTORS, seed=seed).rows(), 40)) for seed in ("1", "1", "2"))
    assert one == two
    assert one != other


def test_rows_do_not_depend_on_the_order_in_which_they_are_taken() -> None:
    array = CoveringArray(FACTORS, excluded=EXCLUDED)
    last = array.row(25)
    assert CoveringArray(FACTORS, excluded=EXCLUDED).row(25) == last
    assert array.row(3) == CoveringArray(FACTORS, excluded=EXCLUDED).row(3)


def test_a_pair_that_no_row_can_have_is_listed() -> None:
    """Level 1 of `a` and level 1 of `b` exclude each other by way of `c`."""
    factors = {"a": "01", "b": "01", "c": "01"}
    excluded: list[Pair] = [(("a", "1"), ("c", "0")), (("b", "1"), ("c", "1"))]
    array = CoveringArray(factors, excluded=excluded)
    rows = rows_until_all_pairs(array)
    assert array.impossible == [(("a", "1"), ("b", "1"))]
    assert not pairs_of(rows) & {frozenset(pair) for pair in excluded}


@pytest.mark.parametrize("factors", [{"a": "", "b": "01"}, {"a": "11"}])
def test_a_factor_needs_levels_each_of_them_once(factors: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="levels"):
        CoveringArray(factors)


def test_an_exclusion_names_known_levels_of_two_factors() -> None:
    for pair in ((("mode", "a"), ("mode", "b")), (("mode", "a"), ("colour", "red"))):
        with pytest.raises(ValueError, match="no two levels"):
            CoveringArray(FACTORS, excluded=[pair])


def test_exclusions_may_leave_no_row() -> None:
    every: list[Pair] = [(("a", one), ("b", other)) for one in "01" for other in "01"]
    with pytest.raises(ValueError, match="no row"):
        CoveringArray({"a": "01", "b": "01"}, excluded=every).row(0)


def test_the_first_row_may_be_given() -> None:
    first = {"mode": "b", "pages": "2", "index": "y", "trailer": "1", "light": "0", "disks": "0"}
    array = CoveringArray(FACTORS, excluded=EXCLUDED, first=first)
    assert array.row(0) == first
    assert len(pairs_of(rows_until_all_pairs(array))) == len(list(possible_pairs(FACTORS, excluded=EXCLUDED)))
    for wrong in ({**first, "disks": "1"}, {**first, "mode": "f"}, {"mode": "b"}):
        with pytest.raises(ValueError, match="first row"):
            CoveringArray(FACTORS, excluded=EXCLUDED, first=wrong)
