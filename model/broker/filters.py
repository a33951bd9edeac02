"""Specify property filters at their limits, and the bits of consumers in bit maps.

`EXPRESSIONS` has an expression, the properties of a message, and whether the message passes. None means that the
expression is refused:

1. A condition is required at the top and below NOT, AND and OR. A literal other than TRUE, FALSE and NULL is none.
2. `=` and `<>` refuse the literal NULL, and a boolean literal on the left of a literal that is no boolean.
3. An order refuses booleans, NULL and strings. BETWEEN refuses NULL, and literals of which the second is lower.
4. IN requires a property on its left.
5. A whole literal has 63 bits at most, and a floating one is finite. An expression has at most 200 levels.

`BLOOM` has the positions of texts in bit maps for a number of consumers and a rate of false hits. They were computed
with Guava's MurmurHash3 and the arithmetic of Java.

Source: `SelectorParser`, `ComparisonExpression`, `UnaryExpression`, `BloomFilter`.
"""

from collections.abc import Mapping

__all__ = ["BLOOM", "EXPRESSIONS", "IMPOSSIBLE_BLOOM"]

_A = "a"
_LEVELS_MAX = 200

EXPRESSIONS: tuple[tuple[str, Mapping[str, str], bool | None], ...] = (
    ("TRUE", {}, True),
    ("FALSE", {}, False),
    ("NULL", {}, False),
    ("NOT NULL", {}, False),
    ("5", {}, None),
    ("'x'", {}, None),
    ("NOT 5", {}, None),
    ("TRUE AND 5", {}, None),
    ("5 OR TRUE", {}, None),
    ("a", {_A: "true"}, False),
    ("NOT a", {_A: "true"}, True),
    ("NOT a", {}, False),
    ("a = NULL", {}, None),
    ("NULL = a", {}, None),
    ("a <> NULL", {}, None),
    ("a IS NULL", {}, True),
    ("a IS NOT NULL", {}, False),
    ("NULL IS NULL", {}, True),
    ("TRUE = 5", {}, None),
    ("TRUE <> 'x'", {}, None),
    ("TRUE = TRUE", {}, True),
    ("TRUE = FALSE", {}, False),
    ("5 = TRUE", {}, False),
    ("5 <> TRUE", {}, True),
    ("'true' = TRUE", {}, True),
    ("TRUE = a", {_A: "true"}, False),
    ("a = TRUE", {_A: "TRUE"}, True),
    ("a = FALSE", {_A: "yes"}, True),
    ("a = 5", {}, False),
    ("a <> 5", {}, False),
    ("a = b", {_A: "x"}, False),
    ("5 = a", {}, False),
    ("5 = 5.0", {}, True),
    ("'x' = 5", {}, False),
    ("'5' = 5", {}, True),
    ("TRUE > 1", {}, None),
    ("1 > TRUE", {}, None),
    ("NULL > 1", {}, None),
    ("a > NULL", {}, None),
    ("'a' > 1", {}, None),
    ("a > 'b'", {}, None),
    ("(a = 1) > 1", {}, None),
    ("2 > 1", {}, True),
    ("1 > 1", {}, False),
    ("1 >= 1", {}, True),
    ("1 < 1", {}, False),
    ("1 <= 1", {}, True),
    ("a > b", {_A: "10", "b": "9"}, True),
    ("a > b", {_A: "10", "b": "x"}, False),
    ("a BETWEEN 3 AND 1", {_A: "2"}, None),
    ("a BETWEEN 3 AND 3", {_A: "3"}, True),
    ("a BETWEEN NULL AND 3", {_A: "3"}, None),
    ("a BETWEEN 3 AND NULL", {_A: "3"}, None),
    ("a BETWEEN b AND 1", {_A: "1", "b": "0"}, True),
    ("a BETWEEN 1 AND 3", {_A: "1"}, True),
    ("a BETWEEN 1 AND 3", {_A: "3"}, True),
    ("a BETWEEN 1 AND 3", {_A: "4"}, False),
    ("a NOT BETWEEN 3 AND 1", {_A: "2"}, True),
    ("a NOT BETWEEN 1 AND 3", {_A: "1"}, False),
    ("a NOT BETWEEN 1 AND 3", {_A: "3"}, False),
    ("a NOT BETWEEN 1 AND 3", {_A: "0"}, True),
    ("a NOT BETWEEN 1 AND 3", {}, False),
    ("a NOT BETWEEN 1 AND NULL", {}, None),
    ("5 IN ('x')", {}, None),
    ("'x' IN ('x')", {}, None),
    ("a IN ('x', 'it''s')", {_A: "it's"}, True),
    ("a IN ('x')", {}, False),
    ("a NOT IN ('x')", {_A: "y"}, True),
    ("a NOT IN ('x')", {}, False),
    ("-a < 1", {_A: "5"}, False),
    ("-5 = -5", {}, True),
    ("-(-5) = 5", {}, True),
    ("-5 < 0", {}, True),
    ("-TRUE IS NULL", {}, True),
    ("+5 = 5", {}, True),
    ("9223372036854775807 > 1", {}, True),
    ("9223372036854775808 > 1", {}, None),
    ("5L = 5", {}, True),
    ("1e308 > 1", {}, True),
    ("1e309 > 1", {}, None),
    (".5 = 0.5", {}, True),
    ("5. = 5", {}, True),
    ("a > 1", {_A: "2147483647"}, True),
    ("a > 1", {_A: "2147483648"}, False),
    ("a < 1", {_A: "-2147483648"}, True),
    ("a < 1", {_A: "-2147483649"}, False),
    ("a <= 2147483647", {_A: "2147483648"}, False),
    ("a < 2147483649", {_A: "2147483648"}, True),
    ("a > 3000000000", {_A: "9223372036854775807"}, True),
    ("a > 3000000000", {_A: "9223372036854775808"}, False),
    ("a < 3000000000", {_A: "-9223372036854775808"}, True),
    ("a < 3000000000", {_A: "-9223372036854775809"}, False),
    ("a > 1", {_A: "+5"}, True),
    ("a > 1", {_A: "5.0"}, False),
    ("a > 1", {_A: " 5"}, False),
    ("a > 1.5", {_A: " 2.5f "}, True),
    ("a > 1.5", {_A: "2e1D"}, True),
    ("a > 1.5", {_A: "NaN"}, True),
    ("a > 1.5", {_A: "Infinity"}, True),
    ("a < 1.5", {_A: "-Infinity"}, True),
    ("a > 1.5", {_A: "NaNf"}, False),
    ("a > 1.5", {_A: ".5"}, False),
    ("a > 1.5", {_A: "5."}, True),
    ("a > 1.5", {_A: "5,0"}, False),
    ("a = 1 OR b = 1", {_A: "1"}, True),
    ("b = 1 OR a = 1", {_A: "1"}, True),
    ("a = 1 AND b = 1", {_A: "1"}, False),
    ("NOT (a = 1 AND b = 1)", {_A: "2"}, True),
    ("NOT (a = 1 AND b = 1)", {_A: "1"}, False),
    ("NOT (a = 1 OR b = 1)", {_A: "2"}, False),
    ("a = 1 AND b = 1 OR c = 1", {"c": "1"}, True),
    ("TRUE", {}, True),
    ("TRUE /* b */ -- c\n", {}, True),
    ("", {}, None),
    ("a =", {}, None),
    ("NOT " * (_LEVELS_MAX - 1) + "TRUE", {}, False),
    ("NOT " * (_LEVELS_MAX - 2) + "TRUE", {}, True),
    ("NOT " * _LEVELS_MAX + "TRUE", {}, None),
)

BLOOM: tuple[tuple[str, int, int, int, tuple[int, ...]], ...] = (
    ("CG#TopicTest", 32, 20, 112, (109, 15, 3)),
    ("CG#TopicTest", 128, 10, 616, (221, 183, 339, 65)),
    ("CG#TopicTest", 300, 1, 2880, (2605, 831, 1747, 1689, 2246, 332, 224)),
    ("CG#TopicTest", 1, 99, 8, (5,)),
    ("CG#TopicTest", 7, 50, 16, (13,)),
    ("gruppe-ä#主题", 32, 20, 112, (84, 63, 42)),
    ("a#b", 300, 1, 2880, (2581, 1191, 1051, 2721, 2401, 1371, 871)),
    ("consumer-7#ExtTopic", 32, 20, 112, (95, 79, 1)),
)
"""Text, consumers, percent of false hits, bits of a map, and the positions of the text."""

IMPOSSIBLE_BLOOM = ((0, 20), (-1, 20), (32, 0), (32, 100))
"""Numbers of consumers and percents for which there is no bit map."""
