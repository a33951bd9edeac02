"""Specify the properties of a message: a string of pairs, or a mapping that stands for it.

1. Byte 01 separates a name from its value, and byte 02 separates pairs. There is no escaping. So a mapping whose names
   contain 01 or 02, or whose values contain 02, stands for no string.
2. A reader splits at every 02, and each segment at its first 01. A segment without a name or without a value is
   ignored. Of equal names the last value counts, at the place of the first.
3. Rewriting a string keeps what was read, with one 02 between pairs and none after the last. A new name goes to the
   end.
4. A property `__CRC32#` of the producer is never stored. A segment belongs to the name before its first 01.
5. With the checksum trailer the properties end with 20 more bytes, and with a separator before these if they lack one.
6. A reader up to RocketMQ 4.9.0 ignores the 01 at the end of a segment, and then each segment with further 01. A batch
   of 4.8.0 or 4.9.0 joins the last pair of a member and the first one of the batch to such a segment.

Filters by properties:

6. A condition is true, false, unknown, or cannot be evaluated. A message passes only if it is true.
7. A comparison with a property that the message lacks is unknown. So is a sign before a property.
8. A property is text. A comparison with a whole number needs text that is a whole number of the size of that number, 32
   or 64 bits. A comparison with another number, or of two properties, needs text that is a number. Other text cannot be
   evaluated.
9. Compared with TRUE, text is true if it is `true` in any spelling of its letters. A property alone is false.
10. AND is false as soon as a part is false, and OR is true as soon as a part is true. Later parts are not evaluated
    then. Otherwise a part that is unknown makes the whole unknown.

`CLAUSES` has the conditions that operations may use, each with its meaning. An expression joins them by AND and OR, of
which AND binds more tightly. Clauses and inner expressions are in parentheses, and NOT may precede each.

Source: docs/format.md, "Properties" and "Trailer"; docs/statuses.md, "What a put changes about a message";
docs/departures.md; `ComparisonExpression`, `LogicExpression`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

__all__ = [
    "CLAUSES",
    "PROPERTY_NAMES",
    "BadExpression",
    "changed",
    "joined",
    "passes",
    "property_of",
    "separators_inside",
    "stored_bytes",
    "text_of",
    "without",
]

PAIR_SEPARATOR = "\x02"
NAME_SEPARATOR = "\x01"
TRAILER_NAME = "__CRC32#"
TRAILER_BYTES = 20
_PAIR = 2


def separators_inside(properties: Mapping[str, str] | str) -> bool:
    """Return whether a mapping has a separator where a reader would split.

    The result for a string is False.
    """
    if isinstance(properties, str):
        return False
    pairs = [(name, value) for name, value in properties.items() if name != TRAILER_NAME]
    return any(NAME_SEPARATOR in name or PAIR_SEPARATOR in name or PAIR_SEPARATOR in value for name, value in pairs)


def text_of(properties: Mapping[str, str] | str) -> str:
    """Return the stored string up to the trailer: the given one without `__CRC32#`."""
    if isinstance(properties, str):
        return without(properties, TRAILER_NAME)
    return _written({name: value for name, value in properties.items() if name != TRAILER_NAME})


def without(text: str, name: str) -> str:
    """Return the string without the segments of a name; everything else stays unchanged."""
    if name not in text:
        return text
    segments = text.split(PAIR_SEPARATOR)
    return PAIR_SEPARATOR.join(segment for segment in segments if segment.split(NAME_SEPARATOR)[0] != name)


def property_of(properties: Mapping[str, str] | str, name: str, *, drops_joined: bool = False) -> str | None:
    """Return the value that a reader finds under a name, None without a value.

    `drops_joined` is rule 6.
    """
    text = text_of(properties)
    return (_pairs_without_joined(text) if drops_joined else _pairs(text)).get(name)


def changed(properties: Mapping[str, str] | str, values: Mapping[str, str], *, less: str | None = None) -> str:
    """Return the string rebuilt from its pairs, with new values and without the name `less`."""
    pairs = {**_pairs(text_of(properties)), **values}
    return _written({name: value for name, value in pairs.items() if name != less})


def joined(first: str, second: str) -> str:
    """Return two strings as one, with a separator between them if one is needed."""
    needs_separator = first and second and not first.endswith(PAIR_SEPARATOR)
    return first + (PAIR_SEPARATOR if needs_separator else "") + second


def stored_bytes(properties: Mapping[str, str] | str, *, trailer: bool, errors: str = "strict") -> bytes:
    """Return the stored bytes up to the trailer, including its separator.

    Raises UnicodeEncodeError if the properties are not text, unless `errors` says how to encode them.
    """
    text = text_of(properties)
    if trailer and text and not text.endswith(PAIR_SEPARATOR):
        text += PAIR_SEPARATOR
    return text.encode("utf-8", errors)


@lru_cache(maxsize=1024)
def _pairs(text: str) -> Mapping[str, str]:
    """Read a string; a later value replaces an earlier one in its place, as in any dict."""
    split = [segment.partition(NAME_SEPARATOR) for segment in text.split(PAIR_SEPARATOR)]
    return MappingProxyType({name: value for name, _, value in split if name and value})


@lru_cache(maxsize=1024)
def _pairs_without_joined(text: str) -> Mapping[str, str]:
    """Read a string as RocketMQ up to 4.9.0 does."""
    split = [segment.rstrip(NAME_SEPARATOR).split(NAME_SEPARATOR) for segment in text.split(PAIR_SEPARATOR)]
    return MappingProxyType({pair[0]: pair[1] for pair in split if len(pair) == _PAIR and pair[0]})


def _written(pairs: Mapping[str, str]) -> str:
    return PAIR_SEPARATOR.join(f"{name}{NAME_SEPARATOR}{value}" for name, value in pairs.items())


# ---- filters ---------------------------------------------------------------------------------------------------------

PROPERTY_NAMES = ("size", "limit", "color", "paid")
"""The properties that clauses read."""

_Text = str | None
_Truth = bool | None
_Clause = Callable[[Mapping[str, _Text]], _Truth]

_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1


class BadExpression(ValueError):
    """Raise this for an expression that is not made of clauses."""


class _NotEvaluated(Exception):
    """End the evaluation of an expression."""


def _whole(text: str, limit: int) -> int:
    if re.fullmatch("[+-]?[0-9]+", text, re.ASCII) is None or not -limit - 1 <= int(text) <= limit:
        raise _NotEvaluated
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _NotEvaluated from None


def _size(holds: Callable[[int], bool], limit: int = _INT_MAX) -> _Clause:
    """Return a condition over the property `size` as a whole number."""

    def clause(of: Mapping[str, _Text]) -> _Truth:
        text = of["size"]
        return None if text is None else holds(_whole(text, limit))

    return clause


def _decimal(holds: Callable[[float], bool]) -> _Clause:
    """Return a condition over the property `size` as a number."""

    def clause(of: Mapping[str, _Text]) -> _Truth:
        text = of["size"]
        return None if text is None else holds(_number(text))

    return clause


def _color(holds: Callable[[str], bool]) -> _Clause:
    """Return a condition over the property `color` as text."""

    def clause(of: Mapping[str, _Text]) -> _Truth:
        text = of["color"]
        return None if text is None else holds(text)

    return clause


def _is_within_limit(of: Mapping[str, _Text]) -> _Truth:
    size, limit = of["size"], of["limit"]
    return None if size is None or limit is None else _number(size) <= _number(limit)


CLAUSES: Mapping[str, _Clause] = MappingProxyType(
    {
        "size > 3": _size(lambda size: size > 3),
        "size >= 5": _size(lambda size: size >= 5),
        "5 > size": _size(lambda size: size < 5),
        "size = 5": _size(lambda size: size == 5),
        "size <> 5": _size(lambda size: size != 5),
        "size < 3000000000": _size(lambda size: size < 3_000_000_000, _LONG_MAX),
        "size <= 3.5": _decimal(lambda size: size <= 3.5),
        "size = 5.0": _decimal(lambda size: size == 5),
        "size BETWEEN 3 AND 5": _size(lambda size: 3 <= size <= 5),
        "size NOT BETWEEN 3 AND 5": _size(lambda size: not 3 <= size <= 5),
        "size BETWEEN -1.5 AND 3.5": _decimal(lambda size: -1.5 <= size <= 3.5),
        "size <= limit": _is_within_limit,
        "-size < 1": lambda of: None,
        "color = 'red'": _color(lambda color: color == "red"),
        "color <> 'red'": _color(lambda color: color != "red"),
        "color IN ('red', 'it''s')": _color(lambda color: color in ("red", "it's")),
        "color NOT IN ('blue', 'red')": _color(lambda color: color not in ("blue", "red")),
        "color IS NULL": lambda of: of["color"] is None,
        "color IS NOT NULL": lambda of: of["color"] is not None,
        "5 = 5": lambda of: True,
        "5 <> 5": lambda of: False,
        "TRUE = FALSE": lambda of: False,
        "paid = TRUE": lambda of: None if of["paid"] is None else of["paid"].lower() == "true",
        "paid = FALSE": lambda of: None if of["paid"] is None else of["paid"].lower() != "true",
        "paid": lambda of: None if of["paid"] is None else False,
    }
)
"""Conditions as the store reads them, and their meaning for the values of `PROPERTY_NAMES`."""

_CLAUSE = re.compile("|".join(map(re.escape, sorted(CLAUSES, key=len, reverse=True))))


def passes(expression: str, value_of: Callable[[str], str | None]) -> bool:
    """Return whether a message passes an expression.

    `value_of` returns its property of a name. Raises BadExpression.
    """
    values = {name: value_of(name) for name in PROPERTY_NAMES}
    try:
        return _condition_of(expression)(values) is True
    except _NotEvaluated:
        return False


@lru_cache(maxsize=1024)
def _condition_of(expression: str) -> _Clause:
    """Read an expression. Raises BadExpression."""
    condition, end = _joined(expression, 0, "OR")
    if end != len(expression):
        raise BadExpression(expression)
    return condition


def _joined(expression: str, at: int, joint: Literal["OR", "AND"]) -> tuple[_Clause, int]:
    """Read parts joined by AND, or such groups joined by OR. Return the end too."""
    parts: list[_Clause] = []
    while True:
        part, at = _joined(expression, at, "AND") if joint == "OR" else _part(expression, at)
        parts.append(part)
        if not expression.startswith(f" {joint} ", at):
            return _all_of(parts, decides=joint == "OR"), at
        at += len(joint) + 2


def _part(expression: str, at: int) -> tuple[_Clause, int]:
    """Read a clause or an inner expression in parentheses, after NOT or without it."""
    if expression.startswith("NOT ", at):
        inner, at = _part(expression, at + 4)
        return _negated(inner), at
    if not expression.startswith("(", at):
        raise BadExpression(expression)
    found = _CLAUSE.match(expression, at + 1)
    if found is not None and expression.startswith(")", found.end()):
        condition, at = CLAUSES[found[0]], found.end()
    else:
        condition, at = _joined(expression, at + 1, "OR")
    if not expression.startswith(")", at):
        raise BadExpression(expression)
    return condition, at + 1


def _negated(inner: _Clause) -> _Clause:
    def condition(of: Mapping[str, _Text]) -> _Truth:
        truth = inner(of)
        return None if truth is None else not truth

    return condition


def _all_of(parts: Sequence[_Clause], *, decides: bool) -> _Clause:
    """Return OR if a part that is true decides, and AND if a part that is false does."""

    def condition(of: Mapping[str, _Text]) -> _Truth:
        result: _Truth = not decides
        for part in parts:
            truth = part(of)
            if truth is decides:
                return decides
            result = None if truth is None else result
        return result

    return condition
