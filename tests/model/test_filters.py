"""Test the meaning of filters by properties, also against that of the store."""

import random
from itertools import product

import pytest

from tornpage.impl.read.filters import PropertyFilter
from tornpage.model.properties import CLAUSES, PROPERTY_NAMES, BadExpression, passes, property_of
from tornpage.properties.program.drawing import FILTERED, draw_where


def passed(expression: str, **properties: str) -> bool:
    return passes(expression, properties.get)


def test_message_passes_only_if_the_condition_is_true() -> None:
    assert passed("(size > 3)", size="4")
    assert not passed("(size > 3)", size="3")
    assert not passed("(size > 3)")
    assert not passed("NOT (size > 3)")
    assert not passed("(size > 3)", size="many")
    assert not passed("NOT (size > 3)", size="many")


def test_whole_number_has_the_size_of_the_other_side() -> None:
    assert not passed("NOT (size > 3)", size="-3000000000")
    assert passed("(size < 3000000000)", size="-3000000000")


def test_parts_after_the_deciding_one_are_not_evaluated() -> None:
    assert passed("(color = 'red') OR (size > 3)", color="red", size="many")
    assert not passed("(size > 3) OR (color = 'red')", color="red", size="many")
    assert passed("(color IS NULL) OR (paid)", paid="1")
    assert not passed("(size > 3) AND (color IS NULL)")


def test_and_binds_more_tightly_than_or_and_parentheses_before_both() -> None:
    assert passed("(5 = 5) OR (5 = 5) AND (5 <> 5)")
    assert not passed("((5 = 5) OR (5 = 5)) AND (5 <> 5)")
    assert passed("(5 <> 5) AND (5 = 5) OR (5 = 5)")
    assert passed("NOT ((5 <> 5) OR NOT (5 = 5))")
    assert not passed("NOT ((5 <> 5) OR (size > 3))"), "an unknown part leaves OR unknown, and NOT too"
    assert passed("((color IN ('red', 'it''s')) OR (paid)) AND (NOT (color = 'red'))", color="it's")


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "size > 3",
        "(size > 4)",
        "(size > 3) AND (size > 4)",
        "(paid) x",
        "((paid)",
        "(paid) AND ",
        "NOT paid",
        "(paid))",
    ],
)
def test_expression_that_is_not_made_of_clauses_is_refused(expression: str) -> None:
    with pytest.raises(BadExpression):
        passed(expression)


def test_store_gives_clauses_the_same_meaning() -> None:
    known = [{name: property_of(text, name) for name in PROPERTY_NAMES} for text in FILTERED]
    signed = [f"{sign}({clause})" for sign in ("", "NOT ") for clause in CLAUSES]
    joined = [
        f"{first}{joint}{second}" for first, second in product(signed[:25], signed[18:]) for joint in (" AND ", " OR ")
    ]
    for expression in (*signed, *joined[::7]):
        store = PropertyFilter(expression)
        for values in known:
            given = {name: value for name, value in values.items() if value is not None}
            assert store.matches(given) is passes(expression, values.get), (expression, given)


def test_store_gives_drawn_expressions_the_same_meaning() -> None:
    rng = random.Random(3)
    known = [{name: property_of(text, name) for name in PROPERTY_NAMES} for text in FILTERED]
    for _ in range(300):
        expression = draw_where(rng, 4)
        store = PropertyFilter(expression)
        for values in known:
            given = {name: value for name, value in values.items() if value is not None}
            assert store.matches(given) is passes(expression, values.get), (expression, given)
