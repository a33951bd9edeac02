"""Test expressions of property filters: their syntax, and their values for properties."""

import pytest

from tests.support.impl.stores import chain_of
from tornpage.impl.errors import BadFilter
from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.read.sql92 import compile_expression

PROPERTIES = {"a": "7", "b": "x", "t": "True", "f": "1.5", "quote": "it's", "big": "3000000000", "_$9": "odd"}

VALUES: list[tuple[str, object]] = [
    ("a = 7", True),
    ("a = '7'", True),
    ("7 = a", True),
    ("a <> 7", False),
    ("a = 7.0", True),
    ("a > 6 AND a >= 7 AND a < 8 AND a <= 7", True),
    ("a > 7 OR a < 7", False),
    ("A = 7", None),
    ("a BETWEEN 7 AND 9", True),
    ("a between 8 and 9", False),
    ("a NOT BETWEEN 1 AND 6", True),
    ("a BETWEEN 1 AND 9 AND b = 'x'", True),
    ("f BETWEEN 1.25 AND 1.5", True),
    ("a BETWEEN -5 AND 10", True),
    ("b IN ('y', 'x')", True),
    ("b IN ('y')", False),
    ("b NOT IN ('y')", True),
    ("missing IN ('y')", None),
    ("missing NOT IN ('y')", None),
    ("missing IS NULL", True),
    ("missing IS NOT NULL", False),
    ("a IS NULL", False),
    ("a IS NOT NULL", True),
    ("missing = 7", None),
    ("missing <> 7", None),
    ("missing > 7", None),
    ("7 = missing", False),
    ("7 <> missing", True),
    ("missing = gone", True),
    ("NOT (missing = 7)", None),
    ("missing = 7 OR a = 7", True),
    ("missing = 7 OR a = 8", None),
    ("missing = 7 AND a = 8", False),
    ("missing = 7 AND a = 7", None),
    ("t = TRUE", True),
    ("b = FALSE", True),
    ("TRUE", True),
    ("false OR true", True),
    ("NULL", None),
    ("b", False),
    ("t", False),
    ("missing", None),
    ("NOT b", True),
    ("(a > 5) = TRUE", True),
    ("(a > 5) = 3", False),
    ("a > 5 = TRUE", True),
    ("a = -7 OR a = +7", True),
    ("-a = 7", None),
    ("a = - 'x'", False),
    ("quote = 'it''s'", True),
    ("_$9 = 'odd'", True),
    ("big = 3000000000", True),
    ("big > 5L", ValueError),
    ("a > .5 AND a > 5. AND a > 5e0 AND a < 1.5E+3", True),
    ("a = f", False),
    ("a > f", True),
    ("b > f", ValueError),
    ("b > 5", ValueError),
    ("b = 5", ValueError),
    ("f = 1", ValueError),
    ("TRUE = t", ValueError),
    ("b = 'x' OR b > 5", True),
    ("b > 5 OR b = 'x'", ValueError),
    ("a = 7 -- the rest is a comment\n AND b = 'x'", True),
    ("/* first */ a /* second **/ = 7", True),
    ("a\t=\r\n7", True),
    ("order = 1 OR note = 2 OR inner = 3 OR nulls IS NULL", True),
]

REFUSED = [
    "",
    "a =",
    "= 5",
    "5",
    "'x'",
    "-5",
    "a > 'x'",
    "a > TRUE",
    "(a > 5) > 3",
    "a > 5 > 3",
    "a = NULL",
    "NULL <> a",
    "TRUE = 5",
    "FALSE = 'x'",
    "a BETWEEN 6 AND 5",
    "a BETWEEN NULL AND 5",
    "a BETWEEN 'a' AND 'b'",
    "a IN ()",
    "a IN (5)",
    "5 IN ('x')",
    "a IN ('x'",
    "a LIKE 'x'",
    "a + 1 = 2",
    "05 = a",
    "a = 9223372036854775808",
    "a = 1e999",
    "a = 'open",
    "(a = 1",
    "a = 1)",
    "a = 1 AND",
    "NOT " * 300 + "a",
    "a == 1",
    "ä = 1",
]


@pytest.mark.parametrize(("expression", "expected"), VALUES)
def test_value(expression: str, expected: object) -> None:
    evaluate = compile_expression(expression)
    if expected is ValueError:
        with pytest.raises(ValueError, match=r"no (whole )?number|too large|cannot be compared"):
            evaluate(PROPERTIES)
    else:
        assert evaluate(PROPERTIES) is expected
    assert PropertyFilter(expression).matches(PROPERTIES) is (expected is True)


@pytest.mark.parametrize("expression", REFUSED, ids=lambda text: text[:20])
def test_refused(expression: str) -> None:
    with pytest.raises(BadFilter) as refused:
        compile_expression(expression)
    assert chain_of(refused.value).startswith("filter ")
    assert refused.value.expression == expression


def test_long_expressions_need_no_deep_stack() -> None:
    assert compile_expression(" OR ".join(f"a = '{number}'" for number in range(5000)))({"a": "4999"}) is True
    assert compile_expression("(" * 5000 + "a = 1" + ")" * 5000)({"a": "1"}) is True


@pytest.mark.parametrize(
    ("text", "above_five"),
    [
        ("5.5", True),
        (" 6 ", True),
        ("7f", True),
        ("1e1D", True),
        ("NaN", True),
        ("Infinity", True),
        ("-Infinity", False),
    ],
)
def test_strings_are_read_as_floating_point_numbers_as_java_reads_them(text: str, above_five: bool) -> None:
    assert compile_expression("a > 5.0")({"a": text}) is above_five


@pytest.mark.parametrize("text", ["", "x", "1_0", "5.0.0", "inf", "nan", "٣", "NaNf", "0x10", "1e"])
def test_what_java_does_not_read_as_a_number_is_none(text: str) -> None:
    assert PropertyFilter("a > 5.0 OR a <= 5.0").matches({"a": text}) is False


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("2147483647", True),
        ("+6", True),
        ("2147483648", False),
        ("5.5", False),
        (" 6", False),
        ("1_0", False),
        ("٩", False),
    ],
)
def test_a_string_beside_a_small_whole_number_has_to_fit_32_bits(text: str, matched: bool) -> None:
    assert PropertyFilter("a > 5").matches({"a": text}) is matched
    assert PropertyFilter("a > 5000000000").matches({"a": "5000000001"}) is True
